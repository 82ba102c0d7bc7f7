package core_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// The cause of a caller's context may be any error, also one that would be an answer
// if Redis gave it. It says nothing about the command, which is cleared up.
func TestAcquire_CancelCauseIsNoAnswer(t *testing.T) {
	t.Parallel()
	causes := map[string]error{
		"nil reply": redis.Nil,
		"dial":      &net.OpError{Op: "dial", Err: errors.New("refused")},
		"NOSCRIPT":  errors.New("NOSCRIPT x"),
		"a reply":   reply("NOSCRIPT x"),
		"pool":      redis.ErrPoolTimeout,
		"plain":     errors.New("the user has left"),
	}
	paths := map[string]func(c *core.Client) []core.Lock{
		"lone": func(c *core.Client) []core.Lock { return []core.Lock{c.Lock("a")} },
		"pipelined": func(c *core.Client) []core.Lock {
			return []core.Lock{c.Lock("a"), c.Lock("b"), c.Lock("c"), c.Lock("d")}
		},
		"multi": func(c *core.Client) []core.Lock { return []core.Lock{c.MultiLock("a", "b", "c")} },
	}
	for what, cause := range causes {
		for path, locksOf := range paths {
			for _, executed := range []bool{true, false} {
				locktest.ParallelBubble(t, fmt.Sprintf("%s/%s/executed=%v", what, path, executed), func(t *testing.T, b *locktest.Redis) {
					cancelInMidAcquire(b, locksOf, cause, executed)
				})
			}
		}
	}
}

// reply is an error as go-redis makes them of what Redis says.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// cancelledInMidAcquire ends acquires whose commands, or whose replies, are held.
func cancelInMidAcquire(b *locktest.Redis, locksOf func(*core.Client) []core.Lock, cause error, executed bool) {
	t := b.T
	locks, proxy := b.BehindAProxy()
	one, several := locktest.Script(t, "acquire"), locktest.Script(t, "acquire_all")
	acquires := func(cmd []string) bool { return one(cmd) || several(cmd) }
	hold := proxy.HoldRequest
	if executed {
		hold = proxy.HoldReply
	}
	held := hold(acquires)
	ctx, cancel := context.WithCancelCause(t.Context())
	var got []<-chan locktest.Outcome
	for _, lock := range locksOf(locks) {
		got = append(got, locktest.GoAcquire(ctx, lock, core.LeaseTime(time.Hour)))
	}
	locktest.Pass(130 * time.Millisecond) // a lone call is past the time in which nothing can interrupt it
	cancel(cause)
	for _, g := range got {
		locktest.WantErr(t, (<-g).Err, core.ErrNotAcquired, context.Canceled, cause)
	}
	if !executed {
		held.Release() // they land now
	}
	locktest.Pass(time.Second)
	b.WantGone("a", "b", "c", "d")
	held.Release()
	locktest.Pass(time.Second)
	b.WantGone("a", "b", "c", "d")
}

// Close right after a cancelled acquire, whose reply is on its way: the key does not
// outlive it, let alone for the whole lease.
func TestClose_ClearsUpACancelledAcquire(t *testing.T) {
	t.Parallel()
	for name, concurrent := range map[string]bool{"lone": false, "pipelined": true} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			proxy.DelayReply(locktest.Script(t, "acquire"), 200*time.Millisecond)
			ctx, cancel := context.WithCancel(t.Context())
			got := []<-chan locktest.Outcome{locktest.GoAcquire(ctx, locks.Lock("a"), core.LeaseTime(time.Hour))}
			if concurrent {
				got = append(got, locktest.GoAcquire(ctx, locks.Lock("b"), core.LeaseTime(time.Hour)))
			}
			locktest.Pass(20 * time.Millisecond)
			cancel()
			for _, g := range got {
				locktest.WantErr(t, (<-g).Err, context.Canceled)
			}
			start := time.Now()
			locktest.Must(t, locks.Close(t.Context()))
			locktest.WantSoon(t, "closed after %s", start, core.DefaultBackendTimeout)
			b.WantGone("a", "b")
		})
	}
}

