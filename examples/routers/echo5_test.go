package routers_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/interlock-go/interlock/examples/routers"
)

func noContent(c *echo.Context) error { return c.NoContent(http.StatusNoContent) }

// The route that echo has matched determines the rules, not a later method of the request.
func TestEcho5_MethodOverride(t *testing.T) {
	t.Parallel()
	b := newBench(t, noWait("POST /orders/:id", "post:#{path.id}"), noWait("PUT /orders/:id", "put:#{path.id}"))
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			if method := c.Request().Header.Get(echo.HeaderXHTTPMethodOverride); method != "" {
				c.Request().Method = method
			}
			return next(c)
		}
	}, routers.Echo5Middleware(b.guard))
	e.POST("/orders/:id", noContent)
	e.PUT("/orders/:id", noContent)
	if err := b.guard.Check(routers.Echo5Patterns(e)...); err != nil {
		t.Fatal(err)
	}
	b.redis.Take("post:42", time.Hour)
	wantStatus(t, overridden(e, "/orders/42", http.MethodPut), http.StatusConflict)
	wantStatus(t, send(e, http.MethodPut, "/orders/42"), http.StatusNoContent)
}

// In Echo.Pre, the guard refuses every request.
func TestEcho5_Pre(t *testing.T) {
	t.Parallel()
	b := newBench(t, noWait("POST /orders/:id", "post:#{path.id}"))
	e := echo.New()
	e.Pre(routers.Echo5Middleware(b.guard))
	e.POST("/orders/:id", func(*echo.Context) error { t.Error("the handler runs"); return nil })
	if err := b.guard.Check(routers.Echo5Patterns(e)...); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, send(e, http.MethodPost, "/orders/42"), http.StatusInternalServerError)
}

// A route for any method is a pattern without a method, whose rules may name methods.
func TestEcho5_Any(t *testing.T) {
	t.Parallel()
	b := newBench(t, noWait("PUT /orders/:id", "put:#{path.id}"))
	e := echo.New()
	e.Use(routers.Echo5Middleware(b.guard))
	e.Any("/orders/:id", noContent)
	if err := b.guard.Check(routers.Echo5Patterns(e)...); err != nil {
		t.Fatal(err)
	}
	b.redis.Take("put:42", time.Hour)
	wantStatus(t, send(e, http.MethodPut, "/orders/42"), http.StatusConflict)
	wantStatus(t, send(e, http.MethodPost, "/orders/42"), http.StatusNoContent)
}

// A request without a route takes no lock, and echo answers it.
func TestEcho5_NoRoute(t *testing.T) {
	t.Parallel()
	b := newBench(t, noWait("POST /carts/:id", "cart:#{path.id}"))
	e := echo.New()
	carts := e.Group("/carts", routers.Echo5Middleware(b.guard))
	carts.POST("/:id", noContent)
	carts.RouteNotFound("/*", func(c *echo.Context) error { return c.NoContent(http.StatusNotFound) })
	e.Use(routers.Echo5Middleware(b.guard))
	e.POST("/orders/:id", noContent)
	if err := b.guard.Check(routers.Echo5Patterns(e)...); err != nil {
		t.Fatal(err)
	}
	b.redis.Take("cart:7", time.Hour)
	wantStatus(t, send(e, http.MethodGet, "/nothing"), http.StatusNotFound)
	wantStatus(t, send(e, http.MethodGet, "/carts/7/items"), http.StatusNotFound) // a route of the group
	wantStatus(t, send(e, http.MethodGet, "/orders/7"), http.StatusMethodNotAllowed)
	wantStatus(t, send(e, http.MethodPost, "/carts/7"), http.StatusConflict)
}

// A HEAD request that echo serves with the handler of GET takes the lock of GET.
func TestEcho5_AutoHead(t *testing.T) {
	t.Parallel()
	b := newBench(t, noWait("GET /orders/:id", "get:#{path.id}"))
	e := echo.NewWithConfig(echo.Config{Router: echo.NewRouter(echo.RouterConfig{AutoHandleHEAD: true})})
	e.Use(routers.Echo5Middleware(b.guard))
	e.GET("/orders/:id", noContent)
	if err := b.guard.Check(routers.Echo5Patterns(e)...); err != nil {
		t.Fatal(err)
	}
	b.redis.Take("get:42", time.Hour)
	wantStatus(t, send(e, http.MethodHead, "/orders/42"), http.StatusConflict)
	wantStatus(t, send(e, http.MethodHead, "/orders/43"), http.StatusNoContent)
}
