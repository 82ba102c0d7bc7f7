package ginlock_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

func TestBehaviour(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, program{})
}

// program is the program of package adaptertest in Gin.
type program struct{}

func (program) Endpoint() ruleset.Endpoint   { return ruleset.HTTP("POST " + payPath) }
func (program) ID() string                   { return "path.id" }
func (program) Tenant() string               { return `header["X-Tenant"]` }
func (program) Response() string             { return `{"receipt": "later"}` }
func (program) Code(s failpolicy.Status) int { return s.HTTP }

// ginKey leads from the context of a handler to gin's.
type ginKey struct{}

func (program) handler(do func(context.Context, string) (string, error)) gin.HandlerFunc {
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

func (p program) Start(tb testing.TB, what *adaptertest.Program) (adaptertest.Server, error) {
	tb.Helper()
	opts := []ginlock.Option{
		ginlock.WithFallback("queue", p.handler(what.Queue)), ginlock.WithBuffer(1 << 10), ginlock.WithTokenHeader(),
	}
	guard, err := ginlock.New(what.Locks, opts...)
	if err != nil {
		return nil, err
	}
	engine := gin.New()
	engine.Use(gin.CustomRecoveryWithWriter(io.Discard, func(c *gin.Context, v any) { c.String(http.StatusInternalServerError, "%v", v) }))
	engine.Use(guard.Middleware(what.Set))
	if len(what.InCode) > 0 {
		err = guard.HandleRules(engine, http.MethodPost, payPath, what.InCode, p.handler(what.Pay))
	} else {
		engine.POST(payPath, p.handler(what.Pay))
	}
	return served{adaptertest.ServeHTTP(tb, engine), guard, engine}, err
}

type served struct {
	adaptertest.HTTP
	guard  *ginlock.Guard
	engine *gin.Engine
}

func (s served) Check() error           { return s.guard.Check(s.engine) }
func (s served) Aspect() *aspect.Aspect { return s.guard.Aspect() }
func (s served) Hold(ctx context.Context) *core.Hold {
	c, ok := ctx.Value(ginKey{}).(*gin.Context)
	if !ok {
		panic(errors.New("not the context of a handler"))
	}
	return ginlock.Hold(c)
}
