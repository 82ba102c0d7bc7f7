package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

func TestClose_NewAndWaitingGetErrClosed(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, time.Minute)
		locks := b.locks()
		results := make(chan error, 5)
		for range 5 {
			go func() {
				_, _, err := locks.Lock("k").Acquire(t.Context())
				results <- err
			}()
		}
		waiters(t, locks, 5)
		wantOK(t, locks.Close(t.Context()))
		for range 5 {
			wantErr(t, <-results, core.ErrClosed)
		}
		_, _, err := locks.Lock("free").Acquire(t.Context())
		wantErr(t, err, core.ErrClosed)
		_, _, err = locks.MultiLock("a", "b").Acquire(t.Context())
		wantErr(t, err, core.ErrClosed)
		_, err = locks.Lock("k").State(t.Context())
		wantErr(t, err, core.ErrClosed)
		wantErr(t, locks.Ready(t.Context()), core.ErrClosed)
		wantErr(t, locks.Close(t.Context()), core.ErrClosed)
		b.wantGone("free")
		b.wantHolders("k", map[string]string{stranger: "1"})
	})
}

func TestClose_WaitsForHoldsAndTheirRelease(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		for range 20 {
			locks := b.locks()
			ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
			closed := make(chan error, 1)
			go func() { closed <- locks.Close(t.Context()) }()
			eventually(t, "callers to be refused", func() bool { return locks.Ready(t.Context()) != nil })
			select {
			case err := <-closed:
				t.Fatalf("closed while held: %v", err)
			default:
			}
			wantAlive(t, ctx)
			released(t, hold)
			wantOK(t, <-closed)
			b.wantGone("k")
		}
	})
}

// A release is waited for even when the lease ends while its answer is on the way: Redis has
// been told, and so the caller of Release is.
func TestClose_WaitsForAReleaseThatOutlivesItsLease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		end    func(h *core.Hold) error
		count  int // of keys that are left
	}{
		"release": {"release", func(h *core.Hold) error { return h.Release(context.Background()) }, 0},
		"leave":   {"handoff", func(h *core.Hold) error { return h.Leave(context.Background(), time.Minute) }, 1},
	} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing(core.WithBackendTimeout(2 * time.Second))
			_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(200*time.Millisecond))
			proxy.DelayReply(scriptOn(t, c.script, "k"), 800*time.Millisecond)
			start, done := time.Now(), make(chan error, 1)
			go func() { done <- c.end(hold) }()
			pass(10 * time.Millisecond)
			wantOK(t, locks.Close(context.Background()))
			if took := time.Since(start); took < 800*time.Millisecond {
				t.Errorf("closed after %s, before Redis had answered", took)
			}
			if err := <-done; err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if n := b.Exists(t.Context(), "k").Val(); n != int64(c.count) {
				t.Errorf("%d keys are left, want %d", n, c.count)
			}
		})
	}
}

// An acquisition whose command is on its way is not cut off: it may get the lock,
// and Close waits for that hold too.
func TestClose_WaitsForCallersInside(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.behindProxy()
		proxy.DelayReply(faultproxy.Once(scripts), 40*time.Millisecond)
		got := make(chan *core.Hold, 1)
		go func() {
			_, hold, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0))
			wantOK(t, err)
			got <- hold
		}()
		pass(10 * time.Millisecond)
		closed := make(chan error, 1)
		go func() { closed <- locks.Close(t.Context()) }()
		hold := <-got
		if hold == nil {
			return
		}
		pass(time.Second)
		select {
		case <-closed:
			t.Error("closed while held")
		default:
		}
		released(t, hold)
		wantOK(t, <-closed)
		b.wantGone("k")
	})
}

func TestClose_RenewsWhileItWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
		closed := make(chan error, 1)
		go func() { closed <- locks.Close(t.Context()) }()
		pass(5 * time.Minute)
		wantAlive(t, ctx)
		b.wantCount(hold, "1")
		released(t, hold)
		wantOK(t, <-closed)
		b.wantGone("k")
	})
}

func TestClose_LeavesTheKeysOfHoldsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
		patience, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		start := time.Now()
		err := locks.Close(patience)
		wantErr(t, err, context.DeadlineExceeded)
		wantSame(t, "returned after", time.Since(start), 20*time.Second)
		wantEnded(t, ctx, core.ErrClosed)
		b.wantCount(hold, "1") // nothing is freed under a running handler
		if hold.Release(t.Context()) == nil {
			t.Error("release after Close: got nil")
		}
		b.wantCount(hold, "1")
		pass(31 * time.Second)
		b.wantGone("k") // nobody renews it
	})
}

