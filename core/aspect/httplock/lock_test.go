package httplock_test

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

const orderKey = "order:#{path.id}"

// lock returns a Lock of the bench that does not wait, around a handler.
func (b *bench) lock(key string, h http.HandlerFunc, further ...ruleset.Rule) http.Handler {
	if further == nil {
		further = []ruleset.Rule{{WaitTime: ruleset.NoWait}}
	}
	return httplock.Lock(b.locks, key, further...)(h)
}

// panicOf returns the value with which do panics.
func panicOf(do func()) (value any) {
	defer func() { value = recover() }()
	do()
	return nil
}

func TestLock_Panics(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tests := map[string]struct {
		key     string
		further []ruleset.Rule
		says    string
	}{
		"unknown variable":    {"order:#{pth.id}", nil, "Key: 1:9: unknown name pth"},
		"bad template":        {"order:#{path.id", nil, "Key: 1:7: the part is not closed"},
		"bad time":            {"k", []ruleset.Rule{{WaitTime: -5}}, "WaitTime: -5ns is out of range"},
		"unknown strategy":    {"k", []ruleset.Rule{{OnBusy: "skipp"}}, "OnBusy"},
		"no permits":          {"k", []ruleset.Rule{{Kind: ruleset.Semaphore}}, "Permits"},
		"none":                {"k", []ruleset.Rule{{None: true}}, "None"},
		"two rules":           {"k", make([]ruleset.Rule, 2), "2 rules"},
		"two keys":            {"k", []ruleset.Rule{{Keys: []string{"k"}}}, "remove it from the rule"},
		"an endpoint":         {"k", []ruleset.Rule{{Endpoint: ruleset.HTTP("POST /x")}}, "has the Endpoint http POST /x"},
		"fallback":            {"k", []ruleset.Rule{{OnBusy: failpolicy.Fallback, Fallback: "queue"}}, "WithFallback"},
		"registered variable": {"#{user}", nil, "unknown name user"},
		"answer taken back":   {"k", []ruleset.Rule{{OnLost: failpolicy.Fail}}, "WithBuffer"},
	}
	for name, tt := range tests {
		got := fmt.Sprint(panicOf(func() { httplock.Lock(b.locks, tt.key, tt.further...) }))
		for _, part := range []string{"httplock: ", "Lock at ", "lock_test.go:", tt.says} {
			if !strings.Contains(got, part) {
				t.Errorf("%s: the message does not contain %q:\n%s", name, part, got)
			}
		}
	}
	if got := fmt.Sprint(panicOf(func() { httplock.Lock(nil, "k") })); !strings.Contains(got, "the lock client is nil") {
		t.Errorf("nil client: got %q", got)
	}
}

