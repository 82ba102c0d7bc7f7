package core_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

const tokens = "redisson_lock_token:{order:42}"

// Every acquisition draws a larger token from Redisson's counter: a first one, one that was
// handed over, and one after the lock was forced away.
func TestFenced_TokensRise(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		l := locks.FencedLock("order:42")
		_, first := locktest.MustAcquire(t, t.Context(), l)
		next := make(chan *core.Hold)
		go func() {
			_, hold, err := l.Acquire(context.Background())
			locktest.WantOK(t, err)
			next <- hold
		}()
		locktest.AwaitWaiters(t, locks, 1)
		locktest.MustRelease(t, first)
		handed := <-next
		if _, err := locks.FencedLock("order:42").ForceRelease(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, last := locktest.MustAcquire(t, t.Context(), b.Locks().FencedLock("order:42"))
		if first.Token() <= 0 || handed.Token() <= first.Token() || last.Token() <= handed.Token() {
			t.Errorf("tokens: got %d, %d, %d, want each larger than the one before", first.Token(), handed.Token(), last.Token())
		}
		if got := b.Get(t.Context(), tokens).Val(); got != strconv.FormatInt(last.Token(), 10) {
			t.Errorf("counter: got %q, want %d", got, last.Token())
		}
		locktest.WantErr(t, handed.Release(t.Context()), core.ErrLost)
		locktest.MustRelease(t, last)
		if ttl := b.TTL(t.Context(), tokens).Val(); ttl >= 0 {
			t.Errorf("the counter has the TTL %s", ttl)
		}
	})
}

// A re-entry is the same holder.
func TestFenced_ReentryHasTheTokenOfItsHold(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().FencedLock("order:42")
		ctx, outer := locktest.MustAcquire(t, t.Context(), l)
		_, inner := locktest.MustAcquire(t, ctx, l)
		if outer.Token() == 0 || inner.Token() != outer.Token() {
			t.Errorf("tokens: got %d and %d, want the same", outer.Token(), inner.Token())
		}
		b.WantCount(outer, "2")
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, outer)
	})
}

// Every exclusive kind draws a token where one is asked for, and none else. It is larger than
// what Redisson has drawn, and than the time of the server; so it is larger than all before it
// when the counter is lost.
func TestWithToken_NeverFalls(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]func(*core.Client) core.Lock{
		"reentrant": func(c *core.Client) core.Lock { return c.Lock("order:42") },
		"spin":      func(c *core.Client) core.Lock { return c.SpinLock("order:42") },
		"fenced":    func(c *core.Client) core.Lock { return c.FencedLock("order:42") },
		"fair":      func(c *core.Client) core.Lock { return c.FairLock("order:42") },
	} {
		locktest.ParallelEachRedis(t, name, func(t *testing.T, b *locktest.Redis) {
			l := lock(b.Locks())
			last := int64(41)
			draw := func(what string) {
				t.Helper()
				before, err := b.Time(t.Context()).Result()
				locktest.Must(t, err)
				_, hold := locktest.MustAcquire(t, t.Context(), l, core.WithToken())
				if token := hold.Token(); token <= last || token < before.UnixMicro() {
					t.Errorf("%s: token %d after %d, at %d", what, token, last, before.UnixMicro())
				}
				last = hold.Token()
				locktest.MustRelease(t, hold)
			}
			b.Set(t.Context(), tokens, last, 0)
			draw("after Redisson")
			draw("the next one")
			b.Del(t.Context(), tokens)
			draw("the counter is lost")
			last += int64(time.Hour / time.Microsecond)
			b.Set(t.Context(), tokens, last, 0)
			draw("the counter is before the clock")
			if counter, err := b.Get(t.Context(), tokens).Int64(); err != nil || counter != last {
				t.Errorf("the counter is %d (%v), want %d, for Redisson to go on from", counter, err, last)
			}
			if _, hold := locktest.MustAcquire(t, t.Context(), l); (hold.Token() != 0) != (name == "fenced") {
				t.Errorf("token %d of one who asked for none", hold.Token())
			}
		})
	}
}

func TestFenced_ObserversSeeTheToken(t *testing.T) {
	t.Parallel()
	b := locktest.Embedded(t)
	rec := &tokenRecorder{}
	_, hold := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithObserver(rec.observer())).FencedLock("order:42"))
	locktest.MustRelease(t, hold)
	if rec.acquired.Token == 0 || rec.acquired.Kind != core.KindFenced || rec.ended.Token == 0 {
		t.Errorf("got %+v and %+v, want the token of a fenced lock", rec.acquired, rec.ended)
	}
}