func TestClose_SaysHowManyHoldsItLeaves(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		1: "core: client closed with 1 lock held, which is left to its lease: ",
		2: "core: client closed with 2 locks held, which are left to their leases: ",
	} {
		inBubble(t, func(t *testing.T, b *bed) {
			locks := b.locks()
			for i := range n {
				acquired(t, t.Context(), locks.Lock(fmt.Sprint("k", i)))
			}
			patience, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := locks.Close(patience); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

func TestClose_TheCallersClientStaysOpen(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		rdb := b.connect()
		locks := locksOn(t, rdb)
		must(t, locks.Close(t.Context()))
		wantOK(t, rdb.Ping(t.Context()).Err())
		again := locksOn(t, rdb)
		wantOK(t, again.Lock("k").Do(t.Context(), func(context.Context) error { return nil }))
	})
}

// A grant that is on its way to a waiter when Close sends it away is freed.
func TestClose_GrantOnItsWayToAWaiter(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.behindProxy()
		_, hold := acquired(t, t.Context(), locks.Lock("k"))
		result := make(chan error, 1)
		go func() {
			_, h, err := locks.Lock("k").Acquire(t.Context())
			if err == nil {
				err = h.Release(t.Context())
			}
			result <- err
		}()
		pass(time.Second)
		slow := proxy.DelayReply(scripts, 100*time.Millisecond)
		defer slow.Remove()
		done := make(chan error, 1)
		go func() { done <- hold.Release(t.Context()) }()
		pass(50 * time.Millisecond)
		wantOK(t, locks.Close(t.Context()))
		wantErr(t, <-result, core.ErrClosed)
		wantOK(t, <-done)
		b.wantGone("k")
	})
}

// A waiter whose grant has arrived in the instant in which it leaves passes it on,
// also while the client is being closed.
func TestClose_GrantThatArrivedIsPassedOn(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		for range 30 {
			locks, _ := b.behindProxy()
			_, hold := acquired(t, t.Context(), locks.Lock("k"))
			result := make(chan error, 1)
			go func() {
				_, h, err := locks.Lock("k").Acquire(t.Context())
				if err == nil {
					err = h.Release(t.Context())
				}
				result <- err
			}()
			pass(time.Second)
			done := make(chan error, 1)
			go func() { done <- hold.Release(t.Context()) }()
			wantOK(t, locks.Close(t.Context()))
			<-result
			wantOK(t, <-done)
			b.wantGone("k")
		}
	})
}

func TestClose_WhileRedisIsBlackHoled(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.behindProxy()
		ctx, _ := acquired(t, t.Context(), locks.Lock("k"))
		waiting := make(chan error, 1)
		go func() {
			_, _, err := locks.Lock("other").Acquire(t.Context())
			waiting <- err
		}()
		proxy.BlackHole(true)
		patience, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		wantErr(t, locks.Close(patience), context.DeadlineExceeded)
		wantSoon(t, "close took %s", start, 7*time.Second)
		wantEnded(t, ctx, core.ErrClosed)
		<-waiting
		proxy.BlackHole(false)
	})
}

func TestClose_SendsNoMoreCommands(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.behindProxy()
		acquired(t, t.Context(), locks.Lock("k"))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		wantErr(t, locks.Close(ended), context.Canceled)
		all := proxy.Watch(faultproxy.Any())
		pass(time.Minute)
		wantSame(t, "commands after Close", all.Hits(), 0)
	})
}

// A hold that Close leaves to its lease is not lost: observers are told which it is, at Close
// and when the handler is done.
func TestClose_ObserversAreToldThatAHoldIsLeft(t *testing.T) {
	t.Parallel()
	ends := map[string]func(ctx context.Context, h *core.Hold) error{
		"release": func(ctx context.Context, h *core.Hold) error { return h.Release(ctx) },
		"leave":   func(ctx context.Context, h *core.Hold) error { return h.Leave(ctx, time.Minute) },
		"release after a handover": func(ctx context.Context, h *core.Hold) error {
			_, moved := h.Handover()
			return moved.Release(ctx)
		},
	}
	for name, end := range ends {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			obs := newRecorder()
			locks := b.locks(core.WithObserver(obs.observer()))
			_, hold := acquired(t, t.Context(), locks.Lock("k"))
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			wantErr(t, locks.Close(ended), core.ErrClosed)
			wantOnly(t, obs.first(t, "loss").data.(core.Loss).Cause, core.ErrClosed, core.ErrLost)
			wantErr(t, end(t.Context(), hold), core.ErrClosed)
			wantSame(t, "losses", obs.count("loss"), 1)
			if r := obs.last(t, "hold end").data.(core.HoldResult); r.Lost || !r.Left {
				t.Errorf("hold end: got %+v, want one that is left", r)
			}
		})
	}
}

// What was lost before Close stays lost.
func TestClose_AHoldThatWasLostBeforeIsNotLeft(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		obs := newRecorder()
		locks := b.locks(core.WithObserver(obs.observer()))
		_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Second))
		pass(2 * time.Second)
		wantOK(t, locks.Close(t.Context()))
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		if r := obs.first(t, "hold end").data.(core.HoldResult); !r.Lost || r.Left {
			t.Errorf("hold end: got %+v, want one that is lost", r)
		}
	})
}
