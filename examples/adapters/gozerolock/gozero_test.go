package gozerolock_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zeromicro/go-zero/rest"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/adapters/gozerolock"
)

// newGuard returns a guard with one rule. The rule locks an order and does not wait.
func newGuard(t *testing.T, path string, change ...func(*ruleset.Rule)) (*redistest.Server, *httplock.Guard) {
	t.Helper()
	redis := redistest.New(t)
	locks, err := core.New(redis.Client())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	rule := ruleset.Rule{Endpoint: ruleset.HTTP("POST " + path), Key: "order:#{path.id}", WaitTime: ruleset.NoWait}
	for _, do := range change {
		do(&rule)
	}
	guard, err := httplock.New(locks, httplock.WithRules(rule))
	if err != nil {
		t.Fatal(err)
	}
	return redis, guard
}

// pay returns a route. Its handler waits for work.
func pay(work <-chan struct{}) rest.Route {
	return rest.Route{Method: http.MethodPost, Path: "/orders/:id", Handler: func(w http.ResponseWriter, _ *http.Request) {
		<-work
		w.WriteHeader(http.StatusNoContent)
	}}
}

// finished returns work that is done.
func finished() <-chan struct{} {
	work := make(chan struct{})
	close(work)
	return work
}

func want(t *testing.T, handler http.Handler, path string, code int) {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, http.NoBody))
	if w.Code != code {
		t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, code)
	}
}

func check(t *testing.T, server *rest.Server, guard *httplock.Guard) {
	t.Helper()
	if err := gozerolock.Check(server, guard); err != nil {
		t.Fatal(err)
	}
}

// A wait ends before the timeout of go-zero. If a handler works longer than the timeout, the lock is held until the handler
// returns.
func TestRoutes_Timeout(t *testing.T) {
	t.Parallel()
	var guarded rest.Route
	server := newServer(t, rest.RestConf{Timeout: 1000, Middlewares: rest.MiddlewaresConf{Timeout: true}}) // go-zero registers it outside of the bubble
	handler := serve(t, server, []rest.Route{{
		Method: http.MethodPost, Path: "/orders/:id", Handler: func(w http.ResponseWriter, r *http.Request) { guarded.Handler(w, r) },
	}})
	synctest.Test(t, func(t *testing.T) {
		redis, guard := newGuard(t, "/orders/:id", func(r *ruleset.Rule) { r.WaitTime = time.Hour })
		work := make(chan struct{})
		guarded = gozerolock.Routes(guard, "", pay(work))[0]
		check(t, server, guard)
		redis.Take("order:41", 2*time.Hour)
		want(t, handler, "/orders/41", http.StatusConflict)

		want(t, handler, "/orders/42", http.StatusServiceUnavailable)
		want(t, handler, "/orders/42", http.StatusConflict)
		close(work)
		synctest.Wait()
		want(t, handler, "/orders/42", http.StatusNoContent)
	})
}

// With a wrong prefix, requests get 500.
func TestRoutes_Prefix(t *testing.T) {
	t.Parallel()
	for prefix, code := range map[string]int{
		"/api": http.StatusConflict, "": http.StatusInternalServerError, "/v1": http.StatusInternalServerError,
	} {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			redis, guard := newGuard(t, "/api/orders/:id")
			server := newServer(t, rest.RestConf{})
			handler := serve(t, server, gozerolock.Routes(guard, prefix, pay(finished())), rest.WithPrefix("/api"))
			check(t, server, guard)
			redis.Take("order:42", time.Hour)
			want(t, handler, "/api/orders/42", code)
		})
	}
}

// Taken locks do not open the circuit breaker of go-zero.
func TestRoutes_Breaker(t *testing.T) {
	t.Parallel()
	redis, guard := newGuard(t, "/orders/:id")
	server := newServer(t, rest.RestConf{Middlewares: rest.MiddlewaresConf{Breaker: true}})
	handler := serve(t, server, gozerolock.Routes(guard, "", pay(finished())))
	check(t, server, guard)
	redis.Take("order:42", time.Hour)
	for range 100 {
		want(t, handler, "/orders/42", http.StatusConflict)
	}
	redis.Free("order:42")
	want(t, handler, "/orders/42", http.StatusNoContent)
}

// All spellings of an order have one key.
func TestRoutes_Spelling(t *testing.T) {
	t.Parallel()
	redis, guard := newGuard(t, "/orders/:id")
	server := newServer(t, rest.RestConf{})
	handler := serve(t, server, gozerolock.Routes(guard, "", pay(finished())))
	check(t, server, guard)
	redis.Take("order:42", time.Hour)
	for _, path := range []string{"/orders/42", "/orders/%34%32", "//orders/./42"} {
		want(t, handler, path, http.StatusConflict)
	}
	want(t, handler, "/orders/43", http.StatusNoContent)
}
