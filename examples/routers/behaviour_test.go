package routers_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"

	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/routers"
	"github.com/interlock-go/interlock/failpolicy"
)

// order does the work of a handler: it returns the text of the answer, or an error.
type order = func(ctx context.Context, id string) (string, error)

func TestBehaviour(t *testing.T) {
	t.Parallel()
	t.Run("chi", func(t *testing.T) {
		t.Parallel()
		adaptertest.Run(t, program{"POST /orders/{id}/pay", func(g *httplock.Guard, pay order) (http.Handler, error) {
			return routers.Chi(g, plain(pay), http.NotFound)
		}}.adapter())
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
		}}.adapter())
	})
	t.Run("echo5", func(t *testing.T) {
		t.Parallel()
		adaptertest.Run(t, program{"POST /orders/:id/pay", func(g *httplock.Guard, pay order) (http.Handler, error) {
			return routers.Echo5(g, func(c *echo5.Context) error {
				text, err := pay(c.Request().Context(), c.Param("id"))
				if err != nil {
					return err
				}
				return c.String(http.StatusOK, text)
			}, echo5.WrapHandler(http.NotFoundHandler()))
		}}.adapter())
	})
}

// plain returns a handler of net/http.
func plain(do order) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := do(r.Context(), r.PathValue("id"))
		switch {
		case err != nil && httplock.Lost(r.Context()) != nil:
			return // the handler gives up, and the guard answers
		case err != nil:
			http.Error(w, "declined", http.StatusInternalServerError)
		default:
			_, _ = io.WriteString(w, text)
		}
	}
}

// program is a program of package adaptertest behind a router.
type program struct {
	route string
	serve func(guard *httplock.Guard, pay order) (http.Handler, error)
}

func (p program) adapter() adaptertest.Adapter {
	return adaptertest.Adapter{
		Endpoint: ruleset.HTTP(p.route), ID: "path.id", Tenant: `header["X-Tenant"]`, Response: `{"receipt": "later"}`,
		Code: func(s failpolicy.Status) int { return s.HTTP }, Start: p.start,
	}
}

func (p program) start(tb testing.TB, what *adaptertest.Program) (adaptertest.Server, error) {
	tb.Helper()
	opts := []httplock.Option{
		httplock.WithFallback("queue", plain(what.Queue)), httplock.WithBuffer(1 << 10), httplock.WithTokenHeader(),
	}
	for _, r := range what.InCode {
		r.Endpoint = ruleset.HTTP(p.route)
		opts = append(opts, httplock.WithRules(r))
	}
	if len(what.InCode) == 0 {
		opts = append(opts, httplock.WithSet(what.Set))
	}
	guard, err := httplock.New(what.Locks, opts...)
	if err != nil {
		return adaptertest.Server{}, err
	}
	shop, checked := p.serve(guard, what.Pay)
	return adaptertest.ServeHTTP(tb, shop, adaptertest.Server{
		Check: func() error { return checked }, Aspect: guard.Aspect(), Hold: httplock.Hold,
	}), nil
}