// Close does not wait long for a Redis that has gone: what it can ask is a question
// that has been queued behind another one.
func TestClose_DoesNotWaitForASilentRedis(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		proxy.BlackHole(true)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, _, err := locks.Lock("k").Acquire(ctx, core.LeaseTime(time.Hour))
		locktest.WantErr(t, err, context.DeadlineExceeded)
		start := time.Now()
		locktest.Must(t, locks.Close(t.Context()))
		locktest.WantSoon(t, "closed after %s", start, 4*core.DefaultBackendTimeout)
	})
}

// Redis falls silent while callers wait for one key: none of them finds that it is
// taken, and they do not run into the backend timeout one after the other.
func TestQueue_RedisGoneIsNotTaken(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		b.Take("k", locktest.Stranger, time.Hour)
		var ends []time.Duration
		var got []<-chan locktest.Outcome
		for range 5 {
			got = append(got, locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(3500*time.Millisecond)))
		}
		locktest.Pass(500 * time.Millisecond)
		locktest.AwaitWaiters(t, locks, 5)
		proxy.BlackHole(true)
		time.AfterFunc(2500*time.Millisecond, func() { proxy.BlackHole(false) }) // enough, also if this fails
		for _, g := range got {
			o := <-g
			locktest.WantErr(t, o.Err, core.ErrUnavailable)
			ends = append(ends, o.Took)
		}
		first, last := slices.Min(ends), slices.Max(ends)
		if first > 3*time.Second || last-first > 50*time.Millisecond {
			t.Errorf("told at %s, want within the backend timeout and then at once", ends)
		}
	})
}

// The wait is over between two polls, and a caller of another key has found out
// meanwhile that Redis is silent.
func TestQueue_WaitOverWhileRedisIsGone(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy(core.WithBackendTimeout(100 * time.Millisecond))
		b.Take("k", locktest.Stranger, time.Hour)
		got := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(500*time.Millisecond))
		locktest.Pass(100 * time.Millisecond)
		proxy.BlackHole(true)
		_, _, err := locks.Lock("other").Acquire(t.Context())
		locktest.WantErr(t, err, core.ErrUnavailable)
		o := <-got
		locktest.WantErr(t, o.Err, core.ErrUnavailable)
		if o.Took > 500*time.Millisecond {
			t.Errorf("returned after %s", o.Took)
		}
		proxy.BlackHole(false)
	})
}

// A lease that is over before the reply has come can never be acquired. That is no fault
// of Redis: others go on, and nothing is left to be cleared up.
func TestAcquire_LeaseShorterThanTheWayToRedis(t *testing.T) {
	t.Parallel()
	for name, names := range map[string][]string{"one": {"k"}, "several": {"k", "l"}} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			sent := proxy.Watch(locktest.Scripts)
			proxy.DelayReply(locktest.Scripts, 8*time.Millisecond)
			_, _, err := locks.MultiLock(names...).Acquire(t.Context(), core.LeaseTime(5*time.Millisecond))
			locktest.WantErr(t, err, core.ErrUnavailable)

			_, hold, err := locks.Lock("other").Acquire(t.Context(), core.LeaseTime(time.Minute))
			if err != nil {
				t.Fatalf("another caller at once: %v", err)
			}
			locktest.MustRelease(t, hold)
			locktest.Pass(2 * time.Second)
			if n := sent.Hits(); n > 100 {
				t.Errorf("%d scripts in all", n)
			}
			before := sent.Hits()
			locktest.Pass(3 * time.Minute)
			locktest.WantSame(t, "scripts afterwards", sent.Hits()-before, 0)
			b.WantGone(names...)
		})
	}
}

// A hand-off was executed, but its waiter has left, and the short lease that it asked
// for is over when the reply comes. The release was one all the same.
func TestRelease_HandedToAWaiterThatHasLeft(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]time.Duration{"in time": 30 * time.Millisecond, "sent again": 300 * time.Millisecond} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			obs := &locktest.Recorder{}
			locks, proxy := b.BehindAProxy(core.WithObserver(obs.Observer()))
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
			ctx, cancel := context.WithCancel(t.Context())
			got := locktest.GoAcquire(ctx, locks.Lock("k"), core.LeaseTime(10*time.Millisecond))
			locktest.AwaitWaiters(t, locks, 1)
			handoff := proxy.DelayReply(faultproxy.Once(locktest.ScriptOn(t, "handoff", "k")), delay)
			done := locktest.GoRelease(hold)
			<-handoff.Hit()
			cancel()
			locktest.WantErr(t, (<-got).Err, context.Canceled)
			locktest.WantOK(t, <-done)
			locktest.WantSame(t, "losses", obs.Count("loss"), 0)
			locktest.Pass(time.Second)
			b.WantGone("k")
		})
	}
}

