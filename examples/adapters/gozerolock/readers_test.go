package gozerolock_test

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/zeromicro/go-zero/rest"
	"github.com/zeromicro/go-zero/rest/httpx"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/adapters/gozerolock"
)

// A handler reads the order in its key, or the request is refused. Where httpx.Parse merges places, MustHold detects the
// wrong lock.
func TestReaders(t *testing.T) {
	t.Parallel()
	path := func(r *http.Request) (string, error) {
		var into struct {
			Order string `path:"order"`
		}
		err := httpx.Parse(r, &into)
		return into.Order, err
	}
	form := func(r *http.Request) (string, error) {
		var into struct {
			Order string `form:"order"`
		}
		err := httpx.Parse(r, &into)
		return into.Order, err
	}
	twoTags := func(r *http.Request) (string, error) {
		var into struct {
			Order string `json:"order,optional" path:"order"` //nolint:staticcheck // an option of go-zero
		}
		err := httpx.Parse(r, &into)
		return into.Order, err
	}
	query := func(r *http.Request) (string, error) { return r.URL.Query().Get("order"), nil }
	adaptertest.Readers(t,
		reader("httpx.Parse", "path", "", path, "200 409 - - - - 200 200 200 200"),
		reader("httpx.Parse, with a json tag", "path", "", twoTags, "200 409 - - - - 200 200 200 500"),
		reader("r.URL.Query", "query", "", query, "200 409 400 400 400 400 - 200 200 200"),
		reader("httpx.Parse", "query", http.MethodGet, form, "200 409 400 400 400 400 - 200 415 200"),
		reader("httpx.Parse", "query", "", form, "200 409 400 400 400 400 - 500 200 200"),
		reader("httpx.Parse", "form", "", form, "200 409 400 400 400 400 400 - - -"),
		reader("httpx.Parse", "multipart", "", form, "200 409 400 400 400 400 400 - - -"),
	)
}

func reader(name, place, method string, read func(*http.Request) (string, error), want string) adaptertest.Reader {
	serveReader := func(tb testing.TB, locks *core.Client, rule ruleset.Rule, pay func(context.Context, string) int) string {
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
		server := newServer(tb, rest.RestConf{})
		handler := serve(tb, server, gozerolock.Routes(guard, "", rest.Route{Method: method, Path: path, Handler: func(w http.ResponseWriter, r *http.Request) {
			order, err := read(r)
			if err != nil {
				w.WriteHeader(http.StatusUnprocessableEntity)
				return
			}
			w.WriteHeader(pay(r.Context(), order))
		}}))
		check(tb.(*testing.T), server, guard)
		listening := httptest.NewServer(handler)
		tb.Cleanup(listening.Close)
		return listening.URL
	}
	return adaptertest.Reader{Name: name, Place: place, Method: method, Serve: serveReader, Want: want}
}
