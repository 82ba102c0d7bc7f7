package httplock_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
)

// A route may end in a wildcard, as in chi. A reload that changes the lock of such a route is refused.
func TestReload_RekeyUnderAWildcard(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/files/{id}", "/files/*"} {
		file := filepath.Join(t.TempDir(), "locks.yaml")
		rulesettest.Write(t, file, "rules:\n  - {http: \"POST "+path+"\", name: n, key: fromfile}\n")
		rules, err := ruleset.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer rules.Close()
		b := newBench(t, httplock.WithSet(rules))
		if err := b.guard.HandleFunc(anyPattern{}, "POST "+path, ok, ruleset.Rule{Name: "n", Key: "fromcode"}); err != nil {
			t.Fatal(err)
		}
		if err := b.guard.Check(); err != nil {
			t.Fatal(err)
		}
		rulesettest.Write(t, file, "rules: []\n")
		if err := rules.Reload(); err == nil || !strings.Contains(err.Error(), "fromcode") {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

// anyPattern is a router that accepts every pattern.
type anyPattern struct{}

func (anyPattern) Handle(string, http.Handler) {}

// Reloads, Checks, new routes and requests run concurrently. No request runs without its lock.
func TestGuard_Concurrently(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "locks.yaml")
	write := func(n int) {
		text := fmt.Sprintf("unmatched: ignore\nrules:\n  - http: POST /orders/{id}\n    key: order:#{path.id}\n    message: m%d\n", n)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	write(0)
	rules, err := ruleset.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer rules.Close()
	const rounds = 30
	redis := redistest.New(t)
	var guards [2]*httplock.Guard // over one Live set, each with its own client
	for i := range guards {
		locks, err := core.New(redis.Client())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = locks.Close(context.Background()) }()
		if guards[i], err = httplock.New(locks, httplock.WithSet(rules)); err != nil {
			t.Fatal(err)
		}
	}
	locked := func(_ http.ResponseWriter, r *http.Request) {
		if httplock.Hold(r.Context()) == nil {
			t.Errorf("%s runs without its lock", r.URL.Path)
		}
	}
	var all sync.WaitGroup
	all.Go(func() {
		for n := range rounds {
			write(n)
			if err := rules.Reload(); err != nil {
				t.Error(err)
			}
		}
	})
	for _, g := range guards {
		all.Go(func() {
			for range rounds {
				if err := g.Check(); err != nil {
					t.Error(err)
				}
			}
		})
		for kind := range 2 {
			all.Go(func() {
				for n := range rounds {
					mux := http.NewServeMux()
					path := fmt.Sprintf("/%d/%d", kind, n)
					if err := g.HandleFunc(mux, "POST "+path, locked, ruleset.Rule{Key: path}); err != nil {
						t.Error(err)
					}
					mux.Handle("POST /orders/{id}", g.Middleware(http.HandlerFunc(locked)))
					for _, target := range []string{path, "/orders/" + path[1:2]} {
						w := httptest.NewRecorder()
						mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, target, http.NoBody))
						if w.Code != http.StatusOK {
							t.Errorf("%s: got %d %s", target, w.Code, w.Body)
						}
					}
				}
			})
		}
	}
	all.Wait()
}
