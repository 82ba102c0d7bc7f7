package aspect

import (
	"cmp"
	"iter"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Adapter describes a transport to a [Registry]. It names the endpoints of the transport and compiles their rules with the
// variables of the transport. K is the type of the key by which the transport identifies an endpoint. X is the type of the
// data that the adapter needs for an endpoint besides the rules.
type Adapter[K comparable, X any] struct {
	// Transport is the transport of the endpoints. The registry ignores rules for other transports.
	Transport ruleset.Transport

	// Prefix is the prefix of the names of the endpoints, such as "topic/" for `func: topic/orders`. The registry ignores
	// rules for other names, so several adapters can share a rule file. If Prefix is empty, the registry ignores only
	// names with the prefix of another adapter of the [Aspect].
	Prefix string

	// Noun is the word for an endpoint in problems, such as "topic". If it is empty, problems use the word of the
	// transport.
	Noun string

	// Endpoint returns the endpoint of a key. Several keys may have the same endpoint.
	Endpoint func(k K) ruleset.Endpoint

	// Declared returns the rules that endpoint k itself declares, for example in the options of a method, and the problems
	// of these rules. The rules of a set override declared rules. If Declared is nil, no endpoint declares rules.
	Declared func(k K) ([]ruleset.Declared, []*ruleset.Problem)

	// Compile compiles the rules of an endpoint with [Aspect.Prepare]. set is the set that contains the rules. If there
	// are no rules, Compile may return a nil Point: calls of the endpoint then take no lock. The error may join several
	// errors, preferably each a [*ruleset.InvalidError]. If Compile returns an error, the entry refuses all calls, and X
	// may be incomplete. The registry also passes rules with known problems, so that Compile reports the problems of
	// their keys and conditions, too.
	Compile func(set *ruleset.Set, k K, rules []*ruleset.Resolved) (*Point, X, error)

	// Changes reports whether calls of endpoint k may modify data. Check reports such an endpoint if it has no rule. If
	// Changes is nil, Check reports no endpoint without a rule.
	Changes func(k K) bool

	// Unguarded returns why calls of endpoint k bypass the adapter although the rules of p apply to them, such as an
	// interceptor that the program never installed, and what to write. It returns "" if calls may reach the adapter. Check
	// reports an error for each rule that names the endpoint, and for each wildcard that matches it unless Changes is
	// false for the endpoint. If Unguarded is nil, Check reports none of these errors.
	Unguarded func(p ruleset.Provider, k K) string

	// Named returns the key of an exact endpoint that a set names, if the name alone determines the key. At a reload the
	// registry then also checks endpoints that no client has called yet. Leave Named nil if a name does not determine a
	// key, or if endpoints have only the rules of the set.
	Named func(e ruleset.Endpoint) (k K, ok bool)

	// Hint is the advice for a rule that matches no endpoint. If it is empty, the rule gets the usual advice of the
	// transport.
	Hint string
}

// Entry is an endpoint with its rules. It is immutable.
type Entry[X any] struct {
	Endpoint ruleset.Endpoint
	Point    *Point // the compiled rules; nil if they do not compile
	Err      error  // the problems of the rules, as a [*ruleset.InvalidError]; nil if they compile
	Extra    X      // from [Adapter].Compile

	once sync.Once
}

// Rules returns the rules of e. It returns nil if e is nil or e.Err is not nil.
func (e *Entry[X]) Rules() []*ruleset.Resolved { return e.point().Rules() }

// point returns the point of the entry. It returns nil if the entry is nil or its rules do not compile.
func (e *Entry[X]) point() *Point {
	if e == nil {
		return nil
	}
	return e.Point
}

// announce notifies observers of the entry's rules.
func (e *Entry[X]) announce() { e.point().announce() }

// retract notifies observers of the rules of e that next does not contain. e and next may be nil.
func (e *Entry[X]) retract(next *Entry[X]) { e.point().retract(next.point()) }

// prefix returns the transport and the prefix as an endpoint.
func (a *Adapter[K, X]) prefix() ruleset.Endpoint {
	return ruleset.Endpoint{Transport: a.Transport, Path: a.Prefix}
}

// declared calls Declared unless it is nil.
func (a *Adapter[K, X]) declared(k K) ([]ruleset.Declared, []*ruleset.Problem) {
	if a.Declared == nil {
		return nil, nil
	}
	return a.Declared(k)
}

// overlay returns the rules of k: its declared rules, overridden by the rules of set. problems are the problems of the
// declared rules.
func (a *Adapter[K, X]) overlay(set *ruleset.Set, k K) (rules []*ruleset.Resolved, problems []*ruleset.Problem, err error) {
	declared, problems := a.declared(k)
	rules, err = set.Overlay(a.Endpoint(k), declared...)
	return rules, problems, err
}

// compile returns the entry of k with the rules of set, nil if there are no rules.
func (a *Adapter[K, X]) compile(set *ruleset.Set, k K) *Entry[X] {
	rules, problems, err := a.overlay(set, k)
	return a.entry(set, k, rules, problems, err)
}

// entry compiles rules. problems and err are the problems found before compilation.
func (a *Adapter[K, X]) entry(set *ruleset.Set, k K, rules []*ruleset.Resolved, problems []*ruleset.Problem, err error) *Entry[X] {
	e := &Entry[X]{Endpoint: a.Endpoint(k)}
	var found collector
	for _, p := range problems {
		found.add(e.Endpoint, p)
	}
	found.addError(e.Endpoint, err)
	if err == nil {
		e.Point, e.Extra, err = a.Compile(set, k, rules)
		found.addError(e.Endpoint, err)
	} else if len(rules) > 0 {
		_, _, more := a.Compile(set, k, rules)
		found.addExpressions(e.Endpoint, more)
	}
	if e.Err = ruleset.Invalid(found.raw()...); e.Err != nil {
		e.Point = nil
		return e
	}
	if e.Point == nil {
		return nil
	}
	return e
}

// sorted returns keys in the order of their endpoints.
func (a *Adapter[K, X]) sorted(keys iter.Seq[K]) []K {
	return slices.SortedFunc(keys, func(x, y K) int {
		e, f := a.Endpoint(x), a.Endpoint(y)
		return cmp.Or(cmp.Compare(e.Path, f.Path), cmp.Compare(e.Method, f.Method))
	})
}
