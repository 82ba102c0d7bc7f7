package ginlock

import (
	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Lookup returns the look-up by which [Guard.Middleware] finds the rules of a request, without running them.
func (g *Guard) Lookup(p ruleset.Provider) func(c *gin.Context) (found bool) {
	t, err := g.server.routes.Table(p)
	if err != nil {
		panic(err)
	}
	return func(c *gin.Context) bool {
		e, _ := g.server.find(t, c)
		return e != nil
	}
}

// LookupLock returns the look-up by which the last [Lock] of a client finds its rule for a request, without running it.
func LookupLock(locks *core.Client) func(c *gin.Context) (found bool) {
	g, err := guardOf(locks)
	if err != nil {
		panic(err)
	}
	h := g.chained[len(g.chained)-1]
	return func(c *gin.Context) bool {
		r, _ := h.server.routing.match(c)
		return h.at(r) != nil
	}
}

// Remembered returns the number of routes that the guard keeps, except for routes without rules.
func (g *Guard) Remembered() int {
	n := 0
	for _, h := range g.chained {
		n += h.places.Len()
	}
	for _, routes := range g.server.routing.all() {
		n += len(routes)
	}
	return n + len(g.server.routing.params)
}
