package routers_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/routers"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // reloads, warnings and failures are part of the tests
	goleak.VerifyTestMain(m)
}

// router is chi or a version of echo, with the path of the route in the spelling of that router.
type router struct {
	name, pay, cart string
	serve           func(guard *httplock.Guard, pay http.HandlerFunc) (http.Handler, error)
}

func all() []router {
	return []router{
		{"chi", "/orders/{id}/pay", "/carts/{id}", func(g *httplock.Guard, pay http.HandlerFunc) (http.Handler, error) {
			return routers.Chi(g, pay, pay)
		}},
		{"echo", "/orders/:id/pay", "/carts/:id", func(g *httplock.Guard, pay http.HandlerFunc) (http.Handler, error) {
			return routers.Echo(g, echo.WrapHandler(pay), echo.WrapHandler(pay))
		}},
		{"echo5", "/orders/:id/pay", "/carts/:id", func(g *httplock.Guard, pay http.HandlerFunc) (http.Handler, error) {
			return routers.Echo5(g, echo5.WrapHandler(pay), echo5.WrapHandler(pay))
		}},
	}
}

// bench is a shop with rules.
type bench struct {
	redis *redistest.Server
	locks *core.Client
	guard *httplock.Guard
	seen  warned
}

func newBench(t *testing.T, rules ...ruleset.Rule) *bench {
	t.Helper()
	b := &bench{redis: redistest.New(t)}
	locks, err := core.New(b.redis.Client(), core.WithObserver(b.seen.observer()))
	if err != nil {
		t.Fatal(err)
	}
	b.locks = locks
	t.Cleanup(func() {
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b.guard, err = httplock.New(locks, httplock.WithRules(rules...), httplock.WithBuffer(1<<10))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// rules returns rules that lock an order and a cart, without waiting.
func (r router) rules() []ruleset.Rule {
	return []ruleset.Rule{
		{Endpoint: ruleset.HTTP("POST " + r.pay), Key: "order:#{path.id}", WaitTime: ruleset.NoWait},
		{Endpoint: ruleset.HTTP("DELETE " + r.cart), Key: "cart:#{path.id}", WaitTime: ruleset.NoWait},
	}
}

func send(shop http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	shop.ServeHTTP(w, httptest.NewRequest(method, path, http.NoBody))
	return w
}

func wantStatus(t *testing.T, w *httptest.ResponseRecorder, want int) {
	t.Helper()
	if w.Code != want {
		t.Errorf("got %d, want %d: %s", w.Code, want, w.Body)
	}
}

func TestRouters_LockPerValue(t *testing.T) {
	t.Parallel()
	for _, r := range all() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, r.rules()...)
			var shop http.Handler
			shop, err := r.serve(b.guard, func(w http.ResponseWriter, q *http.Request) {
				if q.URL.Path == "/orders/42/pay" { // while the handler runs, a second request and a request for another order arrive
					wantStatus(t, send(shop, http.MethodPost, "/orders/42/pay"), http.StatusConflict)
					wantStatus(t, send(shop, http.MethodPost, "/orders/43/pay"), http.StatusOK)
				}
				if httplock.Hold(q.Context()) == nil {
					t.Errorf("%s: the handler runs without the lock", q.URL.Path)
				}
				_, _ = io.WriteString(w, "done "+q.PathValue("id"))
			})
			if err != nil {
				t.Fatal(err)
			}
			first := send(shop, http.MethodPost, "/orders/42/pay")
			wantStatus(t, first, http.StatusOK)
			if first.Body.String() != "done 42" {
				t.Errorf("got %q", first.Body)
			}
			b.redis.Take("cart:7", time.Hour)
			wantStatus(t, send(shop, http.MethodDelete, "/carts/7"), http.StatusConflict)
			wantStatus(t, send(shop, http.MethodDelete, "/carts/8"), http.StatusOK)
			wantStatus(t, send(shop, http.MethodGet, "/nothing"), http.StatusNotFound)
			wantStatus(t, send(shop, http.MethodGet, "/orders/42/pay"), http.StatusMethodNotAllowed)
		})
	}
}

// warned keeps the warnings that an observer gets.
type warned []string

func (w *warned) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Warning: func(p *ruleset.Problem) { *w = append(*w, p.Error()) }}}
}

