package grpclock

import (
	"maps"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/ruleset"
)

// table is the methods that were compiled so far. After [Guard.Check] that is all
// of them, and it is only read.
type table struct {
	known atomic.Pointer[map[methodKey]*method]
	mu    sync.Mutex // for those who add
}

type methodKey struct {
	path  string
	shape shape
}

func (t *table) get(k methodKey) *method {
	known := t.known.Load()
	if known == nil {
		return nil
	}
	return (*known)[k]
}

// add returns the method of k, made once.
func (t *table) add(k methodKey, compile func() *method) *method {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.get(k); m != nil {
		return m
	}
	next := map[methodKey]*method{}
	if known := t.known.Load(); known != nil {
		next = maps.Clone(*known)
	}
	m := compile()
	next[k] = m
	t.known.Store(&next)
	return m
}

// method gives the rules of a method, nil if it has none.
func (g *Guard) method(fullMethod string, s shape) *method {
	if m := g.methods.get(methodKey{fullMethod, s}); m != nil {
		return m
	}
	rules := g.rules.Match(ruleset.GRPC(fullMethod))
	if rules == nil {
		return nil
	}
	descriptor := describe(fullMethod, g.config.descriptors)
	k := methodKey{pathOf(fullMethod, descriptor, rules), s}
	if m := g.methods.get(k); m != nil {
		return m
	}
	return g.methods.add(k, func() *method { return g.compile(k.path, s, descriptor, rules) })
}

// pathOf is the name under which a method is compiled and counted: its own, or that
// of a rule with a wildcard where only the caller says that the method exists. A
// server of unknown services must not keep a name for whatever it is asked for.
func pathOf(fullMethod string, d protoreflect.MethodDescriptor, rules []*ruleset.Resolved) string {
	if d == nil {
		return rules[0].Endpoint.Path
	}
	return fullMethod
}
