package routers_test

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/routers"
)

// target is what a handler binds a request to.
type target struct {
	Order string `form:"order" json:"order" param:"order" query:"order"`
}

// A handler reads the order in its key, or the request is refused. Where c.Bind merges places, MustHold detects the wrong
// lock.
func TestEcho_Readers(t *testing.T) {
	t.Parallel()
	got := func(get func(echo.Context, string) string) echoRead {
		return func(c echo.Context) (string, error) { return get(c, "order"), nil }
	}
	bound := func(bind func(echo.Context, any) error) echoRead {
		return func(c echo.Context) (string, error) {
			var into target
			err := bind(c, &into)
			return into.Order, err
		}
	}
	all, binder := bound(echo.Context.Bind), &echo.DefaultBinder{}
	cookie := func(c echo.Context) (string, error) {
		cookie, err := c.Cookie("order")
		if err != nil {
			return "", err
		}
		return cookie.Value, nil
	}
	adaptertest.Readers(t,
		echoReader("c.Param", "path", "", got(echo.Context.Param), "200 409 - - - - 200 200 200 200"),
		echoReader("BindPathParams", "path", "", bound(func(c echo.Context, into any) error { return binder.BindPathParams(c, into) }), "200 409 - - - - 200 200 200 200"),
		echoReader("c.Bind", "path", "", all, "200 409 - - - - 200 500 500 500"),
		echoReader("c.Bind", "path", http.MethodDelete, all, "200 409 - - - - 500 200 500 500"),
		echoReader("c.QueryParam", "query", "", got(echo.Context.QueryParam), "200 409 400 400 400 400 - 200 200 200"),
		echoReader("BindQueryParams", "query", "", bound(func(c echo.Context, into any) error { return binder.BindQueryParams(c, into) }), "200 409 400 400 400 400 - 200 200 200"),
		echoReader("c.Bind", "query", http.MethodDelete, all, "200 409 400 400 400 400 - 200 500 500"),
		echoReader("c.FormValue", "query", "", got(echo.Context.FormValue), "200 409 400 400 400 400 - 500 200 200"),
		echoReader("c.FormValue", "form", "", got(echo.Context.FormValue), "200 409 400 400 400 400 400 - - -"),
		echoReader("c.Bind", "form", "", all, "200 409 400 400 400 400 400 - - -"),
		echoReader("c.Bind", "multipart", "", all, "200 409 400 400 400 400 400 - - -"),
		echoReader("c.Cookie", "cookie", "", cookie, "200 409 400 400 400 400 200 200 200 200"),
	)
}

type echoRead func(echo.Context) (string, error)

func echoReader(name, place, method string, read echoRead, want string) adaptertest.Reader {
	return adaptertest.Reader{Name: name, Place: place, Method: method, Want: want, Serve: func(tb testing.TB, locks *core.Client, rule ruleset.Rule, pay func(context.Context, string) int) string {
		tb.Helper()
		guard, method, path := guardOf(tb, locks, rule, method, place)
		e := echo.New()
		e.Pre(routers.EchoRouted)
		e.Use(routers.EchoMiddleware(guard))
		e.Add(method, path, func(c echo.Context) error {
			order, err := read(c)
			if err != nil {
				return c.NoContent(http.StatusUnprocessableEntity)
			}
			return c.NoContent(pay(c.Request().Context(), order))
		})
		return served(tb, e, guard.Check(routers.EchoPatterns(e)...))
	}}
}

func TestEcho5_Readers(t *testing.T) {
	t.Parallel()
	got := func(get func(*echo5.Context, string) string) echo5Read {
		return func(c *echo5.Context) (string, error) { return get(c, "order"), nil }
	}
	bound := func(bind func(*echo5.Context, any) error) echo5Read {
		return func(c *echo5.Context) (string, error) {
			var into target
			err := bind(c, &into)
			return into.Order, err
		}
	}
	all := bound((*echo5.Context).Bind)
	cookie := func(c *echo5.Context) (string, error) {
		cookie, err := c.Cookie("order")
		if err != nil {
			return "", err
		}
		return cookie.Value, nil
	}
	adaptertest.Readers(t,
		echo5Reader("c.Param", "path", "", got((*echo5.Context).Param), "200 409 - - - - 200 200 200 200"),
		echo5Reader("BindPathValues", "path", "", bound(echo5.BindPathValues), "200 409 - - - - 200 200 200 200"),
		echo5Reader("c.Bind", "path", "", all, "200 409 - - - - 200 500 500 500"),
		echo5Reader("c.Bind", "path", http.MethodDelete, all, "200 409 - - - - 500 200 500 500"),
		echo5Reader("c.QueryParam", "query", "", got((*echo5.Context).QueryParam), "200 409 400 400 400 400 - 200 200 200"),
		echo5Reader("BindQueryParams", "query", "", bound(echo5.BindQueryParams), "200 409 400 400 400 400 - 200 200 200"),
		echo5Reader("c.Bind", "query", http.MethodDelete, all, "200 409 400 400 400 400 - 200 500 500"),
		echo5Reader("c.FormValue", "query", "", got((*echo5.Context).FormValue), "200 409 400 400 400 400 - 500 200 200"),
		echo5Reader("c.FormValue", "form", "", got((*echo5.Context).FormValue), "200 409 400 400 400 400 400 - - -"),
		echo5Reader("c.Bind", "form", "", all, "200 409 400 400 400 400 400 - - -"),
		echo5Reader("c.Bind", "multipart", "", all, "200 409 400 400 400 400 400 - - -"),
		echo5Reader("c.Cookie", "cookie", "", cookie, "200 409 400 400 400 400 200 200 200 200"),
	)
}

type echo5Read func(*echo5.Context) (string, error)

func echo5Reader(name, place, method string, read echo5Read, want string) adaptertest.Reader {
	return adaptertest.Reader{Name: name, Place: place, Method: method, Want: want, Serve: func(tb testing.TB, locks *core.Client, rule ruleset.Rule, pay func(context.Context, string) int) string {
		tb.Helper()
		guard, method, path := guardOf(tb, locks, rule, method, place)
		e := echo5.New()
		e.Use(routers.Echo5Middleware(guard))
		e.Add(method, path, func(c *echo5.Context) error {
			order, err := read(c)
			if err != nil {
				return c.NoContent(http.StatusUnprocessableEntity)
			}
			return c.NoContent(pay(c.Request().Context(), order))
		})
		return served(tb, e, guard.Check(routers.Echo5Patterns(e)...))
	}}
}

// guardOf returns a guard with the rule for the route of a place.
func guardOf(tb testing.TB, locks *core.Client, rule ruleset.Rule, method, place string) (guard *httplock.Guard, _, path string) {
	tb.Helper()
	path = "/orders"
	if place == "path" {
		path += "/:order"
	}
	method = cmp.Or(method, http.MethodPost)
	rule.Endpoint = ruleset.HTTP(method + " " + path)
	guard, err := httplock.New(locks, httplock.WithRules(rule))
	if err != nil {
		tb.Fatal(err)
	}
	return guard, method, path
}

// served serves a router, whose Check returned err.
func served(tb testing.TB, router http.Handler, err error) string {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	server := httptest.NewServer(routers.Decoded(router))
	tb.Cleanup(server.Close)
	return server.URL
}