// All spellings of an order have one key.
func TestRouters_OneKeyForEverySpelling(t *testing.T) {
	for _, r := range all() {
		t.Run(r.name, func(t *testing.T) {
			b := newBench(t, r.rules()...)
			h, err := r.serve(b.guard, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
			if err != nil {
				t.Fatal(err)
			}
			b.redis.Take("order:42ä", time.Hour)
			for spelling, code := range map[string]int{
				"42%C3%A4": http.StatusConflict, "42%c3%a4": http.StatusConflict, "%34%32%C3%A4": http.StatusConflict, "43%c3%a4": http.StatusAccepted,
			} {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/"+spelling+"/pay", http.NoBody))
				if w.Code != code {
					t.Errorf("%s: got %d, want %d", spelling, w.Code, code)
				}
			}
		})
	}
}

// A guard that runs before the router has matched the route refuses every request. Observers get a warning.
func TestChi_UseBeforeTheMatch(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(r chi.Router, guard func(http.Handler) http.Handler, pay http.HandlerFunc){
		"the whole router": func(r chi.Router, guard func(http.Handler) http.Handler, pay http.HandlerFunc) {
			r.Use(guard)
			r.Post("/orders/{id}/pay", pay)
		},
		"within Route": func(r chi.Router, guard func(http.Handler) http.Handler, pay http.HandlerFunc) {
			r.Route("/orders", func(r chi.Router) {
				r.Use(guard)
				r.Post("/{id}/pay", pay)
			})
		},
	} {
		b := newBench(t, all()[0].rules()...)
		guard, err := httplock.New(b.locks, httplock.WithRules(all()[0].rules()...))
		if err != nil {
			t.Fatal(err)
		}
		r := chi.NewRouter()
		put(r, routers.ChiMiddleware(guard), func(http.ResponseWriter, *http.Request) { t.Errorf("%s: the handler runs", name) })
		if err := guard.Check("POST /orders/{id}/pay", "DELETE /carts/{id}"); err != nil {
			t.Error(err)
		}
		wantStatus(t, send(r, http.MethodPost, "/orders/42/pay"), http.StatusInternalServerError)
		if len(b.seen) != 1 || !strings.Contains(b.seen[0], "Middleware") || !strings.Contains(b.seen[0], "router") {
			t.Errorf("%s: observers got the warnings %q", name, b.seen)
		}
	}
}

// If a nested router has a route for all paths, the guard finds this route. Observers get a warning.
func TestChi_UseAboveACatchAll(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	guard, err := httplock.New(b.locks, httplock.WithRules(all()[0].rules()[0]))
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	r.Route("/orders", func(r chi.Router) {
		r.Use(routers.ChiMiddleware(guard))
		r.Post("/{id}/pay", func(http.ResponseWriter, *http.Request) {})
		r.Handle("/*", http.NotFoundHandler())
	})
	patterns, err := routers.ChiPatterns(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := guard.Check(patterns...); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		wantStatus(t, send(r, http.MethodPost, "/orders/42/pay"), http.StatusOK)
	}
	if len(b.seen) != 1 || !strings.Contains(b.seen[0], "POST /orders/{id}/pay") || !strings.Contains(b.seen[0], `"POST /orders/*"`) {
		t.Errorf("observers got the warnings %q", b.seen)
	}
}

func TestRouters_CheckUnmatchedRule(t *testing.T) {
	t.Parallel()
	for _, r := range all() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			other := ruleset.Rule{Endpoint: ruleset.HTTP("POST " + r.pay + "s"), Key: "order:#{path.id}"}
			_, err := r.serve(newBench(t, append(r.rules(), other)...).guard, nil)
			if err == nil || !strings.Contains(err.Error(), `did you mean "POST `+r.pay+`"?`) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRouters_CheckParameters(t *testing.T) {
	t.Parallel()
	for _, r := range all() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			wrong := ruleset.Rule{Endpoint: ruleset.HTTP("POST " + r.pay), Key: "order:#{path.orderId}"}
			_, err := r.serve(newBench(t, wrong).guard, nil)
			if err == nil || !strings.Contains(err.Error(), "there is id") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A route that is registered inside Route may end in a slash, although the pattern of its requests does not.
func TestChi_Slash(t *testing.T) {
	t.Parallel()
	b := newBench(t, ruleset.Rule{Endpoint: ruleset.HTTP("POST /carts"), Key: "carts", WaitTime: ruleset.NoWait})
	shop := chi.NewRouter()
	shop.Route("/carts", func(r chi.Router) {
		r.With(b.guard.Middleware).Post("/", func(http.ResponseWriter, *http.Request) {})
	})
	patterns, err := routers.ChiPatterns(shop)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.guard.Check(patterns...); err != nil {
		t.Fatal(err)
	}
	b.redis.Take("carts", time.Hour)
	wantStatus(t, send(shop, http.MethodPost, "/carts/"), http.StatusConflict)
	wantStatus(t, send(shop, http.MethodPost, "/carts"), http.StatusConflict)
}

// Rules apply to a router that is mounted in another one, and to a group within a group.
func TestChi_Mount(t *testing.T) {
	t.Parallel()
	b := newBench(t, ruleset.Rule{Endpoint: ruleset.HTTP("POST /shops/{shop}/orders/{id}/pay"), Key: "order:#{path.shop}:#{path.id}", WaitTime: ruleset.NoWait})
	orders := chi.NewRouter()
	orders.Group(func(r chi.Router) {
		r.With(b.guard.Middleware).Post("/{id}/pay", func(_ http.ResponseWriter, r *http.Request) {
			if hold := httplock.Hold(r.Context()); hold == nil || hold.Key() != "order:7:42" {
				t.Errorf("the handler runs with %v", hold)
			}
		})
	})
	shop := chi.NewRouter()
	shop.Route("/shops/{shop}", func(r chi.Router) { r.Mount("/orders", orders) })
	patterns, err := routers.ChiPatterns(shop)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.guard.Check(patterns...); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, send(shop, http.MethodPost, "/shops/7/orders/42/pay"), http.StatusOK)
	b.redis.Take("order:7:42", time.Hour)
	wantStatus(t, send(shop, http.MethodPost, "/shops/7/orders/42/pay"), http.StatusConflict)
}

// echoShop returns a shop on a version of echo. pay returns a status, or an error with the status of its answer. The
// handler returns an error without a status as it is. before is a middleware before the guard: next runs the guard and the
// handler. It returns the status of its answer, or 0 and the error for echo.
type echoShop func(g *httplock.Guard, pay func(*http.Request) (int, error), before func(next func() error) (int, error)) (http.Handler, error)

// echoes returns a shop on each version of echo.
func echoes() map[string]echoShop {
	return map[string]echoShop{
		"v4": func(g *httplock.Guard, pay func(*http.Request) (int, error), before func(next func() error) (int, error)) (http.Handler, error) {
			e := echo.New()
			e.Pre(routers.EchoRouted)
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error {
					code, err := before(func() error { return next(c) })
					if code != 0 {
						return c.NoContent(code)
					}
					return err
				}
			}, routers.EchoMiddleware(g))
			e.POST("/orders/:id/pay", func(c echo.Context) error {
				code, err := pay(c.Request())
				switch {
				case err == nil:
					return c.NoContent(code)
				case code == 0:
					return err
				default:
					return echo.NewHTTPError(code, err.Error())
				}
			})
			return routers.Decoded(e), g.Check(routers.EchoPatterns(e)...)
		},
		"v5": func(g *httplock.Guard, pay func(*http.Request) (int, error), before func(next func() error) (int, error)) (http.Handler, error) {
			e := echo5.New()
			e.Use(func(next echo5.HandlerFunc) echo5.HandlerFunc {
				return func(c *echo5.Context) error {
					code, err := before(func() error { return next(c) })
					if code != 0 {
						return c.NoContent(code)
					}
					return err
				}
			}, routers.Echo5Middleware(g))
			e.POST("/orders/:id/pay", func(c *echo5.Context) error {
				code, err := pay(c.Request())
				switch {
				case err == nil:
					return c.NoContent(code)
				case code == 0:
					return err
				default:
					return echo5.NewHTTPError(code, err.Error())
				}
			})
			return routers.Decoded(e), g.Check(routers.Echo5Patterns(e)...)
		},
	}
}

