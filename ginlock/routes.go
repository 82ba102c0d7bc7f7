package ginlock

import (
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/core/ruleset"
)

// routes remembers what was compiled for each route. Looking up takes no lock and
// does not allocate; there are as many entries as the engines have routes.
type routes struct {
	known atomic.Pointer[table]
	mu    sync.Mutex // for those who add
}

// all are the routes compiled so far.
func (r *routes) all() table {
	if t := r.known.Load(); t != nil {
		return *t
	}
	return nil
}

// find is what was compiled for the route; nil if nothing applies there.
func (r *routes) find(route ruleset.Endpoint) (e *endpoint, known bool) {
	return r.all().find(route.Method, route.Path)
}

// add compiles a route that is not known yet.
func (r *routes) add(route ruleset.Endpoint, compile func() *endpoint) *endpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, known := r.find(route); known {
		return e
	}
	e := compile()
	next := r.all().clone()
	next.add(route, e)
	r.known.Store(&next)
	return e
}
