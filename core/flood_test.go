package core_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// flood publishes n messages on the channel of key, as fast as it can.
func flood(b *locktest.Redis, key string, n int) {
	b.T.Helper()
	const part = 1000
	for sent := 0; sent < n; sent += part {
		_, err := b.Pipelined(context.Background(), func(p redis.Pipeliner) error {
			for range min(part, n-sent) {
				p.Publish(context.Background(), locktest.ChannelOf(key), "0")
			}
			return nil
		})
		locktest.Must(b.T, err)
	}
}

// Messages that come at one instant lead to one question about the holder, and to one
// more when that is answered; nobody else's attempt is made more often.
func TestFlood_OneQuestionAtATime(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		got := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(time.Minute))
		b.AwaitListeners("k", 1)
		locktest.Pass(100 * time.Millisecond) // the confirmation of the subscription makes everybody look, too
		sent := proxy.Watch(locktest.Scripts)
		questions := proxy.HoldReply(locktest.ScriptOn(t, "renew", "k"))
		flood(b, "k", 20_000)
		synctest.Wait()
		locktest.WantSame(t, "questions about one holder at a time", questions.Hits(), 1)
		questions.Release()
		locktest.Pass(100 * time.Millisecond)
		locktest.WantSame(t, "questions in all", questions.Hits(), 2)
		if n := sent.Hits(); n > 200 {
			t.Errorf("%d scripts for messages of one instant", n)
		}
		locktest.WantAlive(t, ctx)
		locktest.MustRelease(t, hold)
		locktest.MustRelease(t, (<-got).Hold)
	})
}

// A publisher that does not stop costs a bounded number of commands, on a key that is
// held here as on one that is only waited for; a message after it wakes as ever.
func TestFlood_EndlessMessagesCostABoundedRate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		held bool // by the same client
	}{{"held", true}, {"waited for", false}} {
		locktest.ParallelBubble(t, tt.name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			if tt.held {
				_, _ = locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			} else {
				b.Take("k", locktest.Stranger, time.Hour)
			}
			at := locktest.AcquiredAt(t, locks, "k")
			b.AwaitListeners("k", 1)
			sent := proxy.Watch(locktest.Scripts)
			const seconds = 4
			for range seconds * 1000 {
				b.Publish(t.Context(), locktest.ChannelOf("k"), "0")
				locktest.Pass(time.Millisecond)
			}
			if rate := sent.Hits() / seconds; rate > 300 {
				t.Errorf("%d commands per second", rate)
			}
			if sent.Hits() == 0 {
				t.Error("no command: the messages are not listened to")
			}
			locktest.Pass(time.Second)
			b.Take("k", locktest.Stranger, time.Hour)
			b.Free("k")
			freed := time.Now()
			if took := (<-at).Sub(freed); took != 0 {
				t.Errorf("woken %s after the message", took)
			}
		})
	}
}

// A real Redis and 80,000 messages on the channel of a held key: no goroutine and no
// command for each of them, and the other locks are there.
func TestFlood_OtherLocksStayAvailable(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	locks, sent := b.Counted(locktest.Patient)
	b.Warm(locks)
	ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
	got := locktest.GoAcquire(t.Context(), locks.Lock("k"))
	b.AwaitListeners("k", 1)
	before, start := sent.Hits(), time.Now()
	var most, turns atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			most.Store(max(most.Load(), int64(runtime.NumGoroutine())))
			locktest.WantOK(t, locks.Lock("other").Do(t.Context(), func(context.Context) error { return nil }))
			turns.Add(1)
		}
	}()
	idle := int64(runtime.NumGoroutine())
	flood(b, "k", 80_000)
	took := time.Since(start)
	close(stop)
	<-done
	commands := int64(sent.Hits()-before) - 2*turns.Load()
	t.Logf("80,000 messages in %s: %d goroutines more, %d commands, %d turns of another lock", took, most.Load()-idle, commands, turns.Load())
	if bound := 100 + 300*int64(took/time.Second+1); commands > bound {
		t.Errorf("%d commands, want at most %d", commands, bound)
	}
	locktest.WantAlive(t, ctx)
	locktest.MustRelease(t, hold)
	locktest.MustRelease(t, (<-got).Hold)
}

// A holder that lost its lock finds out by the message, also in a flood.
func TestFlood_TheLossIsFoundAllTheSame(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		got := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(time.Second))
		b.AwaitListeners("k", 1)
		slow := proxy.HoldReply(faultproxy.Once(locktest.ScriptOn(t, "renew", "k")))
		flood(b, "k", 5)
		<-slow.Hit() // asked while it was still there
		b.Take("k", locktest.Stranger, time.Hour)
		flood(b, "k", 5)
		slow.Release()
		locktest.Pass(100 * time.Millisecond)
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		locktest.WantErr(t, (<-got).Err, core.ErrNotAcquired)
	})
}
