package acquiring_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

func TestAcquire_UncontendedIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		b.Warm(locks)
		locktest.WantSame(t, "acquire and release: scripts", locktest.Fewest(sent, func() {
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			locktest.MustRelease(t, hold)
		}), 2)
	})
}

func TestAcquire_WaitZeroIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAFreshProxy()
		b.Take("k", locktest.Stranger, time.Minute)
		all := proxy.Watch(faultproxy.Command("evalsha", "eval", "subscribe")) // a slow answer is accompanied by a ping
		locktest.WantSame(t, "commands", locktest.Fewest(all, func() {
			_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0))
			locktest.WantErr(t, err, core.ErrNotAcquired)
		}), 1)
	})
}

func TestAcquire_WaitZeroWhileOthersWait(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		ctx, cancel := context.WithCancel(t.Context())
		done := locktest.KeepBusy(ctx, locks, "k", 1)
		locktest.AwaitWaiters(t, locks, 1)
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		cancel()
		<-done
		locktest.MustRelease(t, hold)
	})
}

func TestAcquire_WaitTimeIsAnUpperBound(t *testing.T) {
	t.Parallel()
	for name, names := range map[string][]string{"one_name": {"k"}, "several_names": {"a", "k", "z"}} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			b.Take("k", locktest.Stranger, time.Hour)
			lock := b.Locks().MultiLock(names...)
			for _, wait := range []time.Duration{
				time.Millisecond, 20 * time.Millisecond, 49 * time.Millisecond, 60 * time.Millisecond, 300 * time.Millisecond,
				2 * time.Second, 3 * time.Second, time.Minute,
			} {
				start := time.Now()
				_, _, err := lock.Acquire(t.Context(), core.WaitTime(wait))
				locktest.WantErr(t, err, core.ErrNotAcquired)
				if took := time.Since(start); took < wait || took > wait+time.Millisecond {
					t.Errorf("WaitTime(%s): returned after %s, want the wait time", wait, took)
				}
				if e := locktest.NotAcquired(t, err); e.Key != "k" || e.Cause != nil || e.Waited < wait || e.BlockedBy != locktest.Stranger {
					t.Errorf("WaitTime(%s): got %+v, want a refusal by the stranger after the wait time", wait, e)
				}
				locktest.Pass(time.Millisecond) // freeing the keys does not delay the end of the wait
				b.WantGone("a", "z")
			}
		})
	}
}

func TestAcquire_WithoutWaitTime(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, 10*time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		start := time.Now()
		_, _, err := b.Locks().Lock("k").Acquire(ctx)
		locktest.WantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
		locktest.WantSame(t, "returned after", time.Since(start), 10*time.Minute)
	})
}

func TestAcquire_ResultsOfAnError(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Minute)
		type key struct{}
		in := context.WithValue(t.Context(), key{}, 1)
		out, hold, err := b.Locks().Lock("k").Acquire(in, core.WaitTime(0))
		if out != in || hold != nil || err == nil {
			t.Errorf("got %v, %v, %v, want the context as given, nil, an error", out, hold, err)
		}
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		locktest.WantErr(t, hold.Refresh(t.Context(), time.Second), core.ErrNotHeld)
		locktest.WantErr(t, hold.Leave(t.Context(), time.Second), core.ErrNotHeld)
		if hold.Remaining() != 0 {
			t.Errorf("Remaining of a nil Hold: got %s, want 0", hold.Remaining())
		}
		if hold.Key() != "" || hold.Keys() != nil || hold.Field() != "" || hold.Token() != 0 {
			t.Errorf("a nil Hold: got %q, %q, %q, %d", hold.Key(), hold.Keys(), hold.Field(), hold.Token())
		}
		if ctx, moved := hold.Handover(); moved != nil || !errors.Is(context.Cause(ctx), core.ErrNotHeld) {
			t.Errorf("Handover of a nil Hold: got %v, %v, want an ended context and nil", context.Cause(ctx), moved)
		}
	})
}

