package ruleset

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Set is a validated set of rules. It does not change and is safe for concurrent
// use. The zero value and nil are empty sets.
type Set struct {
	rules    []*Resolved
	exact    map[Endpoint][]*Resolved
	prefixes map[Endpoint][]*Resolved // Path without its "/*"; "*" for everything
	settings Settings
	declared map[Endpoint][]Declared // the declarations that Overlay lays over lower layers
	resolver *resolver               // for Overlay; without problems
	file     string                  // the file from which the set was loaded
	shared   sync.Map                // see Shared
}

// buildSet resolves everything that was declared.
func buildSet(d *declarations) (*Set, []*Problem) {
	r := newResolver(d)
	r.requireEndpoint, r.allowPartial = true, true
	s := newSet(r.resolveAll(d.rules))
	s.settings, s.resolver = d.settings, r.withoutProblems()
	for _, rule := range d.rules {
		s.declared[rule.Rule.Endpoint] = append(s.declared[rule.Rule.Endpoint], rule)
	}
	return s, r.problems
}

func newSet(rules []*Resolved) *Set {
	s := &Set{
		rules: rules, exact: map[Endpoint][]*Resolved{}, prefixes: map[Endpoint][]*Resolved{},
		declared: map[Endpoint][]Declared{},
	}
	for _, r := range rules {
		e, index := r.Endpoint, s.exact
		if e.isWild() {
			e.Path, index = strings.TrimSuffix(e.Path, "/*"), s.prefixes
		}
		index[e] = append(index[e], r)
	}
	return s
}

// orEmpty returns the set, or an empty one if s is nil.
func (s *Set) orEmpty() *Set {
	if s == nil {
		return &Set{}
	}
	return s
}

// Rules returns every rule, in order.
func (s *Set) Rules() []*Resolved { return slices.Clone(s.orEmpty().rules) }

// Settings returns the settings of the file from which the set was loaded.
func (s *Set) Settings() Settings { return cmp.Or(s.orEmpty().settings, defaultSettings()) }

// File returns the name of the file from which the set was loaded, as it was given. It is empty for a
// set that is written in Go.
func (s *Set) File() string { return s.orEmpty().file }

// Dump returns the dump of the whole set.
func (s *Set) Dump() Dump {
	return Dump{Settings: s.Settings(), SettingSources: s.base().settingAt, Rules: s.Rules()}
}

// Match returns the rules that apply to a call, in the order in which they were
// declared; nil when there are none. e is the exact endpoint of the call, from
// [Route], [GRPC] or [Func]. Match does not allocate. Do not change the result.
//
// A gRPC method or a function may have declarations in other layers: its adapter
// calls [Set.Overlay] instead.
func (s *Set) Match(e Endpoint) []*Resolved {
	found := s.Lookup(e)
	if len(found) == 1 && found[0].None {
		return nil
	}
	return found
}

// Lookup is like Match, but also returns a rule with None. It returns all that the set declares
// about an endpoint; Match returns the locks to take there.
func (s *Set) Lookup(e Endpoint) []*Resolved {
	if s == nil || len(s.rules) == 0 {
		return nil
	}
	if found := byMethod(s.exact, e); found != nil || len(s.prefixes) == 0 {
		return found
	}
	everything := e
	everything.Path = "*"
	infrastructure := e.Infrastructure()
	for {
		cut := strings.LastIndexByte(e.Path, '/')
		switch {
		case cut <= 0 && infrastructure:
			return nil
		case cut < 0:
			return byMethod(s.prefixes, everything)
		}
		e.Path = e.Path[:cut]
		if found := byMethod(s.prefixes, e); found != nil {
			return found
		}
	}
}

// byMethod looks up the endpoint with its method, then with any method.
func byMethod(index map[Endpoint][]*Resolved, e Endpoint) []*Resolved {
	if found := index[e]; found != nil || e.Transport != TransportHTTP {
		return found
	}
	e.Method = "*"
	return index[e]
}

// Overlay returns the rules that apply to a call of the exact endpoint e, which lower layers declare as
// lower, such as the options of its method in a .proto. The rules of the set that name exactly e are laid
// over them. If neither declares anything for exactly e, the set's wildcards apply, as in [Set.Match].
// Overlay returns nil if there are no rules, or only a rule with None. The error is an [*InvalidError]
// with every problem. Use rules that come with an error only to find more problems.
//
// Call it at start-up: it resolves the rules anew each time.
func (s *Set) Overlay(e Endpoint, lower ...Declared) ([]*Resolved, error) {
	if len(lower) == 0 && !slices.ContainsFunc(s.orEmpty().exact[e], (*Resolved).Partial) {
		return s.matchOnly(e)
	}
	r := s.base().withoutProblems()
	r.requireEndpoint = true
	rules := r.resolveAll(slices.Concat(lower, s.orEmpty().declared[e]))
	explainNames(r.problems, lower)
	if err := Invalid(r.problems...); err != nil || len(rules) != 1 || !rules[0].None {
		return rules, err
	}
	return nil, nil
}

// matchOnly returns the rules of an endpoint that has no lower layers. It reports mixed kinds, because buildSet
// does not report them for rules whose kind a lower layer may set.
func (s *Set) matchOnly(e Endpoint) ([]*Resolved, error) {
	rules := s.Match(e)
	return rules, Invalid(MixedKinds(rules)...)
}

// base returns the resolver of the set, without problems.
func (s *Set) base() *resolver {
	if r := s.orEmpty().resolver; r != nil {
		return r
	}
	return newResolver(&declarations{settings: defaultSettings()})
}

// Shared returns the value that adapters keep for this set under a key. The first call of a key calls create. Programs do
// not need it.
func (s *Set) Shared(key any, create func() any) any {
	value, _ := s.orEmpty().shared.LoadOrStore(key, sync.OnceValue(create))
	return value.(func() any)() //nolint:errcheck,forcetypeassert // the map has no other values
}

// Provider gives an adapter its rules. It is a [*Set], which never changes, or a [*Live]
// set, which is replaced when its file changes.
type Provider interface {
	// Current returns the set in force.
	Current() *Set

	// Subscribe calls prepare, and the commit that it returns, for the set in force. It then does so
	// for every set that would replace it, until cancel is called. All subscribers prepare before any
	// of them commits. If one of them returns an error, the new set is refused and none commits. If
	// the first prepare fails, Subscribe returns its error and subscribes nothing.
	//
	// Calls of prepare and commit never overlap, and the subscriber misses no reload. prepare and commit
	// must not call the Provider. So a guard that has a provider must not also get a provider that
	// wraps it.
	Subscribe(prepare Prepare) (cancel func(), err error)
}

// Prepare prepares to work with the set next. It changes nothing before commit is called. commit
// must neither fail nor block.
type Prepare func(next *Set) (commit func(), err error)

var _ Provider = (*Set)(nil)

// Current returns the set itself.
func (s *Set) Current() *Set { return s }

// Subscribe calls prepare once, because a Set is never replaced.
func (s *Set) Subscribe(prepare Prepare) (cancel func(), err error) {
	commit, err := prepare(s)
	if err != nil {
		return nil, err
	}
	commit()
	return func() {}, nil
}

// CheckProvider returns an error for a nil Provider, and for a nil pointer whose error the caller
// ignored. Adapters call it, because with such a Provider every endpoint would run unlocked.
func CheckProvider(p Provider) error {
	if isNil(p) {
		return errors.New("the rules are nil: give those that ruleset.Open, ruleset.Watch or ruleset.NewSet made without an error")
	}
	return nil
}

// isNil reports whether v is nil or a nil pointer.
func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil()
}
