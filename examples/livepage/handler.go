package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

// newHandler returns a handler that serves the page twice: for all users, and with buttons for
// the operator.
func newHandler(page *lockz.Page, locks *core.Client, password string) (http.Handler, error) {
	shop, err := newShop(locks)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/locks", page)
	mux.Handle("/admin/locks", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isOperator(r, password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="locks"`)
			http.Error(w, "for operators", http.StatusUnauthorized)
			return
		}
		page.ServeHTTP(w, r)
	}))
	mux.Handle("/", shop)
	return mux, nil
}

func isOperator(r *http.Request, password string) bool {
	user, given, ok := r.BasicAuth()
	return ok && user == "operator" && subtle.ConstantTimeCompare([]byte(given), []byte(password)) == 1
}

// shop is the service with the locks.
type shop struct{ locks *core.Client }

func newShop(locks *core.Client) (http.Handler, error) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.Use(otelgin.Middleware("shop", otelgin.WithTracerProvider(sdktrace.NewTracerProvider())))
	guard, err := ginlock.New(locks)
	if err != nil {
		return nil, err
	}
	s := &shop{locks}
	order := ruleset.Rule{Key: "order:#{path.id}", WaitTime: time.Minute}
	stock := ruleset.Rule{Key: "stock:#{path.id}", WaitTime: time.Minute}
	item := ruleset.Rule{Key: "item:#{path.id}", WaitTime: 5 * time.Second}
	once := ruleset.Rule{Key: "item:#{path.id}", WaitTime: ruleset.NoWait}
	slow := ruleset.Rule{Key: "import:#{path.id}", LeaseTime: 2 * time.Second, WaitTime: ruleset.NoWait}
	return engine, errors.Join(
		guard.Handle(engine, http.MethodPost, "/orders/:id/pay", order, s.lockInside("stock:")),
		guard.Handle(engine, http.MethodPost, "/stock/:id/move", stock, s.lockInside("order:")),
		guard.Handle(engine, http.MethodPost, "/items/:id/buy", item, work(5*time.Millisecond)),
		guard.Handle(engine, http.MethodPost, "/items/:id/reserve", once, work(5*time.Millisecond)),
		guard.Handle(engine, http.MethodPost, "/imports/:id", slow, work(3*time.Second)),
		guard.Check(engine))
}

// lockInside returns a handler that acquires a second lock inside the first one. Two endpoints do so
// in opposite orders.
func (s *shop) lockInside(prefix string) gin.HandlerFunc {
	return func(c *gin.Context) {
		pause(c.Request.Context(), 200*time.Millisecond)
		err := s.locks.Lock(prefix+c.Param("id")).Do(c.Request.Context(), func(context.Context) error { return nil },
			core.WaitTime(40*time.Second), core.Label("inner "+c.FullPath()))
		if err != nil {
			c.Status(http.StatusConflict)
			return
		}
		c.Status(http.StatusOK)
	}
}

// work returns a handler that works for a time, or until the lock is lost.
func work(d time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		pause(c.Request.Context(), d)
		c.Status(http.StatusOK)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
