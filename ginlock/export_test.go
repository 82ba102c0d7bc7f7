package ginlock

import (
	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Lookup is how [Guard.Middleware] finds the rules of a request, without running
// them.
func (g *Guard) Lookup(p ruleset.Provider) func(c *gin.Context) (found bool) {
	t, err := g.routes.Table(p)
	if err != nil {
		panic(err)
	}
	return func(c *gin.Context) bool {
		e, _ := g.find(t, c)
		return e != nil
	}
}

// Remembered is how many routes the guard keeps in all, but for those without rules.
func (g *Guard) Remembered() int {
	n := 0
	for _, h := range g.chained {
		n += len(h.routes.Entries())
	}
	for _, routes := range g.routing.all() {
		n += len(routes)
	}
	return n + len(g.params)
}
