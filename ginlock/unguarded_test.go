package ginlock_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
)

// What the package comment advises to find a route without its guard in a program without Check.
func TestUnguardedRoute_IsFoundByAStrangersLockAndByMustHold(t *testing.T) {
	t.Parallel()
	pay := func(c *gin.Context) {
		core.MustHold(c.Request.Context(), "order:"+c.Param("id"))
		c.Status(http.StatusNoContent)
	}
	for name, tt := range map[string]struct {
		register     func(r *gin.Engine, guard gin.HandlerFunc)
		taken, after int // answers: while a stranger holds the lock, and then
	}{
		"before the routes": {func(r *gin.Engine, guard gin.HandlerFunc) { r.Use(guard); r.POST(payPath, pay) }, 409, 204},
		"after the routes":  {func(r *gin.Engine, guard gin.HandlerFunc) { r.POST(payPath, pay); r.Use(guard) }, 500, 500},
		"not at all":        {func(r *gin.Engine, _ gin.HandlerFunc) { r.POST(payPath, pay) }, 500, 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: ruleset.HTTP("POST " + payPath), Key: "order:#{path.id}"}})
				if err != nil {
					t.Fatal(err)
				}
				s.engine.Use(gin.CustomRecoveryWithWriter(nil, func(c *gin.Context, _ any) { c.Status(http.StatusInternalServerError) }))
				tt.register(s.engine, s.guard.Middleware(set))
				want(t, "Check", s.guard.Check(s.engine) == nil, tt.taken == http.StatusConflict)
				s.redis.Take(prefix+"order:42", time.Hour)
				want(t, "status while a stranger holds the lock", s.do(t, request{}).Code, tt.taken)
				s.redis.Free(prefix + "order:42")
				want(t, "status then", s.do(t, request{}).Code, tt.after)
			})
		})
	}
}
