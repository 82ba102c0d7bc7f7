package aspect

import (
	"cmp"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Registry is the endpoints of an adapter under all their rules: the [Table] of each
// set, and the rules that the program has put on endpoints beside them. It judges them
// together. Make it with [NewRegistry]. It is safe for concurrent use.
//
// It begins without knowing which endpoints there are: a table then compiles the rules
// of an endpoint at its first call. From [Registry.Check] on it knows all of them, and
// judges every reload by them.
type Registry[K comparable, X any] struct {
	aspect  *Aspect
	adapter Adapter[K, X]

	mu      sync.Mutex
	tables  []*Table[K, X]
	placed  []*Entry[X] // beside the sets
	known   map[K]bool  // the endpoints that there are
	checked bool        // known is all of them
}

// NewRegistry makes a registry without rules.
func NewRegistry[K comparable, X any](a *Aspect, adapter Adapter[K, X]) *Registry[K, X] {
	a.claim(ruleset.Endpoint{Transport: adapter.Transport, Path: adapter.Prefix})
	return &Registry[K, X]{aspect: a, adapter: adapter, known: map[K]bool{}}
}

// Table is the table of a provider: always the same one of the same provider. It
// follows the reloads for as long as the provider has them. The error is that of
// [ruleset.CheckProvider], without a table, or that of [ruleset.Provider.Subscribe].
func (r *Registry[K, X]) Table(p ruleset.Provider) (*Table[K, X], error) {
	if err := ruleset.CheckProvider(p); err != nil {
		return nil, err
	}
	t := r.table(p)
	t.following.Do(func() {
		r.aspect.observers.observeReloads(p)
		if _, t.deaf = p.Subscribe(t.prepare); t.deaf == nil && t.current.Load() == nil {
			t.deaf = errors.New("aspect: the provider's Subscribe did not call prepare with the set in force, as that of a *ruleset.Set and a *ruleset.Live does")
		}
		if t.deaf != nil {
			t.current.CompareAndSwap(nil, newGeneration[K, X](p, p.Current()))
		}
	})
	return t, t.deaf
}

func (r *Registry[K, X]) table(p ruleset.Provider) *Table[K, X] {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		if t.provider == p {
			return t
		}
	}
	t := &Table[K, X]{registry: r, provider: p}
	r.tables = append(r.tables, t)
	return t
}

// begun are the tables that have a set.
func (r *Registry[K, X]) begun() []*Table[K, X] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.tables), func(t *Table[K, X]) bool { return t.current.Load() == nil })
}

// Compile compiles rules for an endpoint without a set: at least one. It changes nothing
// and tells nobody.
func (r *Registry[K, X]) Compile(k K, rules ...ruleset.Rule) *Entry[X] {
	e := r.adapter.Endpoint(k)
	if len(rules) == 0 {
		return &Entry[X]{Endpoint: e, Err: ruleset.Invalid(noneGiven(e))}
	}
	resolved, err := ruleset.Resolve(at(e, rules), r.aspect.cfg.sources.resolving...)
	return r.adapter.entry(nil, k, resolved, nil, err)
}

// Place puts an entry of [Registry.Compile] into force beside the sets, to be judged
// with them, and warns of oddities: not every program calls Check.
func (r *Registry[K, X]) Place(e *Entry[X]) {
	r.mu.Lock()
	r.placed = append(r.placed, e)
	r.mu.Unlock()
	e.announce()
	r.aspect.Warn(e.Point.oddities()...)
}

// At are the entries of an endpoint that are in force: those that were placed there,
// and those of the tables that have it.
func (r *Registry[K, X]) At(k K) []*Entry[X] {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.placedAt(r.adapter.Endpoint(k))
	for _, t := range r.tables {
		if e, _ := t.Find(k); e != nil {
			list = append(list, e)
		}
	}
	return list
}

func (r *Registry[K, X]) placedAt(endpoint ruleset.Endpoint) []*Entry[X] {
	var list []*Entry[X]
	for _, e := range r.placed {
		if e.Endpoint == endpoint {
			list = append(list, e)
		}
	}
	return list
}

