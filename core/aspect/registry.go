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

// Registry holds the endpoints of an adapter with all their rules: the [Table] of each set, and the placed entries, whose
// rules are in no set (see [Registry.Place]). It checks them together. Create it with [NewRegistry]. It is safe for
// concurrent use.
//
// At first a registry does not know which endpoints exist: a table compiles the rules of an endpoint at its first
// call. [Registry.Check] gives it all endpoints. From then on, the registry checks every reload against them.
type Registry[K comparable, X any] struct {
	env     *environment
	adapter *Adapter[K, X]

	mu       sync.Mutex
	tables   []*Table[K, X]
	placed   []*Entry[X]       // from Place
	included []*Registry[K, X] // from Include
	known    map[K]bool        // the endpoints that exist
	checked  bool              // known contains every endpoint
}

func newRegistry[K comparable, X any](env *environment, adapter *Adapter[K, X]) *Registry[K, X] {
	env.claim(adapter.prefix())
	return &Registry[K, X]{env: env, adapter: adapter, known: map[K]bool{}}
}

// Table returns the table of a provider. Each provider has one table, which follows the reloads of the provider until the
// provider is closed. If [ruleset.CheckProvider] fails, Table returns that error and no table. If
// [ruleset.Provider.Subscribe] fails, Table returns that error and a table with the current set.
func (r *Registry[K, X]) Table(p ruleset.Provider) (*Table[K, X], error) {
	if err := ruleset.CheckProvider(p); err != nil {
		return nil, err
	}
	t := r.table(p)
	t.subscribe.Do(func() {
		r.env.observers.observeReloads(p)
		prepare := func(set *ruleset.Set) (func(), error) { return r.prepare(t, set) }
		if _, t.subscribeErr = p.Subscribe(prepare); t.subscribeErr == nil && t.current.Load() == nil {
			t.subscribeErr = errors.New("aspect: the provider's Subscribe did not call prepare with the set in force, as *ruleset.Set and *ruleset.Live do")
		}
		if t.subscribeErr != nil {
			t.current.CompareAndSwap(nil, newGeneration[K, X](p, p.Current()))
		}
	})
	return t, t.subscribeErr
}

func (r *Registry[K, X]) table(p ruleset.Provider) *Table[K, X] {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		if t.provider == p {
			return t
		}
	}
	t := &Table[K, X]{env: r.env, adapter: r.adapter, provider: p}
	r.tables = append(r.tables, t)
	return t
}

// prepare compiles and checks a set for a table. It implements [ruleset.Prepare]. For the first set it compiles
// nothing. For a later set it compiles every endpoint of the table, checks them together with all other endpoints, and
// refuses a set that has problems or would take other locks than the set in force.
func (r *Registry[K, X]) prepare(t *Table[K, X], set *ruleset.Set) (commit func(), err error) {
	next := newGeneration[K, X](t.provider, set)
	next.claims.claim(r.adapter.prefix())
	old := t.current.Load()
	if old == nil {
		return func() { t.replace(nil, next) }, nil
	}
	for k := range old.entries {
		if r.keeps(set, k) {
			next.entries[k] = r.adapter.compile(set, k)
		}
	}
	report := r.audit(r.generationsWith(t, next))
	compareLocks(report, r.adapter, old, next)
	if err := report.err(); err != nil {
		return nil, err
	}
	return func() {
		t.replace(old, next)
		r.env.warn(report.Warnings()...)
	}, nil
}

// keeps reports whether an endpoint of a table still exists under another set. If the endpoint is a wildcard, it stands
// for all calls that match, and disappears with its rule. But a route of the program may end in a wildcard, too: it stays
// if the program gave it to Check or put rules on it.
func (r *Registry[K, X]) keeps(set *ruleset.Set, k K) bool {
	e := r.adapter.Endpoint(k)
	if !strings.HasSuffix(e.Path, "*") || r.isKnown(k) {
		return true
	}
	if declared, problems := r.adapter.declared(k); len(declared)+len(problems) > 0 {
		return true
	}
	rules := set.Match(e)
	return len(rules) > 0 && rules[0].Endpoint.Path == e.Path
}

// Compile compiles rules for an endpoint without a set. It needs at least one rule. It does not put them into force
// and notifies no observer.
func (r *Registry[K, X]) Compile(k K, rules ...ruleset.Rule) *Entry[X] {
	e := r.adapter.Endpoint(k)
	if len(rules) == 0 {
		return &Entry[X]{Endpoint: e, Err: ruleset.Invalid(noRules(e))}
	}
	rules = slices.Clone(rules)
	for i := range rules {
		if rules[i].Endpoint.IsZero() {
			rules[i].Endpoint = e
		}
	}
	resolved, err := ruleset.Resolve(rules, r.env.resolving...)
	return r.adapter.entry(nil, k, resolved, nil, err)
}

// Place puts an entry of [Registry.Compile] into force in addition to the sets. The registry then checks the entry
// together with the sets. Place warns of oddities at once, because not every program calls Check.
func (r *Registry[K, X]) Place(e *Entry[X]) {
	r.mu.Lock()
	r.placed = append(r.placed, e)
	r.mu.Unlock()
	e.announce()
	r.env.warn(e.Point.oddities()...)
	r.env.warnUnlocked(e.Rules())
}

// Include makes r check its rules together with the placed entries of other, a registry of the same adapter for the same
// endpoints. Those entries remain entries of other: only other notifies observers of them.
func (r *Registry[K, X]) Include(other *Registry[K, X]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.included = append(r.included, other)
}