// An Acquire that ends by a deadline or a cancel, in any phase, returns at once with the matching cause and leaves
// nothing in Redis. go-redis may or may not end commands with their context.
func TestAcquire_ContextEnds(t *testing.T) {
	t.Parallel()
	for _, contextTimeout := range []bool{false, true} {
		connect := func(b *locktest.Redis) *core.Client {
			return locktest.NewClient(b.T, b.Connect(func(o *redis.Options) { o.ContextTimeoutEnabled = contextTimeout }))
		}
		locktest.ParallelEachRedis(t, map[bool]string{false: "ContextTimeout off", true: "ContextTimeout on"}[contextTimeout], func(t *testing.T, b *locktest.Redis) {
			b.Take("k", locktest.Stranger, time.Minute)
			l := connect(b).Lock("k")

			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, _, err := l.Acquire(ctx, core.WaitTime(time.Minute))
			locktest.WantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
			locktest.WantSoon(t, "deadline after 30ms: returned after %s", start, locktest.Measured(5*time.Second))

			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			_, _, err = l.Acquire(ctx)
			locktest.WantErr(t, err, core.ErrNotAcquired, context.Canceled)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a cancel matches DeadlineExceeded: %v", err)
			}

			_, _, err = l.Acquire(ctx) // the context has ended before
			locktest.WantErr(t, err, core.ErrNotAcquired, context.Canceled)
			b.WantHolders("k", map[string]string{locktest.Stranger: "1"})
		})
	}
}

func TestAcquire_CustomCauseMatchesToo(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Minute)
		reason := errors.New("the client went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Millisecond, func() { cancel(reason) })
		_, _, err := b.Locks().Lock("k").Acquire(ctx)
		locktest.WantErr(t, err, core.ErrNotAcquired, context.Canceled, reason)
	})
}

func TestAcquire_BadInputSendsNothing(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		proxy, rdb := faultproxy.Around(t, b.Client)
		all := proxy.Watch(faultproxy.Any())
		locks := locktest.NewClient(t, rdb, core.WithMaxKeyLength(20))
		for name, opt := range map[string]core.AcquireOption{
			"wait negative":    core.WaitTime(-1),
			"wait under 1ms":   core.WaitTime(999 * time.Microsecond),
			"wait huge":        core.WaitTime(core.MaxDuration + 1),
			"lease zero":       core.LeaseTime(0),
			"lease negative":   core.LeaseTime(-time.Second),
			"lease under 1ms":  core.LeaseTime(time.Microsecond),
			"lease huge":       core.LeaseTime(1<<63 - 1),
			"limit zero":       core.MaxHold(0),
			"limit negative":   core.MaxHold(-time.Second),
			"limit under 1ms":  core.MaxHold(time.Microsecond),
			"limit huge":       core.MaxHold(core.MaxDuration + 1),
			"waiters negative": core.MaxWaiters(-1),
		} {
			_, hold, err := locks.Lock("k").Acquire(t.Context(), opt)
			locktest.WantErr(t, err, core.ErrInvalid)
			if hold != nil {
				t.Errorf("%s: got a hold", name)
			}
		}
		for _, name := range []string{"", strings.Repeat("x", 21)} {
			_, _, err := locks.Lock(name).Acquire(t.Context())
			locktest.WantErr(t, err, core.ErrInvalid)
			_, err = locks.Lock(name).State(t.Context())
			locktest.WantErr(t, err, core.ErrInvalid)
			_, err = locks.Lock(name).ForceRelease(t.Context())
			locktest.WantErr(t, err, core.ErrInvalid)
		}
		err := locks.MultiLock().Do(t.Context(), nil)
		locktest.WantErr(t, err, core.ErrInvalid)
		if err != nil && !strings.Contains(err.Error(), "MultiLock") {
			t.Errorf("no names: the error does not name the place: %v", err)
		}
		locktest.WantErr(t, locks.MultiLock("a", "").Do(t.Context(), nil), core.ErrInvalid)
		locktest.WantSame(t, "commands", all.Hits(), 0)
	})
}

func TestAcquire_ZeroOptionChangesNothing(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"), core.AcquireOption{})
		b.WantTTL("k", 25*time.Second, 30*time.Second)
		locktest.MustRelease(t, hold)
	})
}

func TestAcquire_FixedLeaseIsTheTTL(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"), core.LeaseTime(time.Hour))
		b.WantTTL("k", 59*time.Minute, time.Hour)
		if left := hold.Remaining(); left >= time.Hour || left < 59*time.Minute {
			t.Errorf("Remaining: got %s, want a little less than the TTL", left)
		}
		if left, ttl := hold.Remaining(), b.PTTL(t.Context(), "k").Val(); left >= ttl {
			t.Errorf("Remaining %s is not less than the TTL %s", left, ttl)
		}
		locktest.MustRelease(t, hold)
	})
}

