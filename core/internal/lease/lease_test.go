package lease_test

import (
	"errors"
	"sync"
	"testing"
	"time"
)

func TestLease_EndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.held("k", time.Second)
		end := after(time.Second - margin(time.Second))
		pass(time.Until(end) - time.Millisecond)
		wantHeld(t, h)
		pass(2 * time.Millisecond)
		wantLost(t, h, errOver)
		if late := h.lost()[0].at.Sub(end); late < 0 || late > time.Millisecond {
			t.Errorf("reported %s after the deadline", late)
		}
		if h.Remaining(time.Now()) != 0 || h.Alive(time.Now()) || b.Count() != 0 {
			t.Errorf("%s remain, alive %v, %d under watch", h.Remaining(time.Now()), h.Alive(time.Now()), b.Count())
		}
	})
}

// A caller that checks the clock finds the loss before the scheduler does.
func TestLease_CheckClock(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.opened("k", time.Second)
		if err := h.CheckClock(time.Now()); err != nil {
			t.Errorf("got %v", err)
		}
		wantHeld(t, h)
		for range 2 {
			if err := h.CheckClock(after(time.Second)); !errors.Is(err, errOver) {
				t.Errorf("got %v", err)
			}
		}
		wantLost(t, h, errOver)
	})
}

// Only the first loss counts and is reported. Later losses are ignored.
func TestLease_IsLostOnceAndForAll(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.renewed("k")
		first := errors.New("first")
		h.Lose(first)
		wantLost(t, h, first)
		h.Lose(errGone)
		b.redis.say("k", gone)
		h.Doubt()
		pass(time.Hour)
		if err := h.BeginRelease(); !errors.Is(err, first) {
			t.Errorf("the release began: %v", err)
		}
		h.End()
		h.Acknowledge(time.Now(), time.Hour)
		h.Watch(time.Now())
		wantLost(t, h, first)
		if calls := b.redis.calls(); len(calls) > 0 || b.Count() > 0 {
			t.Errorf("%d calls, %d under watch", len(calls), b.Count())
		}
		if h.Left(time.Now()) > 0 {
			t.Error("the deadline was raised")
		}
	})
}

func TestLease_ManyFindTheLossAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		for range 100 {
			h := b.held("k", time.Second)
			now := after(time.Minute)
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					if i%2 == 0 {
						h.Lose(errOver)
					}
					if err := h.CheckClock(now); !errors.Is(err, errOver) {
						t.Errorf("the clock was checked: %v", err)
					}
				})
			}
			all.Wait()
			wantLost(t, h, errOver)
		}
	})
}

// Once a release has begun, the lease cannot be lost any more.
func TestLease_ReleaseMakesLossesVoid(t *testing.T) {
	t.Parallel()
	for name, find := range map[string]func(b *bed, h *holding){
		"lost":         func(_ *bed, h *holding) { h.Lose(errGone) },
		"clock":        func(_ *bed, h *holding) { _ = h.CheckClock(after(time.Hour)) },
		"deadline":     func(_ *bed, _ *holding) { pass(time.Hour) },
		"acknowledged": func(_ *bed, h *holding) { h.Acknowledge(time.Now(), time.Hour); pass(time.Hour) },
		"asked":        func(b *bed, h *holding) { b.redis.say("k", gone); h.Doubt(); pass(time.Second) },
	} {
		for step, begin := range map[string]func(h *holding) error{
			"releasing": func(h *holding) error { return h.BeginRelease() },
			"ended":     func(h *holding) error { defer h.End(); return h.BeginRelease() },
			"left":      func(h *holding) error { h.End(); return nil },
		} {
			parallelBubble(t, name+", "+step, func(t *testing.T, b *bed) {
				h := b.renewed("k")
				before := h.Left(b.start)
				if err := begin(h); err != nil {
					t.Error(err)
				}
				find(b, h)
				if h.Held() || h.Loss() != nil || len(h.lost()) > 0 {
					t.Errorf("held %v, loss %v, lost for %v", h.Held(), h.Loss(), h.lost())
				}
				if h.Left(b.start) != before {
					t.Error("the deadline has moved")
				}
				if h.Remaining(b.start) != 0 {
					t.Errorf("%s remain", h.Remaining(b.start))
				}
				if err := h.BeginRelease(); err != nil {
					t.Errorf("again: %v", err)
				}
			})
		}
	}
}

// A lease stays under watch during its release. So a caller that waits until no lease is left also waits for
// the release.
func TestLease_IsUnderWatchUntilItsEnd(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.held("k", time.Minute)
		drained := b.Drained()
		if err := h.BeginRelease(); err != nil {
			t.Error(err)
		}
		pass(time.Second)
		select {
		case <-drained:
			t.Error("drained before the end")
		default:
		}
		h.End()
		<-drained
	})
}

// The same is true if the lease expires during the release.
func TestLease_IsUnderWatchUntilItsEnd_AfterTheDeadline(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(b *bed, h *holding){
		"fixed":   func(_ *bed, h *holding) { h.Watch(time.Now()) },
		"renewed": func(_ *bed, h *holding) { h.Renew(time.Now()) },
		"renewal on the wire": func(b *bed, h *holding) {
			b.redis.delay("n", ttl)
			h.Renew(time.Now())
			pass(third)
		},
		"suspended": func(b *bed, h *holding) {
			h.Watch(time.Now())
			b.AdvanceWallClock(time.Hour)
		},
	} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			h := b.opened("n/k", ttl)
			open(b, h)
			drained := b.Drained()
			if err := h.BeginRelease(); err != nil {
				t.Error(err)
			}
			pass(ttl / 2)
			h.Acknowledge(time.Now(), time.Minute)
			b.redis.delay("n", 0)
			pass(10 * ttl)
			other, brief := b.renewed("n/other"), b.held("n/brief", time.Second)
			pass(10 * ttl)
			wantHeld(t, other)
			wantLost(t, brief, errOver)
			other.End()
			select {
			case <-drained:
				t.Error("drained before the end")
			default:
			}
			if n := b.Count(); n != 1 || h.Loss() != nil {
				t.Errorf("%d under watch, loss %v", n, h.Loss())
			}
			h.End()
			<-drained
		})
	}
}
