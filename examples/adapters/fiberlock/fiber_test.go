package fiberlock_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofiber/fiber/v3"
	fibertimeout "github.com/gofiber/fiber/v3/middleware/timeout"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/adapters/fiberlock"
	"github.com/interlock-go/interlock/failpolicy"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // warnings and failures are part of the tests
	os.Exit(m.Run())                               // fasthttp keeps goroutines, so the tests do not look for leaks
}

// bench is an app behind a guard.
type bench struct {
	t      *testing.T
	redis  *redistest.Server
	locks  *core.Client
	guard  *httplock.Guard
	app    *fiber.App
	warned []string
}

// newBench returns a bench whose guard has the given rules and options.
func newBench(t *testing.T, given ...any) *bench {
	t.Helper()
	b := &bench{t: t, redis: redistest.New(t), app: fiber.New(fiber.Config{UnescapePath: true, DisableDefaultDate: true})}
	var err error
	b.locks, err = core.New(b.redis.Client(), core.WithObserver(&core.Observer{
		Rules: &aspect.Observer{Warning: func(p *ruleset.Problem) { b.warned = append(b.warned, p.Error()) }},
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	opts := []httplock.Option{httplock.WithBuffer(1 << 10), httplock.WithTokenHeader()}
	for _, v := range given {
		switch v := v.(type) {
		case ruleset.Rule:
			opts = append(opts, httplock.WithRules(v))
		case httplock.Option:
			opts = append(opts, v)
		}
	}
	b.guard, err = httplock.New(b.locks, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// noWait returns a rule that does not wait.
func noWait(route, key string) ruleset.Rule {
	return ruleset.Rule{Endpoint: ruleset.HTTP(route), Key: key, WaitTime: ruleset.NoWait}
}

// check fails the test if Check finds a problem.
func (b *bench) check() {
	b.t.Helper()
	if err := fiberlock.Check(b.app, b.guard); err != nil {
		b.t.Fatal(err)
	}
}

// want sends a request, checks the status of the answer and returns its body.
func (b *bench) want(code int, method, path string, change ...func(*http.Request)) string {
	b.t.Helper()
	body, _ := b.answer(code, method, path, change...)
	return body
}

func (b *bench) answer(code int, method, path string, change ...func(*http.Request)) (string, http.Header) {
	b.t.Helper()
	r := httptest.NewRequest(method, path, http.NoBody)
	for _, do := range change {
		do(r)
	}
	response, err := b.app.Test(r, fiber.TestConfig{})
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Error(err)
	}
	if response.StatusCode != code {
		b.t.Errorf("%s %s: got %d %s, want %d", method, path, response.StatusCode, text, code)
	}
	return string(text), response.Header
}

func done(c fiber.Ctx) error { return c.SendStatus(http.StatusNoContent) }

// A hold that a handler hands over keeps its key, and a function of WithVariable may keep strings of its request, although
// fasthttp reuses the memory of a request.
func TestLock_Copies(t *testing.T) {
	t.Parallel()
	var kept *http.Request
	b := newBench(t, httplock.WithVariable("order", func(r *http.Request) (string, error) {
		if kept == nil {
			kept = r
		}
		return r.PathValue("id"), nil
	}), noWait("POST /orders/:id", "#{order}"))
	var first *core.Hold
	b.app.Post("/orders/:id", fiberlock.Lock(b.guard), func(c fiber.Ctx) error {
		if first == nil {
			_, first = httplock.Hold(c.Context()).Handover()
		}
		return done(c)
	})
	b.check()
	url, client := listen(t, b.app), &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	for id := range 200 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("%s/orders/%03d", url, id), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Tenant", fmt.Sprintf("%03d", id))
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusNoContent {
			t.Errorf("%d: got %d", id, response.StatusCode)
		}
	}
	state, err := b.locks.Lock("000").State(t.Context())
	if err != nil || first.Key() != "000" || len(state.Holders) != 1 {
		t.Errorf("the hold has key %q, the lock 000 has holders %v: %v", first.Key(), state.Holders, err)
	}
	if err := first.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if id, tenant := kept.PathValue("id"), kept.Header.Get("X-Tenant"); id != "000" || tenant != "000" || kept.RequestURI != "/orders/000" || kept.Method != http.MethodPost {
		t.Errorf("the first request has become %s %s with id %s and tenant %s", kept.Method, kept.RequestURI, id, tenant)
	}
}

// A key over a header that a client has sent twice refuses the request.
func TestLock_RepeatedHeader(t *testing.T) {
	t.Parallel()
	b := newBench(t, noWait("POST /orders", `tenant:#{header["X-Tenant"]}`))
	b.app.Post("/orders", fiberlock.Lock(b.guard), func(c fiber.Ctx) error {
		t.Error("the handler runs")
		return done(c)
	})
	b.check()
	b.want(http.StatusBadRequest, http.MethodPost, "/orders", func(r *http.Request) { r.Header["X-Tenant"] = []string{"acme", "other"} })
}

// A guard that is not on the route does not know the route, and refuses every request.
func TestLock_Use(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(b *bench){
		"use": func(b *bench) {
			b.app.Use(fiberlock.Lock(b.guard))
			b.app.Post("/orders/:id", done)
		},
		"use beside a route with its path": func(b *bench) {
			b.app.Use(fiberlock.Lock(b.guard))
			b.app.Post("/", done)
			b.app.Post("/orders/:id", done)
		},
		"group": func(b *bench) { b.app.Group("/orders", fiberlock.Lock(b.guard)).Post("/:id", done) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, noWait("POST /orders/:id", "order:#{path.id}"))
			put(b)
			b.check()
			for range 2 {
				b.want(http.StatusInternalServerError, http.MethodPost, "/orders/42")
			}
			if len(b.warned) != 1 || !strings.Contains(b.warned[0], "Middleware") {
				t.Errorf("observers got the warnings %q", b.warned)
			}
		})
	}
}

// A request runs under the rule of the route that fiber has matched.
func TestLock_Route(t *testing.T) {
	t.Parallel()
	override := func(c fiber.Ctx) error {
		if method := c.Get("X-Http-Method-Override"); method != "" {
			c.Method(method)
		}
		return c.Next()
	}
	put := func(r *http.Request) { r.Header.Set("X-Http-Method-Override", http.MethodPut) }
	for name, tt := range map[string]struct {
		rule     string
		register func(app *fiber.App, guard fiber.Handler)
		method   string
		path     string
		change   []func(*http.Request)
	}{
		"HEAD has the lock of GET": {"GET /orders/:id", func(app *fiber.App, guard fiber.Handler) {
			app.Get("/orders/:id", guard, done)
		}, http.MethodHead, "/orders/42", nil},
		"constraint": {"POST /orders/:id", func(app *fiber.App, guard fiber.Handler) {
			app.Post("/orders/:id<int>", guard, done)
		}, http.MethodPost, "/orders/42", nil},
		"optional": {"POST /orders/:id", func(app *fiber.App, guard fiber.Handler) {
			app.Post("/orders/:id?", guard, done)
		}, http.MethodPost, "/orders/42", nil},
		"group": {"POST /shop/orders/:id", func(app *fiber.App, guard fiber.Handler) {
			app.Group("/shop").Post("/orders/:id", guard, done)
		}, http.MethodPost, "/shop/orders/42", nil},
		"mounted app": {"POST /shop/orders/:id", func(app *fiber.App, guard fiber.Handler) {
			shop := fiber.New(fiber.Config{UnescapePath: true})
			shop.Post("/orders/:id", guard, done)
			app.Use("/shop", shop)
		}, http.MethodPost, "/shop/orders/42", nil},
		"override before the route": {"PUT /orders/:id", func(app *fiber.App, guard fiber.Handler) {
			app.Use(override)
			app.Put("/orders/:id", guard, done)
		}, http.MethodPost, "/orders/42", []func(*http.Request){put}},
		"override on the route": {"POST /orders/:id", func(app *fiber.App, guard fiber.Handler) {
			app.Post("/orders/:id", override, guard, done)
			app.Put("/orders/:id", guard, done)
		}, http.MethodPost, "/orders/42", []func(*http.Request){put}},
		"another spelling": {"POST /orders/:id", func(app *fiber.App, guard fiber.Handler) {
			app.Post("/orders/:id", guard, done)
		}, http.MethodPost, "/Orders/%34%32", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, noWait(tt.rule, "order:#{path.id}"))
			tt.register(b.app, fiberlock.Lock(b.guard))
			b.check()
			b.want(http.StatusNoContent, tt.method, tt.path, tt.change...)
			b.redis.Take("order:42", time.Hour)
			b.want(http.StatusConflict, tt.method, tt.path, tt.change...)
		})
	}
}