type tokenRecorder struct {
	acquired core.AcquireResult
	ended    core.HoldResult
}

func (r *tokenRecorder) observer() *core.Observer {
	return &core.Observer{AcquireEnd: r.observeAcquireEnd, HoldEnd: r.observeHoldEnd}
}

func (r *tokenRecorder) observeAcquireEnd(_ context.Context, a core.AcquireResult) { r.acquired = a }
func (r *tokenRecorder) observeHoldEnd(_ context.Context, h core.HoldResult)       { r.ended = h }

// A spin lock looks like any other in Redis, publishes nothing, and subscribes to nothing.
func TestSpin_NoMessages(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		sub := b.SubscribeTo(t, "redisson_lock__channel:{order:42}")
		mine, theirs := b.Locks(), b.Locks()
		_, hold := locktest.MustAcquire(t, t.Context(), mine.SpinLock("order:42"))
		b.WantCount(hold, "1")
		got := make(chan *core.Hold)
		go func() {
			_, hold, err := theirs.SpinLock("order:42").Acquire(context.Background())
			locktest.WantOK(t, err)
			got <- hold
		}()
		locktest.AwaitWaiters(t, theirs, 1)
		if n := b.PubSubNumSub(t.Context(), "redisson_lock__channel:{order:42}").Val(); n["redisson_lock__channel:{order:42}"] != 1 {
			t.Errorf("subscribers: got %v, want the one of this test", n)
		}
		locktest.Must(t, hold.Refresh(t.Context(), 10*time.Second)) // a lower TTL is not published either
		locktest.MustRelease(t, hold)
		locktest.MustRelease(t, <-got)
		locktest.Must(t, b.Publish(t.Context(), "redisson_lock__channel:{order:42}", "end").Err())
		sub.Want("end")
	})
}

// Who spins attempts soon, and then less and less often: 6 times in the first 50 ms, and
// then every 40 to 50 ms. The callers of one client spin as one.
func TestSpin_BackOff(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().SpinLock("k"))
		locks, attempts := b.Counted()
		b.Warm(locks)
		before := attempts.Hits()
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(func() {
				_, _, err := locks.SpinLock("k").Acquire(context.Background(), core.WaitTime(2*time.Second))
				locktest.WantErr(t, err, core.ErrNotAcquired)
			})
		}
		callers.Wait()
		if n := attempts.Hits() - before; n < 40 || n > 70 {
			t.Errorf("attempts in two seconds: got %d, want about 50", n)
		}
		locktest.MustRelease(t, hold)
	})
}

// A spinning waiter of another process has its turn beside one that keeps the lock busy. It comes when
// that one has had turns: where both come at the same instant, chance decides whether it is there before
// them and has all of its turns at once. Each has a way of its own to Redis, as in life, so that what
// the two do is at no instant the same.
func TestSpin_TurnBesideABusyClient(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		_, near := faultproxy.Far(t, b.Client, 70*time.Microsecond)
		_, far := faultproxy.Far(t, b.Client, 110*time.Microsecond)
		busy, lone := locktest.NewClient(t, near), locktest.NewClient(t, far)
		ctx, stop := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		var served atomic.Int64
		for range 4 {
			callers.Go(func() {
				for ctx.Err() == nil {
					err := busy.SpinLock("k").Do(ctx, func(context.Context) error {
						served.Add(1)
						time.Sleep(5 * time.Millisecond) // the work, in the time of the bubble
						return nil
					})
					if err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 5 {
			locktest.Pass(100 * time.Millisecond) // longer than the lock is left free for others
			start, before := time.Now(), served.Load()
			_, hold := locktest.MustAcquire(t, t.Context(), lone.SpinLock("k"), core.WaitTime(4*time.Second))
			t.Logf("a turn after %s and %d of theirs", time.Since(start), served.Load()-before)
			locktest.MustRelease(t, hold)
		}
		stop()
		callers.Wait()
	})
}

// A context that holds a name as one kind cannot enter it again as another.
func TestKinds_OneNameIsForOneKind(t *testing.T) {
	t.Parallel()
	b := locktest.Embedded(t)
	locks := b.Locks()
	ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
	_, _, err := locks.FencedLock("k").Acquire(ctx)
	locktest.WantErr(t, err, core.ErrInvalid)
	locktest.MustRelease(t, hold)
}