// Only the Pattern determines the entry of a request.
func TestLock_Patterns(t *testing.T) {
	t.Parallel()
	var seen warnings
	var names []string
	observer := seen.observer()
	observer.Rules = &aspect.Observer{
		Warning: func(p *ruleset.Problem) { seen = append(seen, p.Error()) },
		Rule:    func(r aspect.RuleInfo) { names = append(names, r.Rule) },
	}
	b := newBench(t, core.WithObserver(observer))
	never := func(http.ResponseWriter, *http.Request) { t.Error("the handler runs") }
	held := func(w http.ResponseWriter, r *http.Request) {
		if _, is := core.Held(r.Context(), "order:42"); !is {
			t.Error("the handler runs without its lock")
		}
		ok(w, r)
	}
	b.mux.Handle("POST /orders/{id}", b.lock(orderKey, held))
	b.mux.Handle("/any/{id}", b.lock(orderKey, held))
	chi := newSubrouter("/chi")
	chi.Handle("POST /{id}", b.lock(orderKey, held))
	b.mux.Handle("POST /typo/{idd}", b.lock(orderKey, never))
	anywhere := b.lock("order:#{query.id}", held)
	around := b.lock(orderKey, never)

	steps := []struct {
		router       http.Handler
		method, path string
		free, taken  int    // the statuses
		name         string // the rule that observers get
		warns        string
	}{
		{router: b.mux, method: "POST", path: "/orders/42", free: 202, taken: 409, name: "POST /orders/{id}"},
		{router: b.mux, method: "POST", path: "/any/42", free: 202, taken: 409, name: "* /any/{id}"},
		{router: b.mux, method: "BREW", path: "/any/42", free: 202, taken: 409},
		{router: chi, method: "POST", path: "/chi/42", free: 202, taken: 409, name: "* /chi/{id}"},
		{router: anywhere, method: "POST", path: "/x?id=42", free: 202, taken: 409, name: "*"},
		{router: b.mux, method: "POST", path: "/typo/42", free: 500, taken: 500, warns: "path parameter id does not exist: there is idd"},
		{router: around, method: "POST", path: "/orders/42", free: 500, taken: 500, warns: "a request without a Pattern"},
	}
	for _, step := range steps {
		seen, names = nil, nil
		b.redis.Free("order:42")
		if got := serve(step.router, step.method, step.path).Code; got != step.free {
			t.Errorf("%s %s: got %d, want %d", step.method, step.path, got, step.free)
		}
		b.redis.Take("order:42", time.Hour)
		if got := serve(step.router, step.method, step.path).Code; got != step.taken {
			t.Errorf("%s %s, taken: got %d, want %d", step.method, step.path, got, step.taken)
		}
		if got := strings.Join(names, ", "); got != step.name {
			t.Errorf("%s %s: observers got the rules %q, want %q", step.method, step.path, got, step.name)
		}
		if (len(seen) == 1) != (step.warns != "") || step.warns != "" && !strings.Contains(seen[0], step.warns) {
			t.Errorf("%s %s: observers got the warnings %q, want %q", step.method, step.path, seen, step.warns)
		}
	}
}

func TestLock_Request(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		status := func(what string, want int, path string) {
			t.Helper()
			if got := serve(b.mux, "POST", path).Code; got != want {
				t.Errorf("%s: got %d, want %d", what, got, want)
			}
		}
		b.mux.Handle("POST /wait/{id}", b.lock(orderKey, ok, ruleset.Rule{WaitTime: 2 * time.Second}))
		b.mux.Handle("POST /panic/{id}", b.lock(orderKey, func(http.ResponseWriter, *http.Request) { panic("boom") }))
		b.mux.Handle("POST /skip/{id}", b.lock(orderKey, ok, ruleset.Rule{WaitTime: ruleset.NoWait, OnBusy: failpolicy.Skip}))
		b.mux.Handle("POST /brief/{id}", b.lock(orderKey, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}, ruleset.Rule{LeaseTime: time.Second}))

		status("free", http.StatusAccepted, "/wait/42")
		b.redis.Take("order:42", time.Hour)
		start := time.Now()
		status("taken", http.StatusConflict, "/wait/42")
		if took := time.Since(start).Round(100 * time.Millisecond); took != 2*time.Second {
			t.Errorf("waited %s", took)
		}
		status("another order", http.StatusAccepted, "/wait/43")
		status("skipped", http.StatusNoContent, "/skip/42")
		b.redis.Free("order:42")
		if got := panicOf(func() { serve(b.mux, "POST", "/panic/42") }); got != "boom" {
			t.Errorf("got the panic %v", got)
		}
		status("after the panic", http.StatusAccepted, "/skip/42")
		status("lost", http.StatusInternalServerError, "/brief/42")
	})
}

// The locks of a handler have different names. Each is taken.
func TestLock_TwoOnARoute(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mux.Handle("POST /x", b.lock("a", b.lock("b", func(w http.ResponseWriter, r *http.Request) {
		if n := len(core.HoldsOf(r.Context())); n != 2 {
			t.Errorf("the handler runs with %d locks", n)
		}
		ok(w, r)
	}).ServeHTTP))
	for range 2 {
		if got := serve(b.mux, "POST", "/x").Code; got != http.StatusAccepted {
			t.Errorf("got %d", got)
		}
	}
	for _, key := range []string{"a", "b"} {
		b.redis.Take(key, time.Hour)
		if got := serve(b.mux, "POST", "/x").Code; got != http.StatusConflict {
			t.Errorf("%s taken: got %d", key, got)
		}
		b.redis.Free(key)
	}
}