func TestAcquire_OddLeases(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		for _, lease := range []time.Duration{time.Millisecond, 1500 * time.Microsecond, 3 * time.Millisecond, core.MaxDuration} {
			_, hold, err := locks.Lock("k").Acquire(t.Context(), core.LeaseTime(lease))
			if err != nil {
				t.Errorf("LeaseTime(%s): %v", lease, err)
				continue
			}
			if ttl := b.PTTL(t.Context(), "k").Val(); ttl <= 0 || ttl > lease {
				t.Errorf("LeaseTime(%s): TTL %s", lease, ttl)
			}
			locktest.MustRelease(t, hold)
		}
	})
}

func TestLimits_WaitersPerKeyAndPerClient(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("a", locktest.Stranger, time.Minute)
		b.Take("b", locktest.Stranger, time.Minute)
		b.Take("c", locktest.Stranger, time.Minute)
		locks, sent := b.Counted(core.WithMaxWaitersPerKey(2), core.WithMaxWaiters(3))
		ctx, cancel := context.WithCancel(t.Context())
		var done []<-chan struct{}
		for _, name := range []string{"a", "a", "b"} {
			done = append(done, locktest.KeepBusy(ctx, locks, name, 1))
		}
		locktest.AwaitWaiters(t, locks, 3)
		locktest.Eventually(t, "the heads to have tried", func() bool { return sent.Hits() >= 2 })
		before := sent.Hits()
		for _, name := range []string{"a", "b", "c"} {
			_, _, err := locks.Lock(name).Acquire(t.Context(), core.WaitTime(time.Minute))
			locktest.WantErr(t, err, core.ErrTooManyWaiters)
			if errors.Is(err, core.ErrNotAcquired) || errors.Is(err, core.ErrUnavailable) {
				t.Errorf("%s: %v matches something else too", name, err)
			}
		}
		if got := sent.Hits() - before; got > 2 { // a poll of the waiting heads at most
			t.Errorf("the refused callers sent %d commands, want at most 2", got)
		}
		locktest.WantSame(t, "waiters", locks.Stats().Waiters, 3)
		cancel()
		for _, d := range done {
			<-d
		}
		locktest.AwaitWaiters(t, locks, 0)
	})
}

func TestLimits_MaxWaitersOfOneAcquisition(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Minute)
		locks := b.Locks()
		ctx, cancel := context.WithCancel(t.Context())
		done := locktest.KeepBusy(ctx, locks, "k", 1)
		locktest.AwaitWaiters(t, locks, 1)
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.MaxWaiters(1))
		locktest.WantErr(t, err, core.ErrTooManyWaiters)
		_, _, err = locks.Lock("k").Acquire(t.Context(), core.MaxWaiters(2), core.WaitTime(time.Second))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		_, _, err = locks.Lock("k").Acquire(t.Context(), core.MaxWaiters(0), core.WaitTime(time.Second))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		cancel()
		<-done
	})
}

// If the wait time ends during an attempt, the lock counts as taken, because Redis has answered a moment before.
func TestAcquire_WaitEndsDuringAnAttempt(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Hour)
		proxy, rdb := faultproxy.Around(t, b.Client)
		locks := locktest.NewClient(t, rdb)
		b.Warm(locks)
		proxy.DelayReply(locktest.Scripts, 20*time.Millisecond)
		time.AfterFunc(1990*time.Millisecond, func() { b.Publish(context.Background(), locktest.ChannelOf("k"), "0") })
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(2*time.Second))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		if errors.Is(err, core.ErrUnavailable) {
			t.Errorf("got %v, want only ErrNotAcquired", err)
		}
		locktest.WantOK(t, locks.Lock("other").Do(t.Context(), func(context.Context) error { return nil }))
	})
}

// An attempt that the end of the wait time has cut short does not count as an outage. Other callers do not fail fast
// because of it.
func TestAcquire_AttemptCutShortIsNotAnOutage(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		proxy, rdb := faultproxy.Around(t, b.Client)
		locks := locktest.NewClient(t, rdb, core.WithBackendTimeout(500*time.Millisecond))
		b.Warm(locks)
		slow := proxy.DelayReply(locktest.Scripts, 50*time.Millisecond)
		locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(700*time.Millisecond))
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(670*time.Millisecond))
		if err == nil {
			t.Error("got the lock, want an error")
		}
		slow.Remove()
		locktest.WantOK(t, locks.Lock("other").Do(t.Context(), func(context.Context) error { return nil }))
	})
}

