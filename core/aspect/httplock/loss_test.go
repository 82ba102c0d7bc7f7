package httplock_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// failOnLoss gives a rule on_lost: fail, which discards the answer after a loss.
func failOnLoss(r *ruleset.Rule) { r.LeaseTime, r.OnLost = time.Hour, failpolicy.Fail }

// Without a buffer, a sent answer cannot be taken back, so a rule must not ask for that.
func TestHandle_OnLostFailNeedsABuffer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pattern string
		opts    []any
		want    string // "" for no problem
	}{
		"without":               {"POST /orders/{id}", nil, `OnLost: the route has no buffer, so that an answer cannot be taken back: give WithBuffer(64<<10, "POST /orders/{id}"), or write OnLost: failpolicy.Cancel`},
		"of another route":      {"POST /orders/{id}", []any{httplock.WithBuffer(1<<10, "POST /other")}, `give WithBuffer(64<<10, "POST /orders/{id}")`},
		"of the route":          {"POST /orders/{id}", []any{httplock.WithBuffer(1<<10, "POST /orders/{id}")}, ""},
		"of all routes":         {"POST /orders/{id}", []any{httplock.WithBuffer(1 << 10)}, ""},
		"of methods not known":  {"/orders/{id}", nil, `give WithBuffer(64<<10), or`},
		"of a method in it":     {"/orders/{id}", nil, `give WithBuffer(64<<10, "PUT /orders/{id}"), or`},
		"of a pattern, for all": {"/orders/{id}", []any{httplock.WithBuffer(1 << 10)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tt.opts...)
			b.mux.HandleFunc("POST /other", ok)
			handled := b.guard.HandleFunc(b.mux, tt.pattern, ok, byID(failOnLoss))
			checked := b.guard.Check("POST /other")
			code := http.StatusAccepted
			for what, err := range map[string]error{"Handle": handled, "Check": checked} {
				switch {
				case tt.want == "" && err != nil:
					t.Errorf("%s: got %v", what, err)
				case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
					t.Errorf("%s: got %v, want %s in it", what, err, tt.want)
				}
			}
			if tt.want != "" {
				code = http.StatusInternalServerError
			}
			if got := b.do("POST", "/orders/42", nil); got.Code != code {
				t.Errorf("got %d, want %d", got.Code, code)
			}
		})
	}
}

// After a loss, no part of an answer is sent, even if the answer is larger than the buffer.
func TestBuffer_SendsNothingAfterALoss(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string][]ruleset.Rule{
		"one rule": {byID(failOnLoss)},
		"a loss of another rule": {
			byID(failOnLoss, func(r *ruleset.Rule) { r.Name = "order" }),
			byID(func(r *ruleset.Rule) { r.Name, r.Key, r.LeaseTime = "stock", "stock", time.Hour }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, httplock.WithBuffer(4))
			err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
				if err := httplock.Hold(r.Context()).Refresh(context.WithoutCancel(r.Context()), time.Millisecond); err != nil {
					t.Error(err)
				}
				<-r.Context().Done()
				for range 2 {
					if _, err := io.WriteString(w, "more than four"); !errors.Is(err, core.ErrLost) {
						t.Errorf("Write: %v, want the loss", err)
					}
				}
				_, _ = io.WriteString(w, "less")
			}, rules...)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.do("POST", "/orders/42", nil); got.Code != http.StatusInternalServerError || !strings.Contains(got.Body.String(), failpolicy.Lost.Type()) {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
		})
	}
}

// Lost returns the loss of a lock and a shutdown that does not wait, and nil for other ends of a handler's context.
func TestLost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(ctx context.Context, b *bench) error // ends the handler's context
		want error
	}{
		"lost": {func(ctx context.Context, _ *bench) error {
			return httplock.Hold(ctx).Refresh(context.WithoutCancel(ctx), time.Millisecond)
		}, core.ErrLost},
		"closed": {func(ctx context.Context, b *bench) error {
			canceled, cancel := context.WithCancel(context.WithoutCancel(ctx))
			cancel()
			if err := b.locks.Close(canceled); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		}, core.ErrClosed},
		"released": {func(ctx context.Context, _ *bench) error { return httplock.Hold(ctx).Release(ctx) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", func(_ http.ResponseWriter, r *http.Request) {
				ctx := r.Context()
				if err := httplock.Lost(ctx); err != nil {
					t.Errorf("before the end: %v", err)
				}
				if err := tt.end(ctx, b); err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				if err := httplock.Lost(ctx); !errors.Is(err, tt.want) {
					t.Errorf("got %v, want %v", err, tt.want)
				}
			}, byID(func(r *ruleset.Rule) { r.LeaseTime = time.Hour }))
			if err != nil {
				t.Fatal(err)
			}
			b.do("POST", "/orders/42", nil)
		})
	}
}