// Check compiles the rules of every endpoint and judges all of them. keys are endpoints
// that there are, beside those of the Checks before: a rule has to match one of them.
// From then on a reload that would not pass is refused. The report goes to
// [Aspect.Conclude].
func (r *Registry[K, X]) Check(keys ...K) *Report {
	tables := r.begun()
	var report *Report
	undisturbed(inOrder(tables), func() {
		all := r.know(keys)
		generations := make([]*generation[K, X], len(tables))
		for i, t := range tables {
			generations[i] = t.learn(all...)
		}
		report = r.judge(generations)
	})
	return report
}

// inOrder are the tables in an order of their providers that all registries have in common,
// so that two that are checked at once do not wait for each other: that of the addresses,
// which nothing moves.
func inOrder[K comparable, X any](tables []*Table[K, X]) []*Table[K, X] {
	address := func(t *Table[K, X]) uintptr {
		if v := reflect.ValueOf(t.provider); v.Kind() == reflect.Pointer {
			return v.Pointer()
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(tables), func(a, b *Table[K, X]) int { return cmp.Compare(address(a), address(b)) })
}

// undisturbed does something while no table is reloaded.
func undisturbed[K comparable, X any](tables []*Table[K, X], do func()) {
	if len(tables) == 0 {
		do()
		return
	}
	done := false
	cancel, err := tables[0].provider.Subscribe(func(*ruleset.Set) (func(), error) {
		if !done { // else it is a reload before cancel
			undisturbed(tables[1:], do)
			done = true
		}
		return func() {}, nil
	})
	if err == nil {
		cancel()
	}
	if !done { // a provider that takes no subscriber does not reload; or a panic, which it has kept, is the caller's
		undisturbed(tables[1:], do)
	}
}

// keeps reports whether there still is an endpoint that was learned, under another set: one
// that stands for all calls under a wildcard goes with the rule. A route may end in a
// wildcard, too, which the program has made known or put rules on.
func (r *Registry[K, X]) keeps(set *ruleset.Set, k K) bool {
	e := r.adapter.Endpoint(k)
	if !strings.HasSuffix(e.Path, "*") || r.knows(k) {
		return true
	}
	if declared, problems := r.adapter.declared(k); len(declared)+len(problems) > 0 {
		return true
	}
	rules := set.Match(e)
	return len(rules) > 0 && rules[0].Endpoint.Path == e.Path
}

func (r *Registry[K, X]) knows(k K) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[k]
}

// know adds endpoints to those that there are, and gives all of them.
func (r *Registry[K, X]) know(keys []K) []K {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checked = true
	for _, k := range keys {
		r.known[k] = true
	}
	return r.sorted(maps.Keys(r.known))
}

// sorted orders keys by their endpoints.
func (r *Registry[K, X]) sorted(keys func(yield func(K) bool)) []K {
	return slices.SortedFunc(keys, func(a, b K) int {
		x, y := r.adapter.Endpoint(a), r.adapter.Endpoint(b)
		return cmp.Or(cmp.Compare(x.Path, y.Path), cmp.Compare(x.Method, y.Method))
	})
}

// with are the generations in force, with next in the place of its table's.
func (r *Registry[K, X]) with(t *Table[K, X], next *generation[K, X]) []*generation[K, X] {
	var list []*generation[K, X]
	for _, other := range r.begun() {
		if other != t {
			list = append(list, other.current.Load())
		}
	}
	return append(list, next)
}