// allPlaced returns the placed entries of r and of the registries that r includes.
func (r *Registry[K, X]) allPlaced() []*Entry[X] {
	r.mu.Lock()
	list, included := slices.Clone(r.placed), slices.Clone(r.included)
	r.mu.Unlock()
	for _, other := range included {
		list = append(list, other.allPlaced()...)
	}
	return list
}

// At returns the entries of an endpoint that are in force in r: the placed entries, and the entries in the tables.
func (r *Registry[K, X]) At(k K) []*Entry[X] {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*Entry[X]
	endpoint := r.adapter.Endpoint(k)
	for _, e := range r.placed {
		if e.Endpoint == endpoint {
			list = append(list, e)
		}
	}
	for _, t := range r.tables {
		if now := t.current.Load(); now != nil && now.entries[k] != nil {
			list = append(list, now.entries[k])
		}
	}
	return list
}

// Check compiles and checks the rules of every endpoint. keys are the endpoints that exist, in addition to the
// endpoints of earlier Checks: a rule has to match one of them. After Check, the registry refuses a reload that does
// not pass the same checks. Pass the report to [Aspect.Conclude].
func (r *Registry[K, X]) Check(keys ...K) *Report {
	tables := r.tablesInForce()
	var report *Report
	pauseReloads(sortByProvider(tables), func() {
		all := r.addKnown(keys)
		generations := make([]*generation[K, X], len(tables))
		for i, t := range tables {
			generations[i] = t.learn(all...)
		}
		report = r.audit(generations)
		r.checkGuards(report, generations)
	})
	return report
}

// checkGuards reports endpoints of HTTP to which the registry of another guard with the same client applies the same set: a
// request that passes both would be refused, because it has two rules of one name.
func (r *Registry[K, X]) checkGuards(report *Report, generations []*generation[K, X]) {
	if r.adapter.Transport != ruleset.TransportHTTP {
		return
	}
	for _, g := range generations {
		for _, e := range g.inOrder(r.adapter) {
			if len(e.Rules()) > 0 && g.set.Lookup(e.Endpoint) != nil && !g.claims.guard(guardedBy{r.env.locks, e.Endpoint}, r) {
				report.Add(e.Endpoint, e.Rules()[0].Problem("endpoint", "two guards have this rule from one set, and a request that passes both is answered with 500: "+
					"use one guard, which serves any number of routers"))
			}
		}
	}
}

// pauseReloads calls do while no table is reloaded.
func pauseReloads[K comparable, X any](tables []*Table[K, X], do func()) {
	if len(tables) == 0 {
		do()
		return
	}
	done := false
	cancel, err := tables[0].provider.Subscribe(func(*ruleset.Set) (func(), error) {
		if !done { // otherwise this is a reload that began before cancel
			pauseReloads(tables[1:], do)
			done = true
		}
		return func() {}, nil
	})
	if err == nil {
		cancel()
	}
	if !done { // the provider refused the subscriber and so does not reload, or it recovered a panic of do, which is to reach the caller
		pauseReloads(tables[1:], do)
	}
}

// sortByProvider sorts tables by the addresses of their providers, which do not move. All registries use that order,
// so that two registries that are checked at the same time do not deadlock.
func sortByProvider[K comparable, X any](tables []*Table[K, X]) []*Table[K, X] {
	address := func(t *Table[K, X]) uintptr {
		if v := reflect.ValueOf(t.provider); v.Kind() == reflect.Pointer {
			return v.Pointer()
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(tables), func(a, b *Table[K, X]) int { return cmp.Compare(address(a), address(b)) })
}

// audit checks the placed entries of r and of the registries that r includes together with generations of the tables.
func (r *Registry[K, X]) audit(generations []*generation[K, X]) *Report {
	placed := r.allPlaced()
	r.mu.Lock()
	a := audit[K, X]{
		env: r.env, adapter: r.adapter, placed: placed, generations: generations,
		known: r.adapter.sorted(maps.Keys(r.known)), complete: r.checked,
	}
	r.mu.Unlock()
	return a.report()
}

// tablesInForce returns the tables that have a set in force.
func (r *Registry[K, X]) tablesInForce() []*Table[K, X] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.tables), func(t *Table[K, X]) bool { return t.current.Load() == nil })
}

// generationsWith returns the generations in force, with next in place of the generation of t.
func (r *Registry[K, X]) generationsWith(t *Table[K, X], next *generation[K, X]) []*generation[K, X] {
	var list []*generation[K, X]
	for _, other := range r.tablesInForce() {
		if other != t {
			list = append(list, other.current.Load())
		}
	}
	return append(list, next)
}

// begin adds a new endpoint to a table and to the endpoints that exist. If its rules do not compile, begin returns
// their problems and adds nothing, so that no reload sees the endpoint.
func (r *Registry[K, X]) begin(t *Table[K, X], k K) error {
	now := t.compile(true, false, k)
	if e := now.entries[k]; e != nil && e.Err != nil {
		return e.Err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[k] = true
	return nil
}

func (r *Registry[K, X]) isKnown(k K) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[k]
}

// addKnown adds endpoints to the known ones and returns all of them. From then on known is complete.
func (r *Registry[K, X]) addKnown(keys []K) []K {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checked = true
	for _, k := range keys {
		r.known[k] = true
	}
	return r.adapter.sorted(maps.Keys(r.known))
}
