package routers_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/routers"
	"github.com/interlock-go/interlock/failpolicy"
)

// order is what a handler does: it answers with a text, or fails.
type order = func(ctx context.Context, id string) (string, error)

func TestBehaviour(t *testing.T) {
	t.Parallel()
	t.Run("chi", func(t *testing.T) {
		t.Parallel()
		adaptertest.Run(t, program{"POST /orders/{id}/pay", func(g *httplock.Guard, pay order) (http.Handler, error) {
			return routers.Chi(g, plain(pay), http.NotFound)
		}})
	})
	t.Run("echo", func(t *testing.T) {
		t.Parallel()
		adaptertest.Run(t, program{"POST /orders/:id/pay", func(g *httplock.Guard, pay order) (http.Handler, error) {
			return routers.Echo(g, func(c echo.Context) error {
				text, err := pay(c.Request().Context(), c.Param("id"))
				if err != nil {
					return err
				}
				return c.String(http.StatusOK, text)
			}, echo.NotFoundHandler)
		}})
	})
}

// plain is a handler of net/http.
func plain(do order) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := do(r.Context(), r.PathValue("id"))
		cause := context.Cause(r.Context())
		switch {
		case err != nil && (errors.Is(cause, core.ErrLost) || errors.Is(cause, core.ErrClosed)):
			return // it has given up
		case err != nil:
			http.Error(w, "declined", http.StatusInternalServerError)
		default:
			_, _ = io.WriteString(w, text)
		}
	}
}

// program is the program of package adaptertest, behind one router.
type program struct {
	route string
	serve func(guard *httplock.Guard, pay order) (http.Handler, error)
}

func (p program) Endpoint() ruleset.Endpoint { return ruleset.HTTP(p.route) }
func (program) ID() string                   { return "path.id" }
func (program) Tenant() string               { return `header["X-Tenant"]` }
func (program) Response() string             { return `{"receipt": "later"}` }
func (program) Code(s failpolicy.Status) int { return s.HTTP }

func (p program) Start(tb testing.TB, what *adaptertest.Program) (adaptertest.Server, error) {
	tb.Helper()
	opts := []httplock.Option{
		httplock.WithFallback("queue", plain(what.Queue)), httplock.WithBuffer(1 << 10), httplock.WithTokenHeader(),
	}
	for _, r := range what.InCode {
		r.Endpoint = p.Endpoint()
		opts = append(opts, httplock.WithRules(r))
	}
	if len(what.InCode) == 0 {
		opts = append(opts, httplock.WithSet(what.Set))
	}
	guard, err := httplock.New(what.Locks, opts...)
	if err != nil {
		return nil, err
	}
	shop, checked := p.serve(guard, what.Pay)
	return server{adaptertest.ServeHTTP(tb, shop), guard, checked}, nil
}

// server is a program that runs; it was checked when its routes were registered.
type server struct {
	adaptertest.HTTP
	guard   *httplock.Guard
	checked error
}

func (s server) Check() error                      { return s.checked }
func (s server) Aspect() *aspect.Aspect            { return s.guard.Aspect() }
func (server) Hold(ctx context.Context) *core.Hold { return httplock.Hold(ctx) }
