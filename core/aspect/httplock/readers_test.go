package httplock_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
)

// A handler reads the order in its key, or the request is refused. Where FormValue merges places, MustHold detects the
// wrong lock.
func TestReaders(t *testing.T) {
	t.Parallel()
	query := func(r *http.Request) string { return r.URL.Query().Get("order") }
	value := func(r *http.Request) string { return r.FormValue("order") }
	postValue := func(r *http.Request) string { return r.PostFormValue("order") }
	cookie := func(r *http.Request) string {
		c, err := r.Cookie("order")
		if err != nil {
			return ""
		}
		return c.Value
	}
	adaptertest.Readers(t,
		reader("r.PathValue", "path", func(r *http.Request) string { return r.PathValue("order") }, "200 409 - - - - 200 200 200 200"),
		reader("r.URL.Query", "query", query, "200 409 400 400 400 400 - 200 200 200"),
		reader("r.FormValue", "query", value, "200 409 400 400 400 400 - 500 200 200"),
		reader("r.FormValue", "form", value, "200 409 400 400 400 400 400 - - -"),
		reader("r.FormValue", "multipart", value, "200 409 400 400 400 400 400 - - -"),
		reader("r.PostFormValue", "form", postValue, "200 409 400 400 400 400 400 - - -"),
		reader("r.PostFormValue", "multipart", postValue, "200 409 400 400 400 400 400 - - -"),
		reader("r.Cookie", "cookie", cookie, "200 409 400 400 400 400 200 200 200 200"),
	)
}

func reader(name, place string, read func(*http.Request) string, want string) adaptertest.Reader {
	serve := func(tb testing.TB, locks *core.Client, rule ruleset.Rule, pay func(context.Context, string) int) string {
		tb.Helper()
		route := "POST /orders"
		if place == "path" {
			route += "/{order}"
		}
		guard, err := httplock.New(locks)
		if err != nil {
			tb.Fatal(err)
		}
		mux := http.NewServeMux()
		err = guard.HandleFunc(mux, route, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(pay(r.Context(), read(r)))
		}, rule)
		if err != nil {
			tb.Fatal(err)
		}
		server := httptest.NewServer(mux)
		tb.Cleanup(server.Close)
		return server.URL
	}
	return adaptertest.Reader{Name: name, Place: place, Serve: serve, Want: want}
}
