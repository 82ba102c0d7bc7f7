package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

// slowEnd is an observer that keeps a hold from beginning.
type slowEnd time.Duration

func (d slowEnd) observer() *core.Observer { return &core.Observer{AcquireEnd: d.observeAcquireEnd} }

func (d slowEnd) observeAcquireEnd(context.Context, core.AcquireResult) {
	<-time.NewTimer(time.Duration(d)).C
}

// The lease is over before there is a hold to be notified: it is notified when it begins.
func TestHold_LostBeforeItBegins(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"k"}, {"a", "b"}} {
		parallelBubble(t, fmt.Sprint(names), func(t *testing.T, b *bed) {
			obs := newRecorder()
			locks := b.locks(core.WithObserver(slowEnd(100*time.Millisecond).observer(), obs.observer()))
			ctx, hold := acquired(t, t.Context(), locks.MultiLock(names...), core.LeaseTime(50*time.Millisecond))
			select {
			case <-ctx.Done():
			default:
				t.Error("the context has not ended")
			}
			wantEnded(t, ctx, core.ErrLost)
			if hold.Remaining() != 0 {
				t.Errorf("remaining: got %s", hold.Remaining())
			}
			wantErr(t, hold.Release(t.Context()), core.ErrLost)
			wantSame(t, "losses", obs.count("loss"), 1)
		})
	}
}

// holding has a MultiLock of "a" and "b" hold b while it waits for a, which a stranger
// has: it finds b in the way after a wait of more than a second for a, and then a.
func holding(t *testing.T, b *bed, locks *core.Client, taken time.Duration, opts ...core.AcquireOption) <-chan outcome {
	t.Helper()
	core.PutKeysApart(locks)
	b.take("a", stranger, 1100*time.Millisecond)
	b.take("b", stranger, 1200*time.Millisecond)
	got := acquiring(t.Context(), locks.MultiLock("a", "b"), opts...)
	pass(1150 * time.Millisecond)
	b.take("a", stranger, 50*time.Millisecond+taken)
	pass(60 * time.Millisecond)
	if b.Exists(t.Context(), "b").Val() != 1 || b.HExists(t.Context(), "b", stranger).Val() {
		t.Fatal("b is not taken: nothing is tested")
	}
	return got
}

// A key is lost while another one is waited for, and somebody else may have it: that is
// no success.
func TestMultiLock_KeyLostWhileOthersAreWaitedFor(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{true, false} {
		parallelBubble(t, map[bool]string{true: "taken", false: "free again"}[taken], func(t *testing.T, b *bed) {
			locks, other := b.locks(), b.locks()
			got := holding(t, b, locks, 50*time.Millisecond, core.LeaseTime(400*time.Millisecond), core.WaitTime(3*time.Second))
			want := map[string]string{}
			b.Del(t.Context(), "b")
			if taken {
				_, hold := acquired(t, t.Context(), other.Lock("b"), core.LeaseTime(time.Minute))
				want[hold.Field()] = "1"
			}
			o := <-got
			switch {
			case !taken:
				must(t, o.err)
				wantAlive(t, o.ctx)
				b.wantCount(o.hold, "1")
				if b.Exists(t.Context(), "b").Val() != 1 {
					t.Error("b is not held")
				}
			default:
				wantErr(t, o.err, core.ErrNotAcquired)
				b.wantHolders("b", want)
				b.wantGone("a")
			}
		})
	}
}

// The keys that were acquired first are renewed while another one is waited for, and go
// on being renewed.
func TestMultiLock_RenewedWhileOthersAreWaitedFor(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		const lease = 100 * time.Millisecond
		locks := b.locks(core.WithWatchdog(lease))
		got := holding(t, b, locks, 140*time.Millisecond)
		first := b.HGetAll(t.Context(), "b").Val()
		for range 12 {
			pass(10 * time.Millisecond)
			b.wantHolders("b", first)
			b.wantTTL("b", lease/2, lease)
		}
		o := <-got
		must(t, o.err)
		for range 5 {
			pass(lease / 2)
			wantAlive(t, o.ctx)
			b.wantHolders("b", first)
			b.wantTTL("a", lease/2, lease)
			b.wantTTL("b", lease/2, lease)
		}
		released(t, o.hold)
		pass(2 * lease)
		b.wantGone("a", "b")
	})
}

