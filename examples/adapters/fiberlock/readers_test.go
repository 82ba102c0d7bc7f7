package fiberlock_test

import (
	"cmp"
	"context"
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/adapters/fiberlock"
)

// A handler reads the order in its key, or the request is refused. Where fiber merges places, MustHold detects the wrong
// lock.
func TestReaders(t *testing.T) {
	t.Parallel()
	type target struct {
		Order string `cookie:"order" form:"order" json:"order" query:"order" uri:"order"`
	}
	bound := func(bind func(*fiber.Bind, any) error) func(fiber.Ctx) (string, error) {
		return func(c fiber.Ctx) (string, error) {
			var into target
			err := bind(c.Bind(), &into)
			return into.Order, err
		}
	}
	got := func(get func(c fiber.Ctx, key string, defaults ...string) string) func(fiber.Ctx) (string, error) {
		return func(c fiber.Ctx) (string, error) { return get(c, "order"), nil }
	}
	query, value, all := got(fiber.Ctx.Query), got(fiber.Ctx.FormValue), bound((*fiber.Bind).All)
	form := bound((*fiber.Bind).Form)
	adaptertest.Readers(t,
		reader("c.Params", "path", "", got(fiber.Ctx.Params), "200 409 - - - - 200 200 200 200"),
		reader("c.Bind().URI", "path", "", bound((*fiber.Bind).URI), "200 409 - - - - 200 200 200 200"),
		reader("c.Bind().All", "path", "", all, "200 409 - - - - 200 200 200 200"),
		reader("c.Query", "query", "", query, "200 409 400 400 400 400 - 200 200 200"),
		reader("c.Bind().Query", "query", "", bound((*fiber.Bind).Query), "200 409 400 400 400 400 - 200 200 200"),
		reader("c.FormValue", "query", "", value, "200 409 400 400 400 400 - 200 200 200"),
		reader("c.Bind().All", "query", "", all, "200 409 400 400 400 400 - 500 500 500"),
		reader("c.FormValue", "form", "", value, "200 409 400 400 400 400 400 - - -"),
		reader("c.FormValue", "multipart", "", value, "200 409 400 400 400 400 400 - - -"),
		reader("c.Bind().Form", "form", "", form, "200 409 400 400 400 400 400 - - -"),
		reader("c.Bind().Form", "form", http.MethodDelete, form, "200 409 400 400 400 400 400 - - -"),
		reader("c.Bind().Form", "multipart", "", form, "200 409 400 400 400 400 400 - - -"),
		reader("c.Bind().Body", "form", "", bound((*fiber.Bind).Body), "200 409 400 400 400 400 400 - - -"),
		reader("c.Bind().All", "form", "", all, "200 409 400 400 400 400 400 - - -"),
		reader("c.Cookies", "cookie", "", got(fiber.Ctx.Cookies), "200 409 400 400 400 400 200 200 200 200"),
		reader("c.Bind().Cookie", "cookie", "", bound((*fiber.Bind).Cookie), "200 409 400 400 400 400 200 200 200 200"),
		reader("c.Bind().All", "cookie", "", all, "200 409 400 400 400 400 500 500 500 500"),
	)
}

func reader(name, place, method string, read func(fiber.Ctx) (string, error), want string) adaptertest.Reader {
	serve := func(tb testing.TB, locks *core.Client, rule ruleset.Rule, pay func(context.Context, string) int) string {
		tb.Helper()
		path := "/orders"
		if place == "path" {
			path += "/:order"
		}
		method := cmp.Or(method, http.MethodPost)
		rule.Endpoint = ruleset.HTTP(method + " " + path)
		guard, err := httplock.New(locks, httplock.WithRules(rule))
		if err != nil {
			tb.Fatal(err)
		}
		app := fiber.New(fiber.Config{UnescapePath: true})
		app.Add([]string{method}, path, fiberlock.Lock(guard), func(c fiber.Ctx) error {
			order, err := read(c)
			if err != nil {
				return c.SendStatus(http.StatusUnprocessableEntity)
			}
			return c.SendStatus(pay(c.Context(), order))
		})
		if err := fiberlock.Check(app, guard); err != nil {
			tb.Fatal(err)
		}
		return listen(tb, app)
	}
	return adaptertest.Reader{Name: name, Place: place, Method: method, Serve: serve, Want: want}
}
