package core_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// behindProxy is locks whose commands a proxy sees, on a warm server.
func (b *bed) behindProxy(opts ...core.Option) (*core.Client, *faultproxy.Proxy) {
	b.t.Helper()
	proxy, rdb := faultproxy.Around(b.t, b.Client)
	locks := locksOn(b.t, rdb, opts...)
	b.warm(locks)
	return locks, proxy
}

func TestWatchdog_RenewsEveryThirdOfTheLease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.behindProxy()
		_, hold := acquired(t, t.Context(), locks.Lock("k"))
		var at []time.Duration
		start := time.Now()
		proxy.Watch(faultproxy.All(scripts, func([]string) bool {
			at = append(at, time.Since(start))
			return true
		}))
		pass(time.Minute)
		if n := len(at); n < 6 || n > 8 { // the second was the NOSCRIPT of the first, or not
			t.Errorf("renewals within a minute: got %v", at)
		}
		for i, d := range at[1:] {
			if gap := d - at[i]; gap > 10*time.Second {
				t.Errorf("%s between two renewals, want a third of 30s at most", gap)
			}
		}
		b.wantTTL("k", 20*time.Second, 30*time.Second)
		wantAlive(t, t.Context())
		released(t, hold)
	})
}

func TestWatchdog_KeepsALockForHours(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks(core.WithWatchdog(30 * time.Second))
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
		pass(time.Hour)
		wantAlive(t, ctx)
		b.wantCount(hold, "1")
		if left := hold.Remaining(); left < 19*time.Second || left > 30*time.Second {
			t.Errorf("remaining: got %s", left)
		}
		released(t, hold)
		b.wantGone("k")
	})
}

// A message about a lock that is held makes its holder look at once.
func TestWatchdog_ForcedLockIsNoticedByMessage(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
		waiting, cancel := context.WithCancel(t.Context())
		done := busyCallers(waiting, locks, "k", 1) // a waiter listens
		waiters(t, locks, 1)
		b.listeners("k", 1)
		b.take("k", stranger, time.Minute)
		b.Publish(t.Context(), channelOf("k"), "0")
		select {
		case <-ctx.Done():
		case <-time.After(measured(10 * time.Second)): // a renewal would notice it much later
			t.Error("not noticed")
		}
		wantEnded(t, ctx, core.ErrLost)
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		cancel()
		<-done
	})
}

func TestHold_FixedLeaseEndsTheContextWithErrLost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		ctx, hold := acquired(t, t.Context(), b.locks().Lock("k"), core.LeaseTime(10*time.Second))
		start := time.Now()
		<-ctx.Done()
		if took := time.Since(start); took >= 10*time.Second || took < 9*time.Second {
			t.Errorf("ended after %s, want a little before the lease", took)
		}
		if b.Exists(t.Context(), "k").Val() != 1 {
			t.Error("the key was gone before the holder knew")
		}
		wantEnded(t, ctx, core.ErrLost)
		wantErr(t, ctx.Err(), context.Canceled)
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		if hold.Remaining() != 0 {
			t.Errorf("remaining: got %s", hold.Remaining())
		}
	})
}

// Err compares the clocks itself: no timer has fired, nobody was notified.
func TestHold_ErrLooksAtTheClock(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*core.Hold){
		"wall clock: the machine was suspended": core.EndLeaseOnWallClock,
		"monotonic clock":                       core.EndLeaseOnMonotonicClock,
	} {
		parallelBeds(t, name, func(t *testing.T, b *bed) {
			ctx, hold := acquired(t, t.Context(), b.locks().Lock("k"), core.LeaseTime(time.Hour))
			wantAlive(t, ctx)
			end(hold)
			select {
			case <-ctx.Done():
				t.Error("somebody else has noticed")
			default:
			}
			if hold.Remaining() != 0 {
				t.Errorf("remaining: got %s", hold.Remaining())
			}
			if _, ok := core.Held(ctx, "k"); ok {
				t.Error("Held is true")
			}
			wantEnded(t, ctx, core.ErrLost)
			<-ctx.Done() // all who wait for the context are notified then
			wantErr(t, hold.Release(t.Context()), core.ErrLost)
			b.wantHolders("k", map[string]string{hold.Field(): "1"}) // a loss frees nothing
		})
	}
}

func TestHold_ReleaseLooksAtTheClock(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks, sent := b.counted()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
		before := sent.Hits()
		core.EndLeaseOnWallClock(hold)
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		wantErr(t, context.Cause(ctx), core.ErrLost)
		wantSame(t, "commands about a lock that may be another's", sent.Hits()-before, 0)
	})
}

func TestWatchdog_TenThousandLocksFewRoundTripsNoGoroutines(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.behindProxy()
		goroutines := runtime.NumGoroutine()
		var holds []*core.Hold
		for i := range 100 {
			names := make([]string, 100)
			for j := range names {
				names[j] = strconv.Itoa(i) + "/" + strconv.Itoa(j)
			}
			_, hold := acquired(t, t.Context(), locks.MultiLock(names...))
			holds = append(holds, hold)
		}
		pass(10 * time.Second) // the first renewals make the script known
		sent := proxy.Watch(scripts)
		pass(10 * time.Second)
		if got := sent.Hits(); got < 100 || got > 110 {
			t.Errorf("one period: got %d scripts, want one per hundred locks", got)
		}
		if grown := runtime.NumGoroutine() - goroutines; grown > 2_000 { // other tests have some, too
			t.Errorf("%d goroutines more", grown)
		}
		pass(15 * time.Second)
		for _, hold := range holds[:3] {
			b.wantCount(hold, "1")
		}
		wantSame(t, "held", locks.Stats().Holds, 10_000)
	})
}

func TestWatchdog_ScriptFlushDuringRenewals(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
		for range 10 {
			b.ScriptFlush(t.Context())
			pass(10 * time.Second)
		}
		wantAlive(t, ctx)
		b.wantCount(hold, "1")
		released(t, hold)
	})
}

func TestWatchdog_ScriptFlushOnAServer(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		obs := newRecorder()
		ctx, hold := acquired(t, t.Context(), b.locks(core.WithWatchdog(unhurried(3*time.Second)), core.WithObserver(obs.observer())).Lock("k"))
		for range 3 {
			b.ScriptFlush(t.Context())
			n := obs.count("renewal")
			eventually(t, "another renewal", func() bool { return obs.count("renewal") > n })
		}
		wantAlive(t, ctx)
		released(t, hold)
	})
}

func TestWatchdog_TheSameLeaseAsConfigured(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		_, hold := acquired(t, t.Context(), b.locks(core.WithWatchdog(time.Hour)).Lock("k"))
		b.wantTTL("k", 59*time.Minute, time.Hour)
		released(t, hold)
	})
}

// A key that is no lock any more ends its own hold, not those that are renewed by the
// same script.
func TestWatchdog_OverwrittenKeyEndsItsHoldOnly(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		lost, _ := acquired(t, t.Context(), locks.Lock("overwritten"))
		kept, hold := acquired(t, t.Context(), locks.Lock("k"))
		b.Set(t.Context(), "overwritten", "text", 0)
		pass(time.Minute)
		if cause := context.Cause(lost); !errors.Is(cause, core.ErrLost) {
			t.Errorf("overwritten: got %v, want lost", cause)
		}
		if kept.Err() != nil {
			t.Errorf("beside it: %v", context.Cause(kept))
		}
		released(t, hold)
	})
}