// twenty are the names of a big MultiLock.
func twenty() (names []string) {
	for i := range 20 {
		names = append(names, fmt.Sprintf("k%02d", i))
	}
	return names
}

// The keys of a MultiLock are given back side by side: Redis that does not answer
// costs the backend timeout once, not once per key.
func TestMultiLock_BlackHole(t *testing.T) {
	t.Parallel()
	const timeout = 200 * time.Millisecond
	parallelBubble(t, "release", func(t *testing.T, b *bed) {
		locks, proxy := b.behindProxy(core.WithBackendTimeout(timeout))
		_, hold := acquired(t, t.Context(), locks.MultiLock(twenty()...), core.LeaseTime(time.Hour))
		proxy.BlackHole(true)
		start := time.Now()
		wantErr(t, hold.Release(t.Context()), core.ErrUnavailable)
		wantSoon(t, "returned after %s", start, 2*timeout)
		proxy.BlackHole(false)
		pass(3 * time.Second) // a question every second
		b.wantGone(hold.Keys()...)
	})
	parallelBubble(t, "roll-back", func(t *testing.T, b *bed) {
		locks, proxy := b.behindProxy(core.WithBackendTimeout(timeout))
		core.PutKeysApart(locks)
		last := "z"
		b.take("k00", stranger, 1100*time.Millisecond)
		b.take(last, stranger, 1200*time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		got := acquiring(ctx, locks.MultiLock(append(twenty(), last)...), core.LeaseTime(time.Hour))
		pass(1150 * time.Millisecond)
		b.take("k00", stranger, 1850*time.Millisecond) // missed while the last one is held: it is taken first then
		pass(1750 * time.Millisecond)
		b.take(last, stranger, time.Hour)
		for range 40 { // k00 is free soon; it may be left free for others first
			if pass(10 * time.Millisecond); locks.Stats().Holds == 20 {
				break
			}
		}
		if held := locks.Stats().Holds; held != 20 {
			t.Fatalf("%d keys are taken: nothing is tested", held)
		}
		proxy.BlackHole(true)
		time.AfterFunc(5*timeout, func() { proxy.BlackHole(false) }) // enough, also if this fails
		start := time.Now()
		cancel()
		o := <-got
		wantSoon(t, "returned after %s", start, 2*timeout)
		if !errors.Is(o.err, context.Canceled) || o.hold != nil {
			t.Errorf("got %v", o.err)
		}
		pass(4 * time.Second)
		b.wantGone(twenty()...)
		b.wantHolders(last, map[string]string{stranger: "1"})
	})
}

// A refusal that arrives as the wait time ends is the end of the wait.
func TestMultiLock_RefusalAtTheEndOfTheWait(t *testing.T) {
	t.Parallel()
	b := serverBed(t)
	locks := b.locks()
	b.warm(locks)
	b.take("b", stranger, time.Hour)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 40 {
				wait := time.Duration(1+(i+n)%8)*time.Millisecond + time.Duration(n)*25*time.Microsecond
				_, _, err := locks.MultiLock("a", "b").Acquire(t.Context(), core.WaitTime(wait))
				if !errors.Is(err, core.ErrNotAcquired) && !errors.Is(err, core.ErrUnavailable) { // no answer in a few ms
					t.Errorf("got %v", err)
				}
			}
		})
	}
	all.Wait()
}

// What a MultiLock has to give back when Redis falls silent does not hold up its
// caller beyond the wait time, the end of the context, or the backend timeout.
func TestMultiLock_RollBackKeepsToTheTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing(core.WithBackendTimeout(time.Second))
		b.take("b", stranger, time.Hour)
		for name, acquire := range map[string]func() outcome{
			"wait time": func() outcome {
				return <-acquiring(t.Context(), locks.MultiLock("a", "b"), core.WaitTime(400*time.Millisecond))
			},
			"context": func() outcome {
				ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
				defer cancel()
				return <-acquiring(ctx, locks.MultiLock("a", "b"))
			},
		} {
			time.AfterFunc(200*time.Millisecond, func() { proxy.BlackHole(true) }) // "a" is acquired, "b" is waited for
			o := acquire()
			if o.err == nil || o.took > 500*time.Millisecond {
				t.Errorf("%s: got %v after %s", name, o.err, o.took)
			}
			proxy.BlackHole(false)
			pass(3 * time.Second)
			b.wantGone("a")
		}
	})
}
