package shop

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/otel/propagation"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

// HTTP returns the Gin engine of the shop and its guard, which has the kill switch.
func (s *Shop) HTTP() (*gin.Engine, *ginlock.Guard, error) {
	guard, err := ginlock.New(s.Locks, ginlock.WithFallback("waiting-list", joinWaitingList))
	if err != nil {
		return nil, nil, err
	}
	r := gin.New()
	r.Use(gin.Recovery(), otelgin.Middleware("shop",
		otelgin.WithTracerProvider(s.Traces), otelgin.WithPropagators(propagation.TraceContext{})))
	s.sellingRoutes(r, guard)
	reservingRoutes(r, guard)
	err = guard.Check(r) // reports every problem of every rule before the server starts
	return r, guard, err
}

func (s *Shop) sellingRoutes(r *gin.Engine, guard *ginlock.Guard) {
	r.POST("/items/:item/buy", guard.Handler(ruleset.Rule{
		Name:     "buy",
		Key:      "stock:#{path.item}",
		WaitTime: 30 * time.Second, // a queue at the till; the watchdog renews the lease
	}), func(c *gin.Context) {
		left, err := s.buy(c.Request.Context(), c.Param("item"))
		answer(c, gin.H{"left": left}, err)
	})

	r.POST("/items/:item/count", guard.Handler(ruleset.Rule{
		Name:     "count",
		Key:      "stock:#{path.item}",
		WaitTime: ruleset.NoWait,
	}), takes(s.count))

	r.POST("/items/:item/exchange", guard.Handler(ruleset.Rule{
		Name: "exchange",
		Key:  "stock:#{path.item}",
	}), takes(s.exchange))
}

// reservingRoutes adds a reservation route for each strategy for a taken lock.
func reservingRoutes(r *gin.Engine, guard *ginlock.Guard) {
	for path, strategy := range strategies {
		r.POST("/items/:item/"+path, guard.Handler(reservation(strategy)), func(c *gin.Context) {
			c.JSON(http.StatusOK, gin.H{"receipt": "reserved " + c.Param("item")})
		})
	}
}

var strategies = map[string]failpolicy.Strategy{
	"reserve-or-fail":  failpolicy.Error,
	"reserve-or-skip":  failpolicy.Skip,
	"reserve-or-null":  failpolicy.NullResponse,
	"reserve-or-queue": failpolicy.Fallback,
	"reserve-anyway":   failpolicy.Proceed,
}

func reservation(onBusy failpolicy.Strategy) ruleset.Rule {
	rule := ruleset.Rule{
		Name:      "reserve-" + string(onBusy),
		Key:       "stock:#{path.item}",
		WaitTime:  100 * time.Millisecond,
		LeaseTime: 5 * time.Second,
		OnBusy:    onBusy,
	}
	if onBusy == failpolicy.Fallback {
		rule.Fallback = "waiting-list"
	}
	return rule
}

// joinWaitingList runs instead of a reservation, without the lock.
func joinWaitingList(c *gin.Context) {
	c.JSON(http.StatusAccepted, gin.H{"receipt": "on the waiting list for " + c.Param("item")})
}

// takes returns a handler that runs work for the time "for" in the query.
func takes(work func(ctx context.Context, item string, takes time.Duration) (int, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		d, err := time.ParseDuration(c.DefaultQuery("for", "1s"))
		if err != nil {
			c.JSON(http.StatusBadRequest, gin.H{"error": "for: write a duration, such as 500ms"})
			return
		}
		left, err := work(c.Request.Context(), c.Param("item"), d)
		answer(c, gin.H{"left": left}, err)
	}
}

// answer answers the request or passes the error on: the guard then distinguishes a lost lock
// from a client that left.
func answer(c *gin.Context, body gin.H, err error) {
	switch {
	case err == nil:
		c.JSON(http.StatusOK, body)
	case errors.Is(err, ErrSoldOut):
		c.JSON(http.StatusGone, gin.H{"error": err.Error()})
	default:
		_ = c.Error(err) //nolint:errcheck // returns its argument
	}
}