// unchanged is a middleware that does nothing.
func unchanged(next func() error) (int, error) { return 0, next() }

// A middleware before the guard gets the error of the handler when the lock is free, and no debounce window has begun.
// Before that, only the loss of a lock is answered.
func TestEcho_ErrorForTheMiddlewareBefore(t *testing.T) {
	t.Parallel()
	errNoOrder := errors.New("no such order")
	for name, serve := range echoes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/:id/pay"), Key: "order:#{path.id}", Debounce: time.Hour}
			b := newBench(t, rule)
			lose := false
			shop, err := serve(b.guard, func(r *http.Request) (int, error) {
				hold := httplock.Hold(r.Context())
				if lose {
					if err := hold.Refresh(context.WithoutCancel(r.Context()), time.Millisecond); err != nil {
						t.Error(err)
					}
					<-r.Context().Done()
				}
				return 0, errNoOrder
			}, func(next func() error) (int, error) {
				err := next()
				if !errors.Is(err, errNoOrder) {
					t.Errorf("the middleware before the guard gets the error %v", err)
				}
				if lose {
					return 0, err
				}
				state, err := b.locks.Lock("order:42").State(context.Background())
				if err != nil || len(state.Holders) > 0 {
					t.Errorf("after the handler the lock has the holders %v: %v", state.Holders, err)
				}
				return http.StatusNotFound, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			wantStatus(t, send(shop, http.MethodPost, "/orders/42/pay"), http.StatusNotFound)
			lose = true
			if lost := send(shop, http.MethodPost, "/orders/42/pay"); lost.Code != http.StatusInternalServerError || strings.Count(lost.Body.String(), "{") != 1 {
				t.Errorf("after a loss: got %d %s", lost.Code, lost.Body)
			}
		})
	}
}

