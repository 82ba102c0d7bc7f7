package acquiring_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// page is the context type of a framework: a context.Context with its own values, but not the values of its request.
type page struct {
	context.Context

	request *pageRequest
}

type pageKey struct{}

func (p *page) Value(key any) any {
	if key == (pageKey{}) {
		return p.request
	}
	return nil
}

type pageRequest struct{ ctx context.Context }

func (r *pageRequest) Context() context.Context { return r.ctx }

func newPage(ctx context.Context) *page {
	return &page{Context: context.Background(), request: &pageRequest{ctx}}
}

// acquiresAtOnce reports whether an Acquire with a context succeeds at once, because it re-enters or the lock is free.
func acquiresAtOnce(t *testing.T, ctx context.Context, l core.Lock) bool {
	t.Helper()
	err := l.Do(ctx, func(context.Context) error { return nil }, core.WaitTime(0))
	if err != nil && !errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("Do: %v", err)
	}
	return err == nil
}

func TestFindThrough_FindsTheHoldsOfARequest(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		for range 2 {
			locks.ForAdapters().FindThrough(pageKey{})
		}
		outer, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		p := newPage(outer)
		derived, cancel := context.WithTimeout(p, time.Hour)
		defer cancel()
		nested, other := locktest.MustAcquire(t, p, locks.Lock("other"))
		for name, ctx := range map[string]context.Context{"it": p, "one derived": derived, "one with another lock": nested} {
			if !acquiresAtOnce(t, ctx, locks.Lock("k")) {
				t.Errorf("Acquire with %s waits for itself", name)
			}
			if !acquiresAtOnce(t, ctx, locks.MultiLock("k", "third")) {
				t.Errorf("MultiLock with %s waits for itself", name)
			}
		}
		locktest.MustRelease(t, other)
		locktest.MustRelease(t, hold)
		if !acquiresAtOnce(t, t.Context(), locks.Lock("k")) {
			t.Error("the lock is not free after the outer release")
		}
	})
}

func TestFindThrough_OtherContexts(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, stranger := b.Locks(), b.Locks()
		locks.ForAdapters().FindThrough(pageKey{})
		outer, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		p := newPage(outer)
		moved, kept := locktest.MustAcquire(t, core.Detach(p), locks.Lock("other"))
		for name, ctx := range map[string]context.Context{
			"another request":           newPage(t.Context()),
			"none":                      &page{Context: t.Context()},
			"a detached one":            core.Detach(p),
			"a lock of a detached one":  moved,
			"the request detached":      newPage(core.Detach(outer)),
			"its request, then another": newPage(newPage(t.Context())),
		} {
			if acquiresAtOnce(t, ctx, locks.Lock("k")) {
				t.Errorf("Acquire with %s re-enters", name)
			}
		}
		if acquiresAtOnce(t, p, stranger.Lock("k")) {
			t.Error("a client without the finder has found the hold")
		}
		locktest.MustRelease(t, kept)
		locktest.MustRelease(t, hold)
	})
}

// The context of a hold may be the context of the request from which it was derived.
func TestFindThrough_CircularContexts(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		locks.ForAdapters().FindThrough(pageKey{})
		p := newPage(t.Context())
		ctx, hold := locktest.MustAcquire(t, p, locks.Lock("k"))
		p.request.ctx = ctx
		for name, ctx := range map[string]context.Context{"the request's": p, "the hold's": ctx} {
			if !acquiresAtOnce(t, ctx, locks.Lock("k")) || !acquiresAtOnce(t, ctx, locks.Lock("other")) {
				t.Errorf("Acquire with %s context fails", name)
			}
		}
		locktest.MustRelease(t, hold)
	})
}

// HoldsOf lists all holds that a context carries, the innermost first, including the holds of another client. It omits
// holds that have ended. A detached context carries no holds.
func TestHoldsOf_ListsWhatTheContextCarries(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, others := b.Locks(), b.Locks()
		if got := core.HoldsOf(t.Context()); got != nil {
			t.Errorf("of a context without a lock: got %v, want none", got)
		}
		ctx, outer := locktest.MustAcquire(t, t.Context(), locks.Lock("outer"), core.Label("pay"))
		ctx, again := locktest.MustAcquire(t, ctx, locks.Lock("outer"))
		ctx, inner := locktest.MustAcquire(t, ctx, others.Lock("inner"))

		got := core.HoldsOf(ctx)
		want := []*core.Hold{inner, again, outer}
		if len(got) != len(want) {
			t.Fatalf("got %d holds, want %d: %+v", len(got), len(want), got)
		}
		for i, hold := range want {
			if got[i].Key != hold.Key() || got[i].Field != hold.Field() {
				t.Errorf("hold %d: got %s of %s, want %s of %s", i, got[i].Field, got[i].Key, hold.Field(), hold.Key())
			}
		}
		if !got[1].Reentrant || got[2].Reentrant || got[2].Label != "pay" {
			t.Errorf("got %+v, want the second one as a re-entry and the label of the last one", got)
		}
		if hidden := core.HoldsOf(core.Detach(ctx)); hidden != nil {
			t.Errorf("of a detached context: got %v, want none", hidden)
		}
		locktest.MustRelease(t, inner)
		if left := core.HoldsOf(ctx); len(left) != 2 || left[0].Key != again.Key() {
			t.Errorf("after the release of the inner one: got %+v, want the two of the outer lock", left)
		}
		locktest.MustRelease(t, again)
		locktest.MustRelease(t, outer)
		if left := core.HoldsOf(ctx); left != nil {
			t.Errorf("after all releases: got %+v, want none", left)
		}
	})
}

func TestHeld_NamesAndPrefix(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithPrefix("shop:")).Lock("k"))
		if h, ok := core.Held(ctx, "k"); !ok || h != hold {
			t.Errorf("Held: got %v, %v", h, ok)
		}
		for _, name := range []string{"shop:k", "other", ""} {
			if _, ok := core.Held(ctx, name); ok {
				t.Errorf("Held(%q) finds a hold", name)
			}
		}
		if _, ok := core.Held(t.Context(), "k"); ok {
			t.Error("Held finds a hold in a context without one")
		}
		locktest.MustRelease(t, hold)
		if _, ok := core.Held(ctx, "k"); ok {
			t.Error("Held finds a hold after its release")
		}
	})
}

func TestMustHold_PanicsWithTheName(t *testing.T) {
	t.Parallel()
	defer func() {
		if text, ok := recover().(string); !ok || !strings.Contains(text, `"order:42"`) {
			t.Errorf("panic: got %v", text)
		}
	}()
	core.MustHold(t.Context(), "order:42")
}
