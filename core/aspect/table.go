package aspect

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Table holds the rules of one provider, compiled for the endpoints of a [Registry]. A look-up takes no lock and does
// not allocate. A table contains only the set in force; the registry checks each set before it comes into force.
//
// A table has one generation in force at a time. A generation is immutable: every change puts a new one in its place. A
// call runs to its end under the generation that it found:
//
//	          learn, Renew: the same set, with one more endpoint or a renewed one
//	            ┌──┐
//	prepare ─▶ in force ──── prepare, commit ───▶ out of force
//	   │                     (a reload)
//	   └─▶ refused: the generation in force stays
type Table[K comparable, X any] struct {
	env      *environment
	adapter  *Adapter[K, X]
	provider ruleset.Provider

	subscribe    sync.Once
	subscribeErr error // the error of the subscription; if it is set, no reload will take effect

	current   atomic.Pointer[generation[K, X]]
	compileMu sync.Mutex // held while endpoints are compiled
	swapMu    sync.Mutex // held only while the generation is replaced and observers are notified
}

// generation is a set with the endpoints that were compiled for it so far. An endpoint without rules has a nil entry.
type generation[K comparable, X any] struct {
	provider ruleset.Provider // the provider of the set
	set      *ruleset.Set
	claims   *claims // of the set
	entries  map[K]*Entry[X]
}

func newGeneration[K comparable, X any](p ruleset.Provider, set *ruleset.Set) *generation[K, X] {
	return &generation[K, X]{provider: p, set: set, claims: claimsOf(set), entries: map[K]*Entry[X]{}}
}

// merge returns a generation of the same set in which learned adds or replaces entries.
func (g *generation[K, X]) merge(learned map[K]*Entry[X]) *generation[K, X] {
	next := &generation[K, X]{provider: g.provider, set: g.set, claims: g.claims, entries: maps.Clone(g.entries)}
	maps.Copy(next.entries, learned)
	return next
}

// inOrder returns the entries that have rules, in the order of their endpoints.
func (g *generation[K, X]) inOrder(a *Adapter[K, X]) []*Entry[X] {
	var list []*Entry[X]
	for _, k := range a.sorted(maps.Keys(g.entries)) {
		if e := g.entries[k]; e != nil {
			list = append(list, e)
		}
	}
	return list
}

// Set returns the set in force.
func (t *Table[K, X]) Set() *ruleset.Set { return t.current.Load().set }

// Len returns the number of compiled endpoints, including those without rules.
func (t *Table[K, X]) Len() int { return len(t.current.Load().entries) }

// Find returns the entry in force for an endpoint of a call, nil if it has no rules. known is false if the endpoint was not
// compiled yet. The first call under a set warns of rules of the set that no registry applies: by then the program has
// created its adapters.
func (t *Table[K, X]) Find(k K) (e *Entry[X], known bool) {
	now := t.current.Load()
	if now == nil {
		return nil, false
	}
	t.env.warn(now.claims.unclaimed(now.set)...)
	e, known = now.entries[k]
	return e, known
}

// At returns the entry in force for an endpoint that exists, nil if it has no rules. It compiles the rules of the
// endpoint if necessary.
func (t *Table[K, X]) At(k K) *Entry[X] {
	if e, known := t.Find(k); known {
		return e
	}
	return t.learn(k).entries[k]
}

// Entries returns the entries in force that have rules, in the order of their endpoints.
func (t *Table[K, X]) Entries() []*Entry[X] { return t.current.Load().inOrder(t.adapter) }

// Renew compiles the rules of endpoints again, because the adapter declares more rules for them than before. It returns
// the entries in the order of the keys.
func (t *Table[K, X]) Renew(keys ...K) []*Entry[X] {
	now := t.compile(true, true, keys...)
	list := make([]*Entry[X], len(keys))
	for i, k := range keys {
		list[i] = now.entries[k]
	}
	return list
}

// learn puts a generation that contains the endpoints into force and returns it. It compiles only endpoints that the
// generation in force does not contain.
func (t *Table[K, X]) learn(keys ...K) *generation[K, X] { return t.compile(false, true, keys...) }

// compile implements learn, Renew and Registry.begin. If renew is true, it also compiles known endpoints. If keepBroken is
// false and the rules of an endpoint do not compile, compile returns the new generation, which contains the errors,
// without putting it into force.
func (t *Table[K, X]) compile(renew, keepBroken bool, keys ...K) *generation[K, X] {
	t.compileMu.Lock()
	defer t.compileMu.Unlock()
	for {
		now := t.current.Load()
		learned := map[K]*Entry[X]{}
		for _, k := range keys {
			if _, known := now.entries[k]; renew || !known {
				learned[k] = t.adapter.compile(now.set, k)
			}
		}
		if len(learned) == 0 {
			return now
		}
		next := now.merge(learned)
		isBroken := func(e *Entry[X]) bool { return e != nil && e.Err != nil }
		if !keepBroken && slices.ContainsFunc(slices.Collect(maps.Values(learned)), isBroken) || t.extend(now, next, learned) {
			return next
		}
	}
}

// extend replaces the generation old with next. It returns false if a reload has already replaced old.
func (t *Table[K, X]) extend(old, next *generation[K, X], learned map[K]*Entry[X]) bool {
	t.swapMu.Lock()
	defer t.swapMu.Unlock()
	if !t.current.CompareAndSwap(old, next) {
		return false
	}
	var rules []*ruleset.Resolved
	for _, k := range t.adapter.sorted(maps.Keys(learned)) {
		old.entries[k].retract(learned[k])
		learned[k].announce()
		rules = append(rules, learned[k].Rules()...)
	}
	t.env.warnUnlocked(rules)
	return true
}

// replace puts a generation of another set into force. prepared is the generation that was in force when next was
// created. If Renew compiled an endpoint since then, replace removes its entry from next, because that entry lacks the newly
// declared rules. The next call of the endpoint compiles it. Observers are notified of the removed rules before the new ones, because both
// may have the same names.
func (t *Table[K, X]) replace(prepared, next *generation[K, X]) {
	t.swapMu.Lock()
	defer t.swapMu.Unlock()
	if old := t.current.Load(); old != nil {
		for _, k := range t.adapter.sorted(maps.Keys(old.entries)) {
			if old.entries[k] != prepared.entries[k] {
				delete(next.entries, k)
			}
			old.entries[k].retract(next.entries[k])
		}
	}
	t.current.Store(next)
	for _, k := range t.adapter.sorted(maps.Keys(next.entries)) {
		next.entries[k].announce()
	}
}