// A Cluster that refuses to say whether it has sharded pub/sub is not taken for one
// without: the wake-ups of Redisson would travel elsewhere. Who says what it has need
// not ask.
func TestCluster_PubSubModeThatMayNotBeAsked(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	cluster.NeedSharded(t)
	everywhere := func(args ...any) {
		t.Helper()
		locktest.Must(t, cluster.Client().ForEachMaster(t.Context(), func(ctx context.Context, rdb *redis.Client) error {
			return rdb.Do(ctx, args...).Err()
		}))
	}
	everywhere("acl", "setuser", "limited", "on", "nopass", "~*", "&*", "+@all", "-pubsub")
	store := func(sharded *bool) *redisstore.Store {
		t.Helper()
		s, err := redisstore.New(cluster.Client(func(o *redis.ClusterOptions) { o.Username, o.Password = "limited", "any" }),
			redisstore.Config{Config: wire.Config{Timeout: 5 * time.Second}, RenewTimeout: 5 * time.Second, Sharded: sharded})
		locktest.Must(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	asks, told := store(nil), store(new(true))
	limit := time.Now().Add(10 * time.Second)
	locktest.WantErr(t, asks.Detect(t.Context(), limit), redisstore.ErrUndetected)
	if asks.Reached() {
		t.Error("NOPERM was taken for an answer")
	}
	locktest.Must(t, told.Detect(t.Context(), limit))
	everywhere("acl", "setuser", "limited", "+pubsub")
	locktest.Must(t, asks.Detect(t.Context(), limit))
	if !asks.Sharded() || !told.Sharded() {
		t.Errorf("sharded: got %v and %v, want it", asks.Sharded(), told.Sharded())
	}
}

// leaks counts leaked holds. Unlike a recorder it keeps no context.
type leaks chan struct{}

func (l leaks) observer() *core.Observer {
	return &core.Observer{Leak: func(context.Context, core.HoldInfo) { l <- struct{}{} }}
}

// Neither of two nested holds that nobody refers to keeps the other, or the lock.
func TestLeak_NestedHolds(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second // which a slow machine does not miss
	for name, depth := range map[string]int{"two": 2, "three": 3} {
		locktest.ParallelEachRedis(t, name, func(t *testing.T, b *locktest.Redis) {
			told := make(leaks, depth)
			locks := b.Locks(core.WithWatchdog(lease), core.WithObserver(told.observer()))
			func() {
				ctx := t.Context()
				for range depth {
					ctx, _ = locktest.MustAcquire(t, ctx, locks.Lock("k"))
				}
			}()
			locktest.EventuallyCollected(t, "the key of leaked holds to go", func() bool { return b.Exists(context.Background(), "k").Val() == 0 })
			locktest.EventuallyCollected(t, "the leaks to be told", func() bool { return len(told) == depth })
			locktest.Eventually(t, "no hold to be left", func() bool { return len(locks.Holds()) == 0 })
		})
	}
}

// Callers behind one whose question is not answered do not know whether the lock is
// taken: 503, not 409. So it is for those whose wait ends with that of the one in front.
func TestQueue_BehindAQuestionWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		proxy.BlackHole(true)
		head := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(900*time.Millisecond))
		locktest.Pass(50 * time.Millisecond)
		var behind []<-chan locktest.Outcome
		for range 10 {
			behind = append(behind, locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(300*time.Millisecond)))
			behind = append(behind, locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(850*time.Millisecond)))
		}
		for _, got := range behind {
			o := <-got
			locktest.WantErr(t, o.Err, core.ErrUnavailable)
			if errors.Is(o.Err, core.ErrNotAcquired) || o.Took > 850*time.Millisecond {
				t.Errorf("got %v after %s, want unavailable within the wait time", o.Err, o.Took)
			}
		}
		locktest.WantErr(t, (<-head).Err, core.ErrUnavailable)
		proxy.BlackHole(false)
	})
}
