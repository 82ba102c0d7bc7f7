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

// chainedRoute is a route with its chain.
type chainedRoute struct {
	route ruleset.Endpoint
	chain gin.HandlersChain
}

// chainsOf returns the routes of an engine with their chains, which it reads from the fields of gin,
// because gin shows their last handlers only. The fields have the chains in the order of Routes.
// It returns nil if this version of gin has other fields.
func chainsOf(engine *gin.Engine) (found []chainedRoute) {
	trees := reflect.ValueOf(engine).Elem().FieldByName("trees")
	if trees.Kind() != reflect.Slice {
		return nil
	}
	var chains []gin.HandlersChain
	for i := range trees.Len() {
		chains = appendChains(chains, fieldOf(trees.Index(i), "root"))
	}
	for i, r := range routesOf(engine) {
		if i == len(chains) || identity(chains[i].Last()) != r.function {
			return nil
		}
		found = append(found, chainedRoute{r.Endpoint, chains[i]})
	}
	return found
}

// appendChains appends the chains of a node and of those below.
func appendChains(to []gin.HandlersChain, node reflect.Value) []gin.HandlersChain {
	node = reflect.Indirect(node)
	if chain := chainIn(node, "handlers"); len(chain) > 0 {
		to = append(to, chain)
	}
	if children := fieldOf(node, "children"); children.Kind() == reflect.Slice {
		for i := range children.Len() {
			to = appendChains(to, children.Index(i))
		}
	}
	return to
}

func fieldOf(v reflect.Value, name string) reflect.Value {
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}

// chainIn is the chain in a field of a struct, nil if it has no such field.
func chainIn(v reflect.Value, name string) gin.HandlersChain {
	field := fieldOf(v, name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[gin.HandlersChain]() {
		return nil
	}
	return *(*gin.HandlersChain)(field.Addr().UnsafePointer())
}

// has reports whether a chain has a handler.
func has(chain gin.HandlersChain, h gin.HandlerFunc) bool {
	return slices.ContainsFunc(chain, func(other gin.HandlerFunc) bool { return identity(other) == identity(h) })
}

// look notes the routes of engines whose chains do not have a middleware.
func (g *Guard) look(engines []*gin.Engine) {
	var all []chainedRoute
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
		found = append(found, chainedRoute{chain: chainIn(v, "noRoute")}, chainedRoute{chain: chainIn(v, "noMethod")})
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