// The cause of a caller's context may be any error, even an error of a kind that go-redis returns for a reply. The
// client does not treat the cause as an answer, and clears up after the command.
func TestAcquire_CancelCauseIsNotAnAnswer(t *testing.T) {
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

// reply is an error like the errors that go-redis makes of error replies.
type reply string

func (r reply) Error() string { return string(r) }

func (reply) RedisError() {}

// cancelInMidAcquire cancels acquires whose commands, or whose replies, are held.
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
	locktest.Pass(130 * time.Millisecond) // by this time a cancel can interrupt a lone call
	cancel(cause)
	for _, g := range got {
		locktest.WantErr(t, (<-g).Err, core.ErrNotAcquired, context.Canceled, cause)
	}
	if !executed {
		held.Release() // the held commands land now
	}
	locktest.Pass(time.Second)
	b.WantGone("a", "b", "c", "d")
	held.Release()
	locktest.Pass(time.Second)
	b.WantGone("a", "b", "c", "d")
}

// A lease that expires before the reply arrives is never acquired. The failure does not count as an outage, so other
// callers go on. Nothing is left to clear up.
func TestAcquire_LeaseShorterThanARoundTrip(t *testing.T) {
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
				t.Fatalf("another caller failed: %v", err)
			}
			locktest.MustRelease(t, hold)
			locktest.Pass(2 * time.Second)
			if n := sent.Hits(); n > 100 {
				t.Errorf("%d scripts in all, want at most 100", n)
			}
			before := sent.Hits()
			locktest.Pass(3 * time.Minute)
			locktest.WantSame(t, "scripts afterwards", sent.Hits()-before, 0)
			b.WantGone(names...)
		})
	}
}

// Redis answers within 5 ms, and another client holds the lock. When the wait of the first waiter ends, the second
// becomes the head of the queue with less time left than an answer takes. The second waiter gets ErrNotAcquired, not
// ErrUnavailable.
func TestAcquire_SecondWaiterWithTheSameWaitTime(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"), core.LeaseTime(time.Hour))
		defer locktest.MustRelease(t, hold)
		proxy.DelayReply(locktest.Scripts, 5*time.Millisecond)
		first := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(time.Second))
		locktest.AwaitWaiters(t, locks, 1)
		locktest.Pass(time.Millisecond) // the second comes after the first
		second := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(time.Second))
		for name, got := range map[string]<-chan locktest.Outcome{"first": first, "second": second} {
			if o := <-got; !errors.Is(o.Err, core.ErrNotAcquired) || errors.Is(o.Err, core.ErrUnavailable) {
				t.Errorf("%s: got %v after %s, want ErrNotAcquired", name, o.Err, o.Took)
			}
		}
	})
}

// The waiter also gets ErrNotAcquired if a holder of the same client releases the lock just before the wait ends.
func TestAcquire_WaitEndsAfterARelease(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		got := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(time.Second))
		locktest.AwaitWaiters(t, locks, 1)
		proxy.DelayReply(locktest.Scripts, 50*time.Millisecond)
		b.Take("k", locktest.Stranger, time.Hour) // replaces the hold: its release finds nothing
		locktest.Pass(945 * time.Millisecond)
		go func() { _ = hold.Release(t.Context()) }()
		if o := <-got; !errors.Is(o.Err, core.ErrNotAcquired) || errors.Is(o.Err, core.ErrUnavailable) {
			t.Errorf("got %v after %s, want ErrNotAcquired", o.Err, o.Took)
		}
		locktest.Pass(time.Second)
	})
}

// A caller gives up while nothing can interrupt its command, and then the grant arrives. The caller gets an error,
// and the client releases the lock.
func TestAcquire_GrantAfterACancelIsNotASuccess(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"k"}, {"k", "l"}} {
		for _, wait := range []time.Duration{0, time.Minute} {
			locktest.ParallelBubble(t, fmt.Sprint(names, wait), func(t *testing.T, b *locktest.Redis) {
				locks, proxy := b.BehindAProxy()
				acquires := faultproxy.All(locktest.Scripts, faultproxy.Containing("k"))
				proxy.DelayReply(faultproxy.Once(acquires), 30*time.Millisecond)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(5*time.Millisecond, cancel)
				o := <-locktest.GoAcquire(ctx, locks.MultiLock(names...), core.LeaseTime(time.Hour), core.WaitTime(wait))
				locktest.WantErr(t, o.Err, context.Canceled, core.ErrNotAcquired)
				if o.Hold != nil {
					t.Error("got a hold with an error")
				}
				locktest.Pass(100 * time.Millisecond)
				b.WantGone(names...)
				if s := locks.Stats(); s.Holds != 0 {
					t.Errorf("%d holds, want 0", s.Holds)
				}
			})
		}
	}
}
