package ginlock_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

func TestBehaviour(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, adaptertest.Adapter{
		Endpoint: ruleset.HTTP("POST " + payPath), ID: "path.id", Tenant: `header["X-Tenant"]`, Response: `{"receipt": "later"}`,
		Code: func(s failpolicy.Status) int { return s.HTTP }, Start: serveProgram,
	})
}

// ginKey is the key of gin's context in the context of a handler.
type ginKey struct{}

func handlerOf(do func(context.Context, string) (string, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx := context.WithValue(c.Request.Context(), ginKey{}, c)
		text, err := do(ctx, c.Param("id"))
		switch {
		case err != nil && ctx.Err() != nil:
			_ = c.Error(err)
		case err != nil:
			c.String(http.StatusInternalServerError, "declined")
		default:
			c.String(http.StatusOK, text)
		}
	}
}

// serveProgram serves the program of package adaptertest in Gin.
func serveProgram(tb testing.TB, what *adaptertest.Program) (adaptertest.Server, error) {
	tb.Helper()
	opts := []ginlock.Option{
		ginlock.WithFallback("queue", handlerOf(what.Queue)), ginlock.WithBuffer(1 << 10), ginlock.WithTokenHeader(),
	}
	guard, err := ginlock.New(what.Locks, opts...)
	if err != nil {
		return adaptertest.Server{}, err
	}
	engine := gin.New()
	engine.Use(gin.CustomRecoveryWithWriter(io.Discard, func(c *gin.Context, v any) { c.String(http.StatusInternalServerError, "%v", v) }))
	engine.Use(guard.Middleware(what.Set))
	if len(what.InCode) == 1 {
		err = guard.Handle(engine, http.MethodPost, payPath, what.InCode[0], handlerOf(what.Pay))
	} else {
		engine.POST(payPath, handlerOf(what.Pay))
	}
	return adaptertest.ServeHTTP(tb, engine, adaptertest.Server{
		Check: func() error { return guard.Check(engine) }, Aspect: guard.Aspect(), Hold: holdOf,
	}), err
}

func holdOf(ctx context.Context) *core.Hold {
	c, ok := ctx.Value(ginKey{}).(*gin.Context)
	if !ok {
		panic(errors.New("not the context of a handler"))
	}
	return ginlock.Hold(c)
}
