package orders

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/ginlock"
)

// openHTTP makes the routes, and puts those under locks that the rules name.
func (s *Service) openHTTP(cfg Config) (err error) {
	if s.guard, err = ginlock.New(cfg.Locks, ginlock.WithFallback("shelf", onShelf)); err != nil {
		return err
	}
	r := gin.New()
	r.Use(gin.Recovery(), s.guard.Middleware(s.rules))
	r.POST("/orders/:order/pay", s.reply("paid"))
	r.POST("/orders/:order/pack", s.reply("packed"))
	r.POST("/orders/:order/remind", s.reply("reminded"))
	r.POST("/orders/:order/invoice", s.reply("printed"))
	r.POST("/admin/reindex", s.reply("reindexed"))
	r.POST("/admin/login", s.reply("logged in"))
	s.engine = r
	return s.guard.Check(r) // when all routes are there
}

// reply makes a handler that works for an order, and says that it is done.
func (s *Service) reply(done string) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := s.work(c.Request.Context(), subject(c)); err != nil {
			_ = c.Error(err) //nolint:errcheck // gives back what it was given
			return
		}
		c.JSON(http.StatusOK, gin.H{"order": subject(c), "state": done})
	}
}

// subject is the order, or the path of what concerns none.
func subject(c *gin.Context) string {
	if order := c.Param("order"); order != "" {
		return order
	}
	return c.FullPath()
}

// onShelf runs instead of a handler where a rule says fallback: shelf.
func onShelf(c *gin.Context) {
	c.JSON(http.StatusAccepted, gin.H{"order": subject(c), "state": "on the shelf, to be packed later"})
}
