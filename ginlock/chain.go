package ginlock

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
)

// middleware is what [Guard.Middleware] made for a provider.
type middleware struct {
	handler gin.HandlerFunc
	missing map[ruleset.Endpoint]bool // routes with a chain that does not have the handler
}

// chains are the chains of an engine's routes.
type chains []chainedRoute

type chainedRoute struct {
	route ruleset.Endpoint
	chain gin.HandlersChain
}

// chainsOf reads the chains of an engine from its fields, because gin shows their last handlers only.
// It returns nil if the fields of this version of gin are not known.
func chainsOf(engine *gin.Engine) chains {
	var found chains
	trees := reflect.ValueOf(engine).Elem().FieldByName("trees")
	if trees.Kind() != reflect.Slice {
		return nil
	}
	for i := range trees.Len() {
		method, root := fieldOf(trees.Index(i), "method"), fieldOf(trees.Index(i), "root")
		if method.Kind() != reflect.String || !found.add(method.String(), "", root) {
			return nil
		}
	}
	if len(found) != len(engine.Routes()) {
		return nil
	}
	return found
}

// add adds the chains of a node and of those below. It reports false for a node of another form.
func (f *chains) add(method, path string, node reflect.Value) bool {
	if node.Kind() != reflect.Pointer || node.IsNil() {
		return false
	}
	part, children := fieldOf(node.Elem(), "path"), fieldOf(node.Elem(), "children")
	chain, known := chainIn(node.Elem(), "handlers")
	if part.Kind() != reflect.String || children.Kind() != reflect.Slice || !known {
		return false
	}
	path += part.String()
	if len(chain) > 0 {
		*f = append(*f, chainedRoute{canonical(ruleset.Route(method, path)), chain})
	}
	for i := range children.Len() {
		if !f.add(method, path, children.Index(i)) {
			return false
		}
	}
	return true
}

func fieldOf(v reflect.Value, name string) reflect.Value {
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}

// chainIn is the chain in a field of a struct.
func chainIn(v reflect.Value, name string) (chain gin.HandlersChain, known bool) {
	field := fieldOf(v, name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[gin.HandlersChain]() {
		return nil, false
	}
	return *(*gin.HandlersChain)(field.Addr().UnsafePointer()), true
}

// has reports whether a chain has a handler.
func has(chain gin.HandlersChain, h gin.HandlerFunc) bool {
	return slices.ContainsFunc(chain, func(other gin.HandlerFunc) bool { return identity(other) == identity(h) })
}

// look notes the routes of engines whose chains do not have a middleware.
func (g *Guard) look(engines []*gin.Engine) {
	var all chains
	for _, engine := range engines {
		all = append(all, chainsOf(engine)...)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.middlewares {
		now := map[ruleset.Endpoint]bool{}
		for _, r := range all {
			now[r.route] = now[r.route] || !has(r.chain, m.handler)
		}
		maps.Copy(m.missing, now)
	}
}

// unguarded says why no request of a route comes to the middleware of a provider; see
// [aspect.Adapter].
func (g *Guard) unguarded(p ruleset.Provider, route ruleset.Endpoint) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.middlewares[p]; m == nil || !m.missing[route] {
		return ""
	}
	return "Middleware is not on the chain of the route, so that its handler runs unlocked: give it to Use of the engine or group before the route is registered " +
		"(a handler that calls it is not seen: pass guard.Middleware(rules) to Use itself, and write what the handler decides as the rule's when)"
}

// placed finds handlers of [Guard.Handler] that run for no route.
func (k *check) placed(h *chained, engines []*gin.Engine) {
	used := false
	for _, engine := range engines {
		found := chainsOf(engine)
		if found == nil {
			return
		}
		v := reflect.ValueOf(engine).Elem()
		noRoute, _ := chainIn(v, "noRoute")
		noMethod, _ := chainIn(v, "noMethod")
		found = append(found, chainedRoute{chain: noRoute}, chainedRoute{chain: noMethod})
		if slices.ContainsFunc(found, func(r chainedRoute) bool { return has(r.chain, h.handler) }) {
			return
		}
		used = used || has(engine.Handlers, h.handler)
	}
	p := &ruleset.Problem{Message: fmt.Sprintf("Handler at %s is on the chain of no route, so that it locks nothing: put it before the handler of a route, or give it to Use before the routes are registered", h.where)}
	if used {
		k.add(p)
		return
	}
	k.report.Warn(ruleset.Endpoint{}, p) // a handler that calls it is not seen
}
