package grpclock

import (
	"maps"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
)

// table is the methods that were compiled for one set so far. After [Guard.Check]
// that is all of them. It never changes: what is learned later, and a reload, put
// another in its place, while calls go on with the method that they have found.
type table struct {
	set     *ruleset.Set
	methods map[methodKey]*method // nil: a method without rules
}

type methodKey struct {
	path  string
	shape shape
}

// wild reports whether the key stands for all methods that only callers name.
func (k methodKey) wild() bool { return strings.HasSuffix(k.path, "*") }

// with is a table that has more methods.
func (t *table) with(more map[methodKey]*method) *table {
	next := &table{set: t.set, methods: maps.Clone(t.methods)}
	maps.Copy(next.methods, more)
	return next
}

// keys are what the table has, in order.
func (t *table) keys() []methodKey {
	return slices.SortedFunc(maps.Keys(t.methods), byPath)
}

// byPath orders methods by their names.
func byPath(a, b methodKey) int {
	if order := strings.Compare(a.path, b.path); order != 0 {
		return order
	}
	return strings.Compare(a.shape.String(), b.shape.String())
}

// method gives the rules of a method, nil if it has none. A registered one is one of
// few; others have any name that a caller writes.
func (g *Guard) method(fullMethod string, s shape, registered bool) *method {
	k := methodKey{fullMethod, s}
	if m, known := g.current.Load().methods[k]; known {
		return m
	}
	if registered {
		return g.learn(k).methods[k]
	}
	return g.unregistered(methodKey{fullMethod, unregistered()})
}

// unregistered is method for one that a handler of unknown services serves.
func (g *Guard) unregistered(k methodKey) *method {
	if m, known := g.current.Load().methods[k]; known {
		return m
	}
	if describe(k.path, g.config.descriptors) != nil {
		return g.learn(k).methods[k]
	}
	return g.stray(k)
}

// learn returns a table in force that has the methods. Each is compiled once.
func (g *Guard) learn(keys ...methodKey) *table {
	g.learning.Lock()
	defer g.learning.Unlock()
	for {
		t := g.current.Load()
		learned := map[methodKey]*method{}
		for _, k := range keys {
			if _, known := t.methods[k]; !known {
				learned[k] = g.compile(t.set, k)
			}
		}
		if len(learned) == 0 {
			return t
		}
		if next := t.with(learned); g.extend(t, next, learned) {
			return next
		}
	}
}

// extend puts next in the place of t, unless a reload was faster.
func (g *Guard) extend(t, next *table, learned map[methodKey]*method) bool {
	g.swapping.Lock()
	defer g.swapping.Unlock()
	if !g.current.CompareAndSwap(t, next) {
		return false
	}
	for _, k := range slices.SortedFunc(maps.Keys(learned), byPath) {
		learned[k].announce()
	}
	return true
}

// replace puts the table of another set in force. It tells of rules that are gone
// before those that come: the names of both may be the same.
func (g *Guard) replace(next *table) {
	g.swapping.Lock()
	defer g.swapping.Unlock()
	old := g.current.Swap(next)
	if old == nil {
		return
	}
	for _, k := range old.keys() {
		old.methods[k].retract(next.methods[k])
	}
	for _, k := range next.keys() {
		next.methods[k].announce()
	}
}

// stray gives the rules of a method that is neither registered nor described, so
// that it has those of wildcards only (or was left out of [Guard.Check]). It is
// compiled and counted under the rule's name: a server of unknown services must not
// keep a name for whatever it is asked for.
func (g *Guard) stray(k methodKey) *method {
	for {
		t := g.current.Load()
		rules := t.set.Match(ruleset.GRPC(k.path))
		if rules == nil {
			return nil
		}
		wild := methodKey{rules[0].Endpoint.Path, k.shape}
		if m, known := t.methods[wild]; known {
			return m
		}
		if learned := g.learn(wild); learned.set == t.set {
			return learned.methods[wild]
		}
	}
}
