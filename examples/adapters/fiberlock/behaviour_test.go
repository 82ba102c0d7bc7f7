package fiberlock_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	recovery "github.com/gofiber/fiber/v3/middleware/recover"

	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/adapters/fiberlock"
	"github.com/interlock-go/interlock/failpolicy"
)

const route = "POST /orders/:id/pay"

func TestBehaviour(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, adaptertest.Adapter{
		Endpoint: ruleset.HTTP(route), ID: "path.id", Tenant: `header["X-Tenant"]`, Response: `{"receipt": "later"}`,
		Code: func(s failpolicy.Status) int { return s.HTTP }, Unaware: true, Start: serveProgram,
	})
}

// serveProgram serves a program of package adaptertest.
func serveProgram(tb testing.TB, p *adaptertest.Program) (adaptertest.Server, error) {
	tb.Helper()
	opts := []httplock.Option{
		httplock.WithFallback("queue", fiberlock.Handler(answering(p.Queue))), httplock.WithBuffer(1 << 10), httplock.WithTokenHeader(),
	}
	for _, r := range p.InCode {
		r.Endpoint = ruleset.HTTP(route)
		opts = append(opts, httplock.WithRules(r))
	}
	if len(p.InCode) == 0 {
		opts = append(opts, httplock.WithSet(p.Set))
	}
	guard, err := httplock.New(p.Locks, opts...)
	if err != nil {
		return adaptertest.Server{}, err
	}
	app := fiber.New(fiber.Config{UnescapePath: true, ErrorHandler: func(c fiber.Ctx, err error) error {
		if _, lost := errors.AsType[*fiberlock.LostError](err); lost {
			return nil // the guard has answered
		}
		return fiber.DefaultErrorHandler(c, err)
	}})
	app.Use(func(c fiber.Ctx) error {
		for name, values := range adaptertest.Headers() {
			for _, value := range values {
				c.Response().Header.Add(name, value)
			}
		}
		return c.Next()
	}, recovery.New())
	app.Post("/orders/:id/pay", fiberlock.Lock(guard), answering(p.Pay))
	checked := fiberlock.Check(app, guard)
	return adaptertest.CallHTTP(tb, listen(tb, app), adaptertest.Server{
		Check: func() error { return checked }, Aspect: guard.Aspect(), Hold: httplock.Hold,
	}), nil
}

func answering(do func(context.Context, string) (string, error)) fiber.Handler {
	return func(c fiber.Ctx) error {
		text, err := do(c.Context(), strings.Clone(c.Params("id")))
		if err != nil {
			return err
		}
		return c.SendString(text)
	}
}

// listen serves app until the test ends and returns its URL. It does not wait for requests that wait for a lock, because
// the client of locks is closed later.
func listen(tb testing.TB, app *fiber.App) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	go func() { _ = app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	tb.Cleanup(func() { _ = app.ShutdownWithTimeout(time.Millisecond) })
	return "http://" + listener.Addr().String()
}
