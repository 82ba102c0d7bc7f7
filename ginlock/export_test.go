package ginlock

import (
	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Lookup is how [Guard.Middleware] finds the rules of a request, without running
// them.
func (g *Guard) Lookup(p ruleset.Provider) func(c *gin.Context) (found bool) {
	d := g.declaredFrom(p)
	d.start()
	return func(c *gin.Context) bool {
		e, _ := d.find(c)
		return e != nil
	}
}

// Remembered is how many routes the guard keeps in all.
func (g *Guard) Remembered() int {
	n := 0
	for _, h := range g.chained {
		n += h.routes.all().size()
	}
	for _, d := range g.declared {
		n += d.now.Load().table.size()
	}
	for _, routes := range g.routing.all() {
		n += len(routes)
	}
	return n + len(g.seen)
}

func (t table) size() (n int) {
	for _, rows := range t {
		n += len(rows)
	}
	return n
}
