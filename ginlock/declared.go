package ginlock

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// declared is what [Guard.Middleware] made: rules that name their routes, and that
// a reload replaces.
type declared struct {
	guard    *Guard
	provider ruleset.Provider
	started  sync.Once

	now atomic.Pointer[generation]
	mu  sync.Mutex // for who replaces now, until observers know
}

// generation is a set and what was compiled of it. It never changes.
type generation struct {
	declared *declared
	set      *ruleset.Set
	table    table
}

func (d *declared) serve(c *gin.Context) {
	e, unknown := d.find(c)
	switch {
	case unknown != nil:
		d.guard.refuseUnmatched(c, unknown)
	case e != nil:
		e.serve(c)
	}
}

// find is what is in force for the route of a request, nil if nothing is. For a
// known route it takes no lock and does not allocate.
func (d *declared) find(c *gin.Context) (*endpoint, *ambiguousError) {
	r, unknown := d.guard.routing.of(c)
	switch {
	case r == noRoute:
		return nil, nil
	case unknown == nil:
		return d.at(r), nil
	case len(unknown.routes) > 0 && !slices.ContainsFunc(unknown.routes, d.hasRules):
		return nil, nil // whichever it is
	default:
		return nil, unknown
	}
}

func (d *declared) hasRules(r *route) bool { return d.at(r) != nil }

// at is what is in force for a route. One that [Guard.Check] was not told of is
// compiled.
func (d *declared) at(r *route) *endpoint {
	if e, known := d.now.Load().table.find(r.Method, r.Path); known {
		return e
	}
	list := []route{*r}
	d.guard.remember(list)
	return d.complete(list).table.at(r.Endpoint)
}

// start subscribes, once.
func (d *declared) start() {
	d.started.Do(func() {
		if _, err := d.provider.Subscribe(d.prepare); err != nil {
			d.now.Store(d.compile(&generation{declared: d, set: d.provider.Current()}, nil))
			d.guard.note(fmt.Errorf("ginlock: Middleware: no reload will take effect: %w", err))
		}
	})
}

// prepare compiles the next set for every route that is known; see
// [ruleset.Prepare]. What is wrong with the first one is left to [Guard.Check].
func (d *declared) prepare(set *ruleset.Set) (commit func(), err error) {
	known := d.guard.knownRoutes()
	next := d.compile(&generation{declared: d, set: set}, known.routes)
	if d.now.Load() == nil {
		return func() { d.commit(next, nil) }, nil
	}
	k := newCheck(d.guard, known)
	k.reload(next)
	if err := k.err(); err != nil {
		return nil, err
	}
	return func() { d.commit(next, k.warnings) }, nil
}

// commit puts a generation into force. Requests that run finish under the one they
// began with.
func (d *declared) commit(next *generation, warnings []*ruleset.Problem) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.now.Swap(next)
	if before != nil {
		before.retract(next)
	}
	next.announce(nil)
	d.guard.aspect.Warn(warnings...)
}

// complete adds routes to the generation in force.
func (d *declared) complete(routes []route) *generation {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.now.Load()
	next := d.compile(before, routes)
	if next != before {
		d.now.Store(next)
		next.announce(before)
	}
	return next
}

// compile is a generation with what it lacks of the routes; itself if it lacks none.
func (d *declared) compile(base *generation, routes []route) *generation {
	next := base
	for _, r := range routes {
		if _, known := next.table.find(r.Method, r.Path); known {
			continue
		}
		if next == base {
			next = &generation{declared: d, set: base.set, table: base.table.clone()}
		}
		next.table.add(r.Endpoint, d.compileRoute(base.set, r))
	}
	return next
}

// compileRoute compiles the rules that a set has for a route; nil if there are none.
func (d *declared) compileRoute(set *ruleset.Set, r route) *endpoint {
	rules := set.Match(r.Endpoint)
	if len(rules) == 0 {
		return nil
	}
	e := d.guard.compile(r.Endpoint, r.params, func(site aspect.Site) (*aspect.Point, error) {
		return d.guard.aspect.Prepare(site, rules...)
	})
	e.origin = d
	return e
}

// point is what runs on a route; nil if nothing does.
func (g *generation) point(r ruleset.Endpoint) *aspect.Point {
	if e := g.table.at(r); e != nil {
		return e.point
	}
	return nil
}

// announce tells observers of the rules that the generation before, which may be
// nil, was not told of.
func (g *generation) announce(before *generation) {
	for e := range g.table.endpoints() {
		if e.point != nil && (before == nil || before.point(e.route) == nil) {
			e.point.Announce()
		}
	}
}

// retract tells observers of the rules that are gone.
func (g *generation) retract(next *generation) {
	for e := range g.table.endpoints() {
		if e.point != nil {
			e.point.Retract(next.point(e.route))
		}
	}
}
