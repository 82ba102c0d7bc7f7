package routers_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/labstack/echo/v4"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/routers"
)

func noWait(route, key string) ruleset.Rule {
	return ruleset.Rule{Endpoint: ruleset.HTTP(route), Key: key, WaitTime: ruleset.NoWait}
}

// overridden sends a POST with a header for another method.
func overridden(shop http.Handler, path, method string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, http.NoBody)
	r.Header.Set("X-Http-Method-Override", method)
	w := httptest.NewRecorder()
	shop.ServeHTTP(w, r)
	return w
}

// echoOverride overrides the method like echo's MethodOverride.
func echoOverride(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if method := c.Request().Header.Get(echo.HeaderXHTTPMethodOverride); method != "" && c.Request().Method == http.MethodPost {
			c.Request().Method = method
		}
		return next(c)
	}
}

// A subrouter of chi registers a part of the route, so Handle cannot know its rule there.
func TestChi_HandleOnASubrouter(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(r chi.Router, register func(r chi.Router)){
		"Route": func(r chi.Router, register func(r chi.Router)) { r.Route("/orders", register) },
		"Mount": func(r chi.Router, register func(r chi.Router)) {
			sub := chi.NewRouter()
			register(sub)
			r.Mount("/orders", sub)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, noWait("POST /orders/{id}", "order:#{path.id}"))
			shop := chi.NewRouter()
			put(shop, func(r chi.Router) {
				if err := b.guard.HandleFunc(r, "POST /{id}", func(http.ResponseWriter, *http.Request) { t.Error("the handler runs") }); err != nil {
					t.Error(err)
				}
			})
			patterns, err := routers.ChiPatterns(shop)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.guard.Check(patterns...); err == nil {
				t.Error("Check found no problem")
			}
			wantStatus(t, send(shop, http.MethodPost, "/orders/42"), http.StatusInternalServerError)
		})
	}
}

// The route that chi has matched determines the rules, not a later method of the request.
func TestChi_MatchedMethod(t *testing.T) {
	t.Parallel()
	b := newBench(t, noWait("POST /orders/{id}", "post:#{path.id}"), noWait("PUT /orders/{id}", "put:#{path.id}"), noWait("GET /orders/{id}", "get:#{path.id}"))
	override := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if method := r.Header.Get("X-Http-Method-Override"); method != "" {
				r.Method = method
			}
			next.ServeHTTP(w, r)
		})
	}
	shop := chi.NewRouter()
	shop.Use(chimiddleware.GetHead)
	shop.Group(func(r chi.Router) {
		r.Use(override, routers.ChiMiddleware(b.guard))
		r.Get("/orders/{id}", func(http.ResponseWriter, *http.Request) {})
		r.Post("/orders/{id}", func(http.ResponseWriter, *http.Request) {})
		r.Put("/orders/{id}", func(http.ResponseWriter, *http.Request) {})
	})
	patterns, err := routers.ChiPatterns(shop)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.guard.Check(patterns...); err != nil {
		t.Fatal(err)
	}
	b.redis.Take("post:42", time.Hour)
	wantStatus(t, overridden(shop, "/orders/42", http.MethodPut), http.StatusConflict)
	wantStatus(t, send(shop, http.MethodPut, "/orders/42"), http.StatusOK)
	b.redis.Take("get:42", time.Hour)
	wantStatus(t, send(shop, http.MethodHead, "/orders/42"), http.StatusConflict)
}

// An override in Use acts after echo has matched the route. The guard then refuses the request.
func TestEcho_MethodOverride(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		put        func(e *echo.Echo, override, guard echo.MiddlewareFunc)
		overridden int // the lock of PUT is free, and the lock of POST is taken
	}{
		"after the route": {func(e *echo.Echo, override, guard echo.MiddlewareFunc) {
			e.Pre(routers.EchoRouted)
			e.Use(override, guard)
		}, http.StatusInternalServerError},
		"before the route": {func(e *echo.Echo, override, guard echo.MiddlewareFunc) {
			e.Pre(override, routers.EchoRouted)
			e.Use(guard)
		}, http.StatusNoContent},
		"after EchoRouted": {func(e *echo.Echo, override, guard echo.MiddlewareFunc) {
			e.Pre(routers.EchoRouted, override)
			e.Use(guard)
		}, http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, noWait("POST /orders/:id", "post:#{path.id}"), noWait("PUT /orders/:id", "put:#{path.id}"))
			e := echo.New()
			tt.put(e, echoOverride, routers.EchoMiddleware(b.guard))
			done := func(c echo.Context) error { return c.NoContent(http.StatusNoContent) }
			e.POST("/orders/:id", done)
			e.PUT("/orders/:id", done)
			if err := b.guard.Check(routers.EchoPatterns(e)...); err != nil {
				t.Fatal(err)
			}
			b.redis.Take("post:42", time.Hour)
			wantStatus(t, overridden(e, "/orders/42", http.MethodPut), tt.overridden)
			wantStatus(t, send(e, http.MethodPost, "/orders/42"), http.StatusConflict)
			wantStatus(t, send(e, http.MethodPut, "/orders/42"), http.StatusNoContent)
		})
	}
}

// If a path has only one method, echo has matched this method.
func TestEcho_MethodOverrideSingleMethod(t *testing.T) {
	t.Parallel()
	b := newBench(t, noWait("POST /orders/:id", "post:#{path.id}"))
	e := echo.New()
	e.Use(echoOverride, routers.EchoMiddleware(b.guard))
	e.POST("/orders/:id", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	if err := b.guard.Check(routers.EchoPatterns(e)...); err != nil {
		t.Fatal(err)
	}
	b.redis.Take("post:42", time.Hour)
	wantStatus(t, overridden(e, "/orders/42", http.MethodPut), http.StatusConflict)
}

// A request without a route takes no lock, and echo answers it.
func TestEcho_NoRoute(t *testing.T) {
	t.Parallel()
	b := newBench(t, noWait("POST /carts/:id", "cart:#{path.id}"))
	e := echo.New()
	e.Pre(routers.EchoRouted)
	e.Group("/carts", routers.EchoMiddleware(b.guard)).POST("/:id", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	e.Use(routers.EchoMiddleware(b.guard))
	e.POST("/orders/:id", echo.NotFoundHandler)
	if err := b.guard.Check(routers.EchoPatterns(e)...); err != nil {
		t.Fatal(err)
	}
	b.redis.Take("cart:7", time.Hour)
	wantStatus(t, send(e, http.MethodGet, "/nothing"), http.StatusNotFound)
	wantStatus(t, send(e, http.MethodGet, "/carts/7"), http.StatusNotFound) // a route of the group
	wantStatus(t, send(e, http.MethodGet, "/orders/7"), http.StatusMethodNotAllowed)
	wantStatus(t, send(e, http.MethodPost, "/carts/7"), http.StatusConflict)
}