// A rule for a route with several parameters in one segment cannot read them. Check returns an error.
func TestCheck_Parameters(t *testing.T) {
	t.Parallel()
	b := newBench(t, noWait("GET /trips/:from-:to", "trip:#{path.from}"))
	b.app.Get("/trips/:from-:to", fiberlock.Lock(b.guard), done)
	if err := fiberlock.Check(b.app, b.guard); err == nil || !strings.Contains(err.Error(), "from-:to") {
		t.Errorf("got %v", err)
	}
}

// Check returns an error if the app does not decode paths.
func TestCheck_UnescapePath(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := fiberlock.Check(fiber.New(), b.guard); err == nil || !strings.Contains(err.Error(), "UnescapePath") {
		t.Errorf("got %v", err)
	}
}

// The context of fiber carries the lock while the handler runs, and not later.
func TestLock_ContextOfFiber(t *testing.T) {
	t.Parallel()
	b := newBench(t, noWait("POST /orders/:id", "order:#{path.id}"))
	b.app.Use(func(c fiber.Ctx) error {
		err := c.Next()
		if _, held := core.Held(c, "order:42"); held || httplock.Hold(c.Context()) != nil {
			t.Error("the lock is held after the handler")
		}
		return err
	})
	b.app.Post("/orders/:id", fiberlock.Lock(b.guard), func(c fiber.Ctx) error {
		err := b.locks.Lock("order:42").Do(c, func(context.Context) error { return nil }, core.WaitTime(0))
		return errors.Join(err, done(c))
	})
	b.check()
	b.want(http.StatusNoContent, http.MethodPost, "/orders/42")
}