// judge judges everything that is placed, and generations of the tables.
func (r *Registry[K, X]) judge(generations []*generation[K, X]) *Report {
	r.mu.Lock()
	placed, checked := slices.Clone(r.placed), r.checked
	known := r.sorted(maps.Keys(r.known))
	r.mu.Unlock()

	report := &Report{}
	var origins [][]*Entry[X]
	for _, e := range placed {
		origins = append(origins, []*Entry[X]{e})
	}
	for _, g := range generations {
		origins = append(origins, r.entries(g))
	}
	entries := slices.Concat(origins...)
	for _, e := range entries {
		report.Add(e.Endpoint, e.Err)
	}
	if checked {
		for _, e := range entries[len(placed):] { // of the others Place has warned
			for _, p := range e.Point.oddities() {
				report.Warn(p.Endpoint, p)
			}
		}
		r.judgeSets(report, generations, placed, known)
		r.judgeGuarded(report, generations)
	}
	judgeTogether(report, origins)
	return report
}

// entries are those of a generation that have rules, in order.
func (r *Registry[K, X]) entries(g *generation[K, X]) []*Entry[X] {
	var list []*Entry[X]
	for _, k := range r.sorted(maps.Keys(g.entries)) {
		if e := g.entries[k]; e != nil {
			list = append(list, e)
		}
	}
	return list
}

// judgeSets compares the sets with the endpoints that there are.
func (r *Registry[K, X]) judgeSets(report *Report, generations []*generation[K, X], placed []*Entry[X], known []K) {
	keys := map[ruleset.Endpoint]K{}
	j := Judge{Transport: r.adapter.Transport, Noun: r.adapter.Noun, Hint: r.adapter.Hint}
	j.Concerns = func(e ruleset.Endpoint) bool { return r.aspect.concerns(r.adapter.Prefix, e) }
	for _, k := range known {
		e := r.adapter.Endpoint(k)
		if _, twice := keys[e]; !twice {
			j.Endpoints = append(j.Endpoints, e)
		}
		keys[e] = k
	}
	j.Beside = func(e ruleset.Endpoint) bool {
		return slices.ContainsFunc(placed, func(p *Entry[X]) bool { return p.Endpoint == e })
	}
	j.Below = func(e ruleset.Endpoint) bool {
		declared, problems := r.adapter.declared(keys[e])
		return len(declared)+len(problems) > 0
	}
	if r.adapter.Changes != nil {
		j.Changes = func(e ruleset.Endpoint) bool { return r.adapter.Changes(keys[e]) }
	}
	sets := make([]*ruleset.Set, len(generations))
	for i, g := range generations {
		sets[i] = g.set
	}
	j.Judge(report, sets...)
}

// judgeGuarded finds rules of endpoints whose calls cannot come to the adapter.
func (r *Registry[K, X]) judgeGuarded(report *Report, generations []*generation[K, X]) {
	if r.adapter.Unguarded == nil {
		return
	}
	for _, g := range generations {
		for _, k := range r.sorted(maps.Keys(g.entries)) {
			e := g.entries[k]
			for _, rule := range e.Rules() {
				if rule.Endpoint.Path != e.Endpoint.Path && r.adapter.Changes != nil && !r.adapter.Changes(k) {
					continue
				}
				if why := r.adapter.Unguarded(g.provider, k); why != "" {
					report.Add(e.Endpoint, rule.Problem("", why))
				}
			}
		}
	}
}

// judgeTogether finds what entries are only together: one key as locks of different
// kinds, and a rule of the same name on one endpoint from two origins. (Of one set
// several keys may have an endpoint, and its rules.) Those of sets come last: their file
// can be changed.
func judgeTogether[X any](report *Report, origins [][]*Entry[X]) {
	before := map[ruleset.Endpoint][]*Point{}
	var rules []*ruleset.Resolved
	for _, entries := range origins {
		entries = slices.DeleteFunc(entries, func(e *Entry[X]) bool { return e.Point == nil })
		for _, e := range entries {
			for _, other := range before[e.Endpoint] {
				report.Add(e.Endpoint, Twice(e.Point, other))
			}
			rules = append(rules, e.Rules()...)
		}
		for _, e := range entries {
			before[e.Endpoint] = append(before[e.Endpoint], e.Point)
		}
	}
	for _, p := range ruleset.MixedKinds(rules) {
		report.Add(p.Endpoint, p)
	}
}
