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
	return func(c *gin.Context) bool { return d.find(c) != nil }
}