// A stream arrives whole, with the headers of the guard.
func TestLock_Stream(t *testing.T) {
	t.Parallel()
	rule := noWait("GET /orders/:id", "order:#{path.id}")
	rule.Kind = ruleset.Fenced
	b := newBench(t, rule)
	b.app.Get("/orders/:id", fiberlock.Lock(b.guard), func(c fiber.Ctx) error {
		return c.SendStreamWriter(func(w *bufio.Writer) { _, _ = w.WriteString(strings.Repeat("x", 1<<16)) })
	})
	b.check()
	body, header := b.answer(http.StatusOK, http.MethodGet, "/orders/42")
	if len(body) != 1<<16 || header.Get(failpolicy.TokenHeader) == "" || header.Get("Interlock-Answered") != "" {
		t.Errorf("got %d bytes, header %v", len(body), header)
	}
}

// A middleware before the guard gets the error of the handler when the lock is free, and no debounce window has begun.
// Before that, only the loss of a lock is answered, and the error then says so.
func TestLock_ErrorForTheMiddlewareBefore(t *testing.T) {
	t.Parallel()
	rule := noWait("POST /orders/:id", "order:#{path.id}")
	rule.Debounce = time.Hour
	b := newBench(t, rule)
	lose, errNoOrder := false, errors.New("no such order")
	b.app.Use(func(c fiber.Ctx) error {
		err := c.Next()
		_, lost := errors.AsType[*fiberlock.LostError](err)
		if !errors.Is(err, errNoOrder) || lost != lose {
			t.Errorf("the middleware before the guard gets the error %v", err)
		}
		if lose {
			return err
		}
		state, err := b.locks.Lock("order:42").State(context.Background())
		if err != nil || len(state.Holders) > 0 || len(c.Response().Body()) > 0 {
			t.Errorf("after the handler the lock has the holders %v: %v; the answer is %q", state.Holders, err, c.Response().Body())
		}
		return c.SendStatus(http.StatusNotFound)
	})
	b.app.Post("/orders/:id", fiberlock.Lock(b.guard), func(c fiber.Ctx) error {
		if lose {
			if err := httplock.Hold(c.Context()).Refresh(context.Background(), time.Millisecond); err != nil {
				t.Error(err)
			}
			<-c.Context().Done()
		}
		return errNoOrder
	})
	b.check()
	b.want(http.StatusNotFound, http.MethodPost, "/orders/42")
	lose = true
	if body := b.want(http.StatusInternalServerError, http.MethodPost, "/orders/42"); strings.Contains(body, "order") {
		t.Errorf("the client gets %q", body)
	}
}