// A Lock that is created for every request is the same each time.
func TestLock_CreatedPerRequest(t *testing.T) {
	t.Parallel()
	var names []string
	b := newBench(t, core.WithObserver(&core.Observer{Rules: &aspect.Observer{Rule: func(r aspect.RuleInfo) { names = append(names, r.Rule) }}}))
	b.mux.HandleFunc("POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) { b.lock(orderKey, ok).ServeHTTP(w, r) })
	for range 3 {
		if got := serve(b.mux, "POST", "/orders/42").Code; got != http.StatusAccepted {
			t.Errorf("got %d", got)
		}
	}
	if !slices.Equal(names, []string{"POST /orders/{id}"}) {
		t.Errorf("observers got the rules %q", names)
	}
}

// A guard checks its rules together with each Lock that has served a request. Its kill switch does not affect Lock.
func TestLock_BesideAGuard(t *testing.T) {
	t.Parallel()
	b := newBench(t, httplock.WithRules(at("POST /orders/{id}")))
	handler := b.lock("lock", ok)
	if err := b.guard.Handle(b.mux, "POST /orders/{id}", handler); err != nil {
		t.Fatal(err)
	}
	if err := b.guard.Check(); err != nil {
		t.Errorf("before the first request: got %v", err)
	}
	if got := serve(b.mux, "POST", "/orders/42").Code; got != http.StatusInternalServerError {
		t.Errorf("two rules of one name: got %d", got)
	}
	if err := b.guard.Check(); err == nil || !strings.Contains(err.Error(), "is there twice") {
		t.Errorf("after it: got %v", err)
	}

	b.mux.Handle("POST /lock", handler)
	b.redis.Take("lock", time.Hour)
	a, err := aspect.Of(b.locks)
	if err != nil {
		t.Fatal(err)
	}
	var codes []int
	for _, suspend := range []func(){func() {}, b.guard.Aspect().Suspend, a.Suspend} {
		suspend()
		codes = append(codes, serve(b.mux, "POST", "/lock").Code)
	}
	if !slices.Equal(codes, []int{409, 409, 202}) {
		t.Errorf("got %v", codes)
	}
}

// A middleware that is around no handler warns when it is garbage.
func TestLock_Dropped(t *testing.T) {
	t.Parallel()
	warned := make(chan string, 10)
	b := newBench(t, core.WithObserver(&core.Observer{Rules: &aspect.Observer{Warning: func(p *ruleset.Problem) { warned <- p.Error() }}}))
	b.lock(orderKey, ok)
	httplock.Lock(b.locks, orderKey)
	timeout := time.Now().Add(5 * time.Minute) // for a test that fails
	for len(warned) == 0 && time.Now().Before(timeout) {
		runtime.GC()
	}
	select {
	case got := <-warned:
		if !strings.Contains(got, "Lock at ") || !strings.Contains(got, "lock_test.go:") || !strings.Contains(got, "put it around a handler") {
			t.Errorf("got the warning %q", got)
		}
	default:
		t.Error("no warning")
	}
}

// A guard without any rules guards nothing.
func TestCheck_NoRules(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := b.guard.HandleFunc(b.mux, "POST /orders", ok); err != nil {
		t.Fatal(err)
	}
	if err := b.guard.Check(); err == nil || !strings.Contains(err.Error(), "the guard has no rules: give it WithSet or WithRules") {
		t.Errorf("got %v", err)
	}
	b.lock(orderKey, ok)
	if err := b.guard.Check(); err != nil {
		t.Errorf("with a Lock: %v", err)
	}
}
