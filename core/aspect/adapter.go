package aspect

import (
	"fmt"
	"sync"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Adapter is what a transport brings to a [Registry]: how its endpoints are named, and
// how their rules are compiled with the variables that there are. K is what the
// transport knows an endpoint by; X is what it needs besides the rules to serve one.
type Adapter[K comparable, X any] struct {
	// Transport is that of the endpoints. Rules for others are left alone.
	Transport ruleset.Transport

	// Prefix begins the names of the endpoints, such as "topic/" those of func: topic/orders.
	// Rules for other names are left alone, so that several adapters share a rule file. ""
	// is for all names that begin with the prefix of no other adapter of the [Aspect].
	Prefix string

	// Noun is what problems call an endpoint, such as "topic"; "" for the transport's usual
	// one.
	Noun string

	// Endpoint names the endpoint of a key. Several keys may have one.
	Endpoint func(k K) ruleset.Endpoint

	// Declared are the rules that lie below those of a set, such as the options of a
	// method, and what is wrong with them. nil: there are none anywhere.
	Declared func(k K) ([]ruleset.Declared, []*ruleset.Problem)

	// Compile compiles the rules of an endpoint, with [Aspect.Prepare]: set is the one
	// that they are from. No rules and no point mean that nothing applies there. The
	// error may join several; it is best of [*ruleset.InvalidError]. The entry is then
	// one that cannot work, whose X may be incomplete. Rules that have problems are compiled,
	// too, for those of their keys and conditions.
	Compile func(set *ruleset.Set, k K, rules []*ruleset.Resolved) (*Point, X, error)

	// Changes reports whether calls of an endpoint may change something, so that it
	// should have a rule. nil: none has to.
	Changes func(k K) bool

	// Unguarded says why calls of an endpoint cannot come to the adapter for the rules of a
	// provider, and what to write, such as an interceptor that the program has never asked for.
	// "" means that they may. Check then has an error for each rule that names the endpoint and,
	// if Changes is true for the endpoint, for each wildcard. nil: all may.
	Unguarded func(p ruleset.Provider, k K) string

	// Named is the key of an exact endpoint that a set names, if it can be made of the
	// name alone: a reload is then judged for the endpoints that nobody has called yet,
	// too. nil where it cannot, or where a [ruleset.Set] has all layers of the rules.
	Named func(e ruleset.Endpoint) (k K, ok bool)

	// Hint says what else to write in a rule that matches nothing; "" for the
	// transport's usual one.
	Hint string
}

// Entry is one endpoint under its rules. It never changes.
type Entry[X any] struct {
	Endpoint ruleset.Endpoint
	Point    *Point // the rules, compiled; nil if they cannot work
	Err      error  // why: a [*ruleset.InvalidError]; nil if they work
	Extra    X      // what the adapter has made of them

	once sync.Once
}

// WarnOnce warns observers of what every call of the entry meets: the first time that it is called
// on the entry.
func (e *Entry[X]) WarnOnce(a *Aspect, reason error) {
	e.once.Do(func() {
		var report Report
		report.Add(e.Endpoint, reason)
		a.Warn(report.Errors()...)
	})
}

// Rules are those of an entry that works, nil where there is none.
func (e *Entry[X]) Rules() []*ruleset.Resolved { return e.point().Rules() }

// point returns the point of the entry, or nil if the entry does not work.
func (e *Entry[X]) point() *Point {
	if e == nil {
		return nil
	}
	return e.Point
}

// announce tells observers of the rules.
func (e *Entry[X]) announce() { e.point().announce() }

// retract tells observers of the rules that next, which takes its place, does not have.
func (e *Entry[X]) retract(next *Entry[X]) { e.point().retract(next.point()) }

// declared are the layers below a set, none without a function for it.
func (a *Adapter[K, X]) declared(k K) ([]ruleset.Declared, []*ruleset.Problem) {
	if a.Declared == nil {
		return nil, nil
	}
	return a.Declared(k)
}

// overlay are the rules of a key under a set, with the layers below it.
func (a *Adapter[K, X]) overlay(set *ruleset.Set, k K) (rules []*ruleset.Resolved, problems []*ruleset.Problem, err error) {
	declared, problems := a.declared(k)
	rules, err = set.Overlay(a.Endpoint(k), declared...)
	return rules, problems, err
}

// compile makes the entry of a key under a set: nil without rules.
func (a *Adapter[K, X]) compile(set *ruleset.Set, k K) *Entry[X] {
	rules, problems, err := a.overlay(set, k)
	return a.entry(set, k, rules, problems, err)
}

// entry compiles rules that were found, with what is wrong with them already.
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

// Twice says that two rules of one name stand over the calls of one endpoint: each
// would be counted as the other. nil if no name is shared. The points are from
// different places, such as a rule file and the program.
func Twice(a, b *Point) error {
	for _, r := range a.Rules() {
		for _, o := range b.Rules() {
			if r.Name == o.Name {
				return ruleset.Invalid(r.Problem("", fmt.Sprintf("a rule %q is there twice: remove one, or give them names that differ; "+
					"a rule file changes rules in Go that are given to ruleset.WithRules", r.Name)))
			}
		}
	}
	return nil
}
