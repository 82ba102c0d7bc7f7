package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// notAcquired finds the typed error.
func notAcquired(t *testing.T, err error) *core.NotAcquiredError {
	t.Helper()
	var e *core.NotAcquiredError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *NotAcquiredError", err)
	}
	return e
}

func TestAcquire_UncontendedIsOneRoundTripAndSoIsRelease(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks, sent := b.counted()
		b.warm(locks)
		before := sent.Hits()
		_, hold := acquired(t, t.Context(), locks.Lock("k"))
		wantSame(t, "acquire: scripts", sent.Hits()-before, 1)
		released(t, hold)
		wantSame(t, "acquire and release: scripts", sent.Hits()-before, 2)
	})
}

func TestAcquire_WaitZeroIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		proxy, rdb := faultproxy.Around(t, b.Client)
		locks := locksOn(t, rdb)
		b.warm(locks)
		b.take("k", stranger, time.Minute)
		all := proxy.Watch(faultproxy.Command("evalsha", "eval", "subscribe")) // a slow answer has a ping beside it
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
		wantSame(t, "commands", all.Hits(), 1)
	})
}

func TestAcquire_WaitZeroBesideAQueue(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		_, hold := acquired(t, t.Context(), locks.Lock("k"))
		ctx, cancel := context.WithCancel(t.Context())
		done := busyCallers(ctx, locks, "k", 1)
		waiters(t, locks, 1)
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
		cancel()
		<-done
		released(t, hold)
	})
}

func TestAcquire_WaitTimeIsAnUpperBound(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, time.Hour)
		for _, wait := range []time.Duration{time.Millisecond, 300 * time.Millisecond, 3 * time.Second, time.Minute} {
			start := time.Now()
			_, _, err := b.locks().Lock("k").Acquire(t.Context(), core.WaitTime(wait))
			wantErr(t, err, core.ErrNotAcquired)
			if got := time.Since(start); got < wait || got > wait+time.Millisecond {
				t.Errorf("WaitTime(%s): returned after %s", wait, got)
			}
			if e := notAcquired(t, err); e.Cause != nil || e.Waited < wait || e.BlockedBy != stranger {
				t.Errorf("WaitTime(%s): got %+v", wait, e)
			}
		}
	})
}

func TestAcquire_WithoutWaitTimeWaitsUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, 10*time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		start := time.Now()
		_, _, err := b.locks().Lock("k").Acquire(ctx)
		wantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
		wantSame(t, "returned after", time.Since(start), 10*time.Minute)
	})
}

func TestAcquire_ErrorGivesTheContextBackAndANilHold(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, time.Minute)
		type key struct{}
		in := context.WithValue(t.Context(), key{}, 1)
		out, hold, err := b.locks().Lock("k").Acquire(in, core.WaitTime(0))
		if out != in || hold != nil || err == nil {
			t.Errorf("got %v, %v, %v, want the context as given, nil, an error", out, hold, err)
		}
		wantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		wantErr(t, hold.Refresh(t.Context(), time.Second), core.ErrNotHeld)
		wantErr(t, hold.Leave(t.Context(), time.Second), core.ErrNotHeld)
		if hold.Remaining() != 0 {
			t.Errorf("Remaining of a nil Hold: got %s", hold.Remaining())
		}
		if hold.Key() != "" || hold.Keys() != nil || hold.Field() != "" || hold.Token() != 0 {
			t.Errorf("a nil Hold: got %q, %q, %q, %d", hold.Key(), hold.Keys(), hold.Field(), hold.Token())
		}
		if ctx, moved := hold.Handover(); moved != nil || !errors.Is(context.Cause(ctx), core.ErrNotHeld) {
			t.Errorf("Handover of a nil Hold: got %v, %v, want an ended context and nil", context.Cause(ctx), moved)
		}
	})
}