// echo answers an error of a handler, and no debounce window begins.
func TestEcho_Errors(t *testing.T) {
	t.Parallel()
	for name, serve := range echoes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/:id/pay"), Key: "order:#{path.id}", Debounce: time.Hour}
			paid := false
			shop, err := serve(newBench(t, rule).guard, func(*http.Request) (int, error) {
				if !paid {
					paid = true
					return http.StatusPaymentRequired, errors.New("no money")
				}
				return http.StatusCreated, nil
			}, unchanged)
			if err != nil {
				t.Fatal(err)
			}
			declined := send(shop, http.MethodPost, "/orders/42/pay")
			wantStatus(t, declined, http.StatusPaymentRequired)
			if !strings.Contains(declined.Body.String(), "no money") {
				t.Errorf("got %q", declined.Body)
			}
			wantStatus(t, send(shop, http.MethodPost, "/orders/42/pay"), http.StatusCreated)
			wantStatus(t, send(shop, http.MethodPost, "/orders/42/pay"), http.StatusTooManyRequests)
		})
	}
}

// If the error of an echo handler is a result of a lost lock, only the guard answers.
func TestEcho_Lost(t *testing.T) {
	t.Parallel()
	for name, serve := range echoes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/:id/pay"), Key: "order:#{path.id}", LeaseTime: 50 * time.Millisecond}
			shop, err := serve(newBench(t, rule).guard, func(r *http.Request) (int, error) {
				<-r.Context().Done()
				return 0, r.Context().Err()
			}, unchanged)
			if err != nil {
				t.Fatal(err)
			}
			lost := send(shop, http.MethodPost, "/orders/42/pay")
			if lost.Code < http.StatusInternalServerError || !strings.Contains(lost.Body.String(), "lost") || strings.Count(lost.Body.String(), "{") != 1 {
				t.Errorf("got %d %s", lost.Code, lost.Body)
			}
		})
	}
}

// The request of net/http gets the parsed form of the handler, because net/http removes the files of that form.
func TestEcho_Multipart(t *testing.T) {
	t.Parallel()
	for name, serve := range echoes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/:id/pay"), Key: "order:#{path.id}"}
			shop, err := serve(newBench(t, rule).guard, func(r *http.Request) (int, error) {
				return http.StatusNoContent, r.ParseMultipartForm(0)
			}, unchanged)
			if err != nil {
				t.Fatal(err)
			}
			var body bytes.Buffer
			form := multipart.NewWriter(&body)
			if err := errors.Join(form.WriteField("note", "quick"), form.Close()); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{"/orders/42/pay", "/orders/%34%32/pay"} { // Decoded copies a request with escapes
				r, w := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body.Bytes())), httptest.NewRecorder()
				r.Header.Set("Content-Type", form.FormDataContentType())
				shop.ServeHTTP(w, r)
				wantStatus(t, w, http.StatusNoContent)
				if r.MultipartForm == nil {
					t.Errorf("%s: the request has no form", path)
				}
			}
		})
	}
}