// fiber answers an error of a handler, and no debounce window begins.
func TestLock_Errors(t *testing.T) {
	t.Parallel()
	rule := noWait("POST /orders/:id", "order:#{path.id}")
	rule.Debounce = time.Hour
	b := newBench(t, rule)
	answers := []error{fiber.NewError(http.StatusPaymentRequired, "no money"), nil}
	b.app.Post("/orders/:id", fiberlock.Lock(b.guard), func(c fiber.Ctx) error {
		err := answers[0]
		answers = answers[1:]
		c.Status(http.StatusCreated)
		return err
	})
	b.check()
	if body := b.want(http.StatusPaymentRequired, http.MethodPost, "/orders/42"); body != "no money" {
		t.Errorf("got %q", body)
	}
	b.want(http.StatusCreated, http.MethodPost, "/orders/42")
	b.want(http.StatusTooManyRequests, http.MethodPost, "/orders/42")
}

// A key reads a field of a form, and the handler still gets the file of the form.
func TestLock_Multipart(t *testing.T) {
	t.Parallel()
	b := newBench(t, noWait("POST /orders", "order:#{form.id}"))
	b.app.Post("/orders", fiberlock.Lock(b.guard), func(c fiber.Ctx) error {
		if key := httplock.Hold(c.Context()).Key(); key != "order:42" {
			t.Errorf("the handler has the lock %q", key)
		}
		file, err := c.FormFile("bill")
		if err == nil && file.Size != 5 {
			t.Errorf("the file has %d bytes", file.Size)
		}
		return errors.Join(err, done(c))
	})
	b.check()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	bill, err := form.CreateFormFile("bill", "bill.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(bill, "12.50")
	if err := errors.Join(err, form.WriteField("id", "42"), form.Close()); err != nil {
		t.Fatal(err)
	}
	b.want(http.StatusNoContent, http.MethodPost, "/orders", func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(&body), int64(body.Len())
		r.Header.Set("Content-Type", form.FormDataContentType())
	})
}

// A wait ends before the timeout around the guard. If a handler works longer than that timeout, the lock is held until the
// handler returns.
func TestLock_Timeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rule := noWait("POST /orders/:id", "order:#{path.id}")
		rule.WaitTime = time.Hour
		b := newBench(t, rule)
		work := make(chan struct{})
		b.app.Post("/orders/:id", fibertimeout.New(func(c fiber.Ctx) error { return c.Next() }, fibertimeout.Config{Timeout: time.Second}),
			fiberlock.Lock(b.guard), func(c fiber.Ctx) error {
				<-work
				return done(c)
			})
		b.check()
		b.redis.Take("order:41", 2*time.Hour)
		b.want(http.StatusConflict, http.MethodPost, "/orders/41")

		b.want(http.StatusRequestTimeout, http.MethodPost, "/orders/42")
		b.want(http.StatusConflict, http.MethodPost, "/orders/42")
		close(work)
		synctest.Wait()
		b.want(http.StatusNoContent, http.MethodPost, "/orders/42")
	})
}

// Shutdown waits for a handler. After that, the lock client closes without a hold.
func TestLock_Shutdown(t *testing.T) {
	t.Parallel()
	b := newBench(t, noWait("POST /orders/:id", "order:#{path.id}"))
	entered, work := make(chan struct{}), make(chan struct{})
	b.app.Post("/orders/:id", fiberlock.Lock(b.guard), func(c fiber.Ctx) error {
		close(entered)
		<-work
		return done(c)
	})
	b.check()
	url, code := listen(t, b.app), make(chan int)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	go func() {
		response, err := client.Post(url+"/orders/42", "", http.NoBody)
		if err != nil {
			t.Error(err)
			close(code)
			return
		}
		_ = response.Body.Close()
		code <- response.StatusCode
	}()
	<-entered
	stopped := make(chan error)
	go func() { stopped <- b.app.ShutdownWithContext(t.Context()) }()
	close(work)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if got := <-code; got != http.StatusNoContent {
		t.Errorf("got %d", got)
	}
	if holds := b.locks.Stats().Holds; holds != 0 {
		t.Errorf("%d locks are held after Shutdown", holds)
	}
}