// Deadline and cancel in every phase, whatever go-redis thinks of contexts: the
// cause matches, it returns at once, and nothing is left.
func TestAcquire_DeadlineAndCancelMatchTheirCause(t *testing.T) {
	t.Parallel()
	for _, contextTimeout := range []bool{false, true} {
		connect := func(b *bed) *core.Client {
			return locksOn(b.t, b.connect(func(o *redis.Options) { o.ContextTimeoutEnabled = contextTimeout }))
		}
		parallelBeds(t, map[bool]string{false: "ContextTimeout off", true: "ContextTimeout on"}[contextTimeout], func(t *testing.T, b *bed) {
			b.take("k", stranger, time.Minute)
			l := connect(b).Lock("k")

			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, _, err := l.Acquire(ctx, core.WaitTime(time.Minute))
			wantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
			wantSoon(t, "deadline after 30ms: returned after %s", start, measured(5*time.Second))

			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			_, _, err = l.Acquire(ctx)
			wantErr(t, err, core.ErrNotAcquired, context.Canceled)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a cancel matches DeadlineExceeded: %v", err)
			}

			_, _, err = l.Acquire(ctx) // ended before
			wantErr(t, err, core.ErrNotAcquired, context.Canceled)
			b.wantHolders("k", map[string]string{stranger: "1"})
		})
	}
}

func TestAcquire_CustomCauseMatchesToo(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, time.Minute)
		reason := errors.New("the client went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Millisecond, func() { cancel(reason) })
		_, _, err := b.locks().Lock("k").Acquire(ctx)
		wantErr(t, err, core.ErrNotAcquired, context.Canceled, reason)
	})
}

func TestAcquire_BadInputSendsNothing(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		proxy, rdb := faultproxy.Around(t, b.Client)
		all := proxy.Watch(faultproxy.Any())
		locks := locksOn(t, rdb, core.WithMaxKeyLength(20))
		for name, opt := range map[string]core.AcquireOption{
			"wait negative":    core.WaitTime(-1),
			"wait under 1ms":   core.WaitTime(999 * time.Microsecond),
			"wait huge":        core.WaitTime(core.MaxDuration + 1),
			"lease zero":       core.LeaseTime(0),
			"lease negative":   core.LeaseTime(-time.Second),
			"lease under 1ms":  core.LeaseTime(time.Microsecond),
			"lease huge":       core.LeaseTime(1<<63 - 1),
			"waiters negative": core.MaxWaiters(-1),
		} {
			_, hold, err := locks.Lock("k").Acquire(t.Context(), opt)
			wantErr(t, err, core.ErrInvalid)
			if hold != nil {
				t.Errorf("%s: got a hold", name)
			}
		}
		for _, name := range []string{"", strings.Repeat("x", 21)} {
			_, _, err := locks.Lock(name).Acquire(t.Context())
			wantErr(t, err, core.ErrInvalid)
			_, err = locks.Lock(name).State(t.Context())
			wantErr(t, err, core.ErrInvalid)
			_, err = locks.Lock(name).ForceRelease(t.Context())
			wantErr(t, err, core.ErrInvalid)
		}
		err := locks.MultiLock().Do(t.Context(), nil)
		wantErr(t, err, core.ErrInvalid)
		if err != nil && !strings.Contains(err.Error(), "MultiLock") {
			t.Errorf("no names: the error does not say where: %v", err)
		}
		wantErr(t, locks.MultiLock("a", "").Do(t.Context(), nil), core.ErrInvalid)
		wantSame(t, "commands", all.Hits(), 0)
	})
}

func TestAcquire_ZeroOptionChangesNothing(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		_, hold := acquired(t, t.Context(), b.locks().Lock("k"), core.AcquireOption{})
		b.wantTTL("k", 25*time.Second, 30*time.Second)
		released(t, hold)
	})
}

func TestAcquire_FixedLeaseIsTheTTL(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		_, hold := acquired(t, t.Context(), b.locks().Lock("k"), core.LeaseTime(time.Hour))
		b.wantTTL("k", 59*time.Minute, time.Hour)
		if left := hold.Remaining(); left >= time.Hour || left < 59*time.Minute {
			t.Errorf("Remaining: got %s, want a little less than the TTL", left)
		}
		if left, ttl := hold.Remaining(), b.PTTL(t.Context(), "k").Val(); left >= ttl {
			t.Errorf("Remaining %s is not less than the TTL %s", left, ttl)
		}
		released(t, hold)
	})
}

