package ginlock_test

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// A handler reads the order in its key, or the request is refused. Where ShouldBind merges places, MustHold detects the
// wrong lock.
func TestReaders(t *testing.T) {
	t.Parallel()
	type target struct {
		Order string `form:"order" json:"order" uri:"order"`
	}
	bound := func(bind func(*gin.Context, any) error) func(*gin.Context) (string, error) {
		return func(c *gin.Context) (string, error) {
			var into target
			err := bind(c, &into)
			return into.Order, err
		}
	}
	got := func(get func(*gin.Context, string) string) func(*gin.Context) (string, error) {
		return func(c *gin.Context) (string, error) { return get(c, "order"), nil }
	}
	param, query, postForm := got((*gin.Context).Param), got((*gin.Context).Query), got((*gin.Context).PostForm)
	any1 := bound((*gin.Context).ShouldBind)
	posted := bound(func(c *gin.Context, into any) error { return c.ShouldBindWith(into, binding.FormPost) })
	cookie := func(c *gin.Context) (string, error) { return c.Cookie("order") }
	adaptertest.Readers(t,
		reader("c.Param", "path", "", param, "200 409 - - - - 200 200 200 200"),
		reader("c.ShouldBindUri", "path", "", bound((*gin.Context).ShouldBindUri), "200 409 - - - - 200 200 200 200"),
		reader("c.Query", "query", "", query, "200 409 400 400 400 400 - 200 200 200"),
		reader("c.ShouldBindQuery", "query", "", bound((*gin.Context).ShouldBindQuery), "200 409 400 400 400 400 - 200 200 200"),
		reader("c.ShouldBind", "query", http.MethodGet, any1, "200 409 400 400 400 400 - 200 200 200"),
		reader("c.ShouldBind", "query", "", any1, "200 409 400 400 400 400 - 500 500 500"),
		reader("c.ShouldBind", "form", "", any1, "200 409 400 400 400 400 400 - - -"),
		reader("c.ShouldBind", "multipart", "", any1, "200 409 400 400 400 400 400 - - -"),
		reader("c.PostForm", "form", "", postForm, "200 409 400 400 400 400 400 - - -"),
		reader("c.PostForm", "multipart", "", postForm, "200 409 400 400 400 400 400 - - -"),
		reader("c.ShouldBindWith(FormPost)", "form", "", posted, "200 409 400 400 400 400 400 - - -"),
		reader("c.Cookie", "cookie", "", cookie, "200 409 400 400 400 400 200 200 200 200"),
	)
}

func reader(name, place, method string, read func(*gin.Context) (string, error), want string) adaptertest.Reader {
	serve := func(tb testing.TB, locks *core.Client, rule ruleset.Rule, pay func(context.Context, string) int) string {
		tb.Helper()
		route := "/orders"
		if place == "path" {
			route += "/:order"
		}
		guard, err := ginlock.New(locks)
		if err != nil {
			tb.Fatal(err)
		}
		engine := gin.New()
		err = guard.Handle(engine, cmp.Or(method, http.MethodPost), route, rule, func(c *gin.Context) {
			order, err := read(c)
			if err != nil {
				c.Status(http.StatusUnprocessableEntity)
				return
			}
			c.Status(pay(c.Request.Context(), order))
		})
		if err != nil {
			tb.Fatal(err)
		}
		server := httptest.NewServer(engine)
		tb.Cleanup(server.Close)
		return server.URL
	}
	return adaptertest.Reader{Name: name, Place: place, Method: method, Serve: serve, Want: want}
}
