package ginlock

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
)

// routing tells which route gin has matched for a request. The method that the
// request has by now does not: a middleware may have changed it, to whatever a client
// wished. What gin has matched shows in the path of the route and in the function at
// the end of the chain; the engine says under which methods it has these two. So there
// are as many entries as the engines have routes.
type routing struct {
	known atomic.Pointer[map[string][]*route] // by path; nil before the first are added
	mu    sync.Mutex                          // for those who add
	told  sync.Map                            // paths of which observers were warned
}

// noRoute is what requests have in common that no route matches: their method is the
// client's to invent and no part of it.
var noRoute = &route{Endpoint: ruleset.Route("*", "*")} //nolint:gochecknoglobals // a value that is only read

// ambiguousError says that the method of a request was changed, and that its function
// serves several: which of them gin has matched cannot be known.
type ambiguousError struct {
	path   string
	routes []*route // none: the engine is not known
}

// Error says what to change.
func (e *ambiguousError) Error() string { return "ginlock: " + e.path + ": " + e.advice() }

func (e *ambiguousError) advice() string {
	if len(e.routes) == 0 {
		return "the route is of an engine that the guard does not know: give the engine to Check"
	}
	methods := make([]string, len(e.routes))
	for i, r := range e.routes {
		methods[i] = r.Method
	}
	return fmt.Sprintf("the method of a request was changed before the guard, to one that is not of this route, and one function serves several (%s), "+
		"so that its rule cannot be known: change methods before the engine, or go on with engine.HandleContext", strings.Join(methods, ", "))
}

// of is the route that gin has matched, noRoute if there is none. For a known route
// whose method was not changed it takes no lock and does not allocate.
func (r *routing) of(c *gin.Context) (*route, *ambiguousError) {
	if c.FullPath() == "" {
		return noRoute, nil
	}
	found, exact := r.find(c)
	if exact != nil {
		return exact, nil
	}
	if engine := engineOf(c); engine != nil {
		r.add(routesOf(engine)) // it is a new one, or has more routes by now
		found, exact = r.find(c)
	}
	switch {
	case exact != nil:
		return exact, nil
	case len(found) == 1:
		return found[0], nil
	default:
		return nil, &ambiguousError{c.FullPath(), found}
	}
}

// find looks for the routes of the request's path and function. exact is the one of
// its method, which the function sees, too.
func (r *routing) find(c *gin.Context) (found []*route, exact *route) {
	function := identity(c.Handler())
	for _, route := range r.all()[c.FullPath()] {
		switch {
		case route.function != function:
		case route.Method == c.Request.Method:
			return nil, route
		default:
			found = append(found, route)
		}
	}
	return found, nil
}

func (r *routing) all() map[string][]*route {
	if known := r.known.Load(); known != nil {
		return *known
	}
	return nil
}

// add adds the routes that are not there yet.
func (r *routing) add(routes []route) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := map[string][]*route{}
	maps.Copy(next, r.all())
	for _, added := range routes {
		if !slices.ContainsFunc(next[added.Path], added.same) {
			next[added.Path] = append(slices.Clip(next[added.Path]), &added)
		}
	}
	r.known.Store(&next)
}

// identity tells functions apart, also closures of one text: a func value is a
// pointer to its closure.
func identity(h gin.HandlerFunc) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&h)) //nolint:gosec // reads the pointer; reflect gives that of the code, which closures share
}

// engineOf is the engine that serves a request, nil if this version of gin does not
// show it: then the engines given to Check are known.
func engineOf(c *gin.Context) *gin.Engine {
	field := reflect.ValueOf(c).Elem().FieldByName("engine")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*gin.Engine]() {
		return nil
	}
	return (*gin.Engine)(field.UnsafePointer())
}

// refuseUnmatched answers a request whose route cannot be known, and warns observers
// once for each path.
func (g *Guard) refuseUnmatched(c *gin.Context, why *ambiguousError) {
	if _, again := g.routing.told.LoadOrStore(why.path, true); !again {
		g.aspect.Warn(&ruleset.Problem{Endpoint: ruleset.Route("*", why.path), Message: why.advice()})
	}
	g.refuse(c, ruleset.Route("*", why.path), why)
}