func TestAcquire_OddLeasesAreNeverWithoutTTL(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		for _, lease := range []time.Duration{time.Millisecond, 1500 * time.Microsecond, 3 * time.Millisecond, core.MaxDuration} {
			_, hold, err := locks.Lock("k").Acquire(t.Context(), core.LeaseTime(lease))
			if err != nil {
				t.Errorf("LeaseTime(%s): %v", lease, err)
				continue
			}
			if ttl := b.PTTL(t.Context(), "k").Val(); ttl <= 0 || ttl > lease {
				t.Errorf("LeaseTime(%s): TTL %s", lease, ttl)
			}
			released(t, hold)
		}
	})
}

func TestLimits_WaitersPerKeyAndPerClient(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		b.take("a", stranger, time.Minute)
		b.take("b", stranger, time.Minute)
		b.take("c", stranger, time.Minute)
		locks, sent := b.counted(core.WithMaxWaitersPerKey(2), core.WithMaxWaiters(3))
		ctx, cancel := context.WithCancel(t.Context())
		var done []<-chan struct{}
		for _, name := range []string{"a", "a", "b"} {
			done = append(done, busyCallers(ctx, locks, name, 1))
		}
		waiters(t, locks, 3)
		eventually(t, "the heads to have tried", func() bool { return sent.Hits() >= 2 })
		before := sent.Hits()
		for _, name := range []string{"a", "b", "c"} {
			_, _, err := locks.Lock(name).Acquire(t.Context(), core.WaitTime(time.Minute))
			wantErr(t, err, core.ErrTooManyWaiters)
			if errors.Is(err, core.ErrNotAcquired) || errors.Is(err, core.ErrUnavailable) {
				t.Errorf("%s: %v matches something else too", name, err)
			}
		}
		if got := sent.Hits() - before; got > 2 { // a poll of the waiting heads at most
			t.Errorf("the refused ones sent %d commands", got)
		}
		wantSame(t, "waiters", locks.Stats().Waiters, 3)
		cancel()
		for _, d := range done {
			<-d
		}
		waiters(t, locks, 0)
	})
}

func TestLimits_MaxWaitersOfOneAcquisition(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, time.Minute)
		locks := b.locks()
		ctx, cancel := context.WithCancel(t.Context())
		done := busyCallers(ctx, locks, "k", 1)
		waiters(t, locks, 1)
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.MaxWaiters(1))
		wantErr(t, err, core.ErrTooManyWaiters)
		_, _, err = locks.Lock("k").Acquire(t.Context(), core.MaxWaiters(2), core.WaitTime(time.Second))
		wantErr(t, err, core.ErrNotAcquired)
		_, _, err = locks.Lock("k").Acquire(t.Context(), core.MaxWaiters(0), core.WaitTime(time.Second))
		wantErr(t, err, core.ErrNotAcquired)
		cancel()
		<-done
	})
}

// Redis that has answered a moment ago is not down because the wait time ends in
// the middle of an attempt.
func TestAcquire_WaitOverInMidAttemptIsBusy(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, time.Hour)
		proxy, rdb := faultproxy.Around(t, b.Client)
		locks := locksOn(t, rdb)
		b.warm(locks)
		proxy.DelayReply(scripts, 20*time.Millisecond)
		time.AfterFunc(1990*time.Millisecond, func() { b.Publish(context.Background(), channelOf("k"), "0") })
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(2*time.Second))
		wantErr(t, err, core.ErrNotAcquired)
		if errors.Is(err, core.ErrUnavailable) {
			t.Errorf("got %v, want busy", err)
		}
		wantOK(t, locks.Lock("other").Do(t.Context(), func(context.Context) error { return nil }))
	})
}

// An attempt that the end of the wait time cut short says nothing about Redis: the
// others must not fail fast because of it.
func TestAcquire_AttemptCutShortDoesNotShutTheGate(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		proxy, rdb := faultproxy.Around(t, b.Client)
		locks := locksOn(t, rdb, core.WithBackendTimeout(500*time.Millisecond))
		b.warm(locks)
		slow := proxy.DelayReply(scripts, 50*time.Millisecond)
		acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(700*time.Millisecond))
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(670*time.Millisecond))
		if err == nil {
			t.Error("acquired")
		}
		slow.Remove()
		wantOK(t, locks.Lock("other").Do(t.Context(), func(context.Context) error { return nil }))
	})
}
