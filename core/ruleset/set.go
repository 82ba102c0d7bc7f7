package ruleset

import (
	"slices"
	"strings"
)

// Set is a validated set of rules. It does not change and is safe for concurrent
// use. The zero value and nil are empty sets.
type Set struct {
	rules    []*Resolved
	exact    map[Endpoint][]*Resolved
	prefixes map[Endpoint][]*Resolved // Path without its "/*"; "*" for everything
	settings Settings
	declared map[Endpoint][]Declared // what Overlay lays over lower layers
	resolver *resolver               // for Overlay; without problems
	file     string                  // that it was loaded from
}

// NewSet builds a set of rules declared in Go. Every rule needs an Endpoint, and
// rules of one endpoint need different Names. The error is an [*InvalidError] with
// every problem.
func NewSet(rules []Rule, opts ...Option) (*Set, error) {
	return BuildSet(inCode(rules), opts...)
}

// BuildSet builds a set from declarations of any layer, in any order. Those of one
// identity, which is (Endpoint, Name), are overlaid by their layers: a field that
// a higher layer sets replaces the lower one's whole, and Key replaces Keys and the
// other way round. Two declarations of one identity in one layer are an error. The
// order of first declaration is kept. The error is an [*InvalidError] with every
// problem.
func BuildSet(declared []Declared, opts ...Option) (*Set, error) {
	cfg := newConfig(opts)
	cfg.declared = append(cfg.declared, declared...)
	set, problems := cfg.build()
	if err := Invalid(problems...); err != nil {
		return nil, err
	}
	return set, nil
}

// build resolves everything that was declared.
func (c *config) build() (*Set, []*Problem) {
	r := newResolver(c)
	r.requireEndpoint, r.allowPartial = true, true
	s := newSet(r.resolveAll(c.declared))
	s.settings, s.resolver = c.settings, r.again()
	for _, d := range c.declared {
		s.declared[d.Rule.Endpoint] = append(s.declared[d.Rule.Endpoint], d)
	}
	return s, r.problems
}

// Resolve resolves rules for one place without a set: what an adapter does with
// rules that it is handed directly. They need no Endpoint; those of one endpoint
// need different Names. The error is an [*InvalidError] with every problem; the rules
// with it are for finding more of them only.
func Resolve(rules []Rule, opts ...Option) ([]*Resolved, error) {
	r := newResolver(newConfig(opts))
	resolved := r.resolveAll(inCode(rules))
	return resolved, Invalid(r.problems...)
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

// Match returns the rules that apply to a call, in the order in which they were
// declared; nil when there are none. e is the exact endpoint of the call, from
// [Route], [GRPC] or [Func]. It does not allocate. Do not change the result.
//
// A gRPC method or a function may have declarations in other layers: an adapter of
// those asks [Set.Overlay].
func (s *Set) Match(e Endpoint) []*Resolved {
	found := s.Lookup(e)
	if len(found) == 1 && found[0].None {
		return nil
	}
	return found
}

// Lookup is Match, but returns a rule that says None, too: what the set says about
// an endpoint, as opposed to what is done there.
func (s *Set) Lookup(e Endpoint) []*Resolved {
	if s == nil || len(s.rules) == 0 {
		return nil
	}
	if found := byMethod(s.exact, e); found != nil || len(s.prefixes) == 0 {
		return found
	}
	everything := e
	everything.Path = "*"
	spared := e.Infrastructure()
	for {
		cut := strings.LastIndexByte(e.Path, '/')
		switch {
		case cut <= 0 && spared:
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

// byMethod looks for the endpoint's method, then for any.
func byMethod(index map[Endpoint][]*Resolved, e Endpoint) []*Resolved {
	if found := index[e]; found != nil || e.Transport != TransportHTTP {
		return found
	}
	e.Method = "*"
	return index[e]
}

// orEmpty is the set, or an empty one in place of nil.
func (s *Set) orEmpty() *Set {
	if s == nil {
		return &Set{}
	}
	return s
}

// Rules returns every rule, in order.
func (s *Set) Rules() []*Resolved { return slices.Clone(s.orEmpty().rules) }

// File is the name of the file that the set was loaded from, as it was given; empty for a set
// that is written in Go.
func (s *Set) File() string { return s.orEmpty().file }
