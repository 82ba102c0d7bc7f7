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
)

// flood publishes n messages on the channel of key, as fast as it can.
func (b *bed) flood(key string, n int) {
	b.t.Helper()
	const part = 1000
	for sent := 0; sent < n; sent += part {
		_, err := b.Pipelined(context.Background(), func(p redis.Pipeliner) error {
			for range min(part, n-sent) {
				p.Publish(context.Background(), channelOf(key), "0")
			}
			return nil
		})
		must(b.t, err)
	}
}

// Messages that come at one instant lead to one question about the holder, and to one
// more when that is answered; nobody else's attempt is made more often.
func TestFlood_OneQuestionAtATime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
		got := acquiring(t.Context(), locks.Lock("k"), core.WaitTime(time.Minute))
		b.listeners("k", 1)
		pass(100 * time.Millisecond) // the confirmation of the subscription makes everybody look, too
		sent := proxy.Watch(scripts)
		questions := proxy.HoldReply(scriptOn(t, "renew", "k"))
		b.flood("k", 20_000)
		synctest.Wait()
		wantSame(t, "questions about one holder at a time", questions.Hits(), 1)
		questions.Release()
		pass(100 * time.Millisecond)
		wantSame(t, "questions in all", questions.Hits(), 2)
		if n := sent.Hits(); n > 200 {
			t.Errorf("%d scripts for messages of one instant", n)
		}
		wantAlive(t, ctx)
		released(t, hold)
		released(t, (<-got).hold)
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
		parallelBubble(t, tt.name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing()
			if tt.held {
				_, _ = acquired(t, t.Context(), locks.Lock("k"))
			} else {
				b.take("k", stranger, time.Hour)
			}
			at := acquiredAt(t, locks, "k")
			b.listeners("k", 1)
			sent := proxy.Watch(scripts)
			const seconds = 4
			for range seconds * 1000 {
				b.Publish(t.Context(), channelOf("k"), "0")
				pass(time.Millisecond)
			}
			if rate := sent.Hits() / seconds; rate > 300 {
				t.Errorf("%d commands per second", rate)
			}
			if sent.Hits() == 0 {
				t.Error("no command: the messages are not listened to")
			}
			pass(time.Second)
			b.take("k", stranger, time.Hour)
			b.free("k")
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
	b := serverBed(t)
	locks, sent := b.counted(patient)
	b.warm(locks)
	ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
	got := acquiring(t.Context(), locks.Lock("k"))
	b.listeners("k", 1)
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
			wantOK(t, locks.Lock("other").Do(t.Context(), func(context.Context) error { return nil }))
			turns.Add(1)
		}
	}()
	idle := int64(runtime.NumGoroutine())
	b.flood("k", 80_000)
	took := time.Since(start)
	close(stop)
	<-done
	commands := int64(sent.Hits()-before) - 2*turns.Load()
	t.Logf("80,000 messages in %s: %d goroutines more, %d commands, %d turns of another lock", took, most.Load()-idle, commands, turns.Load())
	if bound := 100 + 300*int64(took/time.Second+1); commands > bound {
		t.Errorf("%d commands, want at most %d", commands, bound)
	}
	wantAlive(t, ctx)
	released(t, hold)
	released(t, (<-got).hold)
}

// A holder that lost its lock finds out by the message, also in a flood.
func TestFlood_TheLossIsFoundAllTheSame(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
		got := acquiring(t.Context(), locks.Lock("k"), core.WaitTime(time.Second))
		b.listeners("k", 1)
		slow := proxy.HoldReply(faultproxy.Once(scriptOn(t, "renew", "k")))
		b.flood("k", 5)
		<-slow.Hit() // asked while it was still there
		b.take("k", stranger, time.Hour)
		b.flood("k", 5)
		slow.Release()
		pass(100 * time.Millisecond)
		wantEnded(t, ctx, core.ErrLost)
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		wantErr(t, (<-got).err, core.ErrNotAcquired)
	})
}
