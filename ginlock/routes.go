package ginlock

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/core/ruleset"
)

// routes remembers what was compiled for each route. Looking up takes no lock and
// does not allocate; there are as many entries as the engines have routes.
type routes struct {
	known atomic.Pointer[map[ruleset.Endpoint]*endpoint]
	mu    sync.Mutex // for those who add
}

// find is what was compiled for the route; nil if nothing applies there.
func (r *routes) find(route ruleset.Endpoint) (e *endpoint, known bool) {
	if m := r.known.Load(); m != nil {
		e, known = (*m)[route]
	}
	return e, known
}

// add compiles a route that is not known yet.
func (r *routes) add(route ruleset.Endpoint, compile func() *endpoint) *endpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, known := r.find(route); known {
		return e
	}
	e := compile()
	next := make(map[ruleset.Endpoint]*endpoint)
	if m := r.known.Load(); m != nil {
		maps.Copy(next, *m)
	}
	next[route] = e
	r.known.Store(&next)
	return e
}

// all are the routes compiled so far.
func (r *routes) all() map[ruleset.Endpoint]*endpoint {
	if m := r.known.Load(); m != nil {
		return *m
	}
	return nil
}
