package orders

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/ginlock"
)

// openHTTP registers the routes and locks the routes that the rules name.
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
	return s.guard.Check(r) // when all routes are registered
}

// reply returns a handler that works on an order and answers when it is done.
func (s *Service) reply(done string) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := s.work(c.Request.Context(), subject(c)); err != nil {
			_ = c.Error(err) //nolint:errcheck // returns its argument
			return
		}
		c.JSON(http.StatusOK, gin.H{"order": subject(c), "state": done})
	}
}

// subject returns the order or, for a request without an order, the path.
func subject(c *gin.Context) string {
	if order := c.Param("order"); order != "" {
		return order
	}
	return c.FullPath()
}

// onShelf runs instead of a handler if a rule has fallback: shelf.
func onShelf(c *gin.Context) {
	c.JSON(http.StatusAccepted, gin.H{"order": subject(c), "state": "on the shelf, to be packed later"})
}
