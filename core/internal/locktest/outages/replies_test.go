package outages_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/thorough"
)

// lost are the faults that lose a command or its reply.
var lost = []locktest.Fault{locktest.DropReply, locktest.DropRequest}

// A life performs the operations of a kind on "pool" through a client that loses one command. It checks after each
// operation that Redis has the counts that the holder expects.
type life struct {
	run     func(b *locktest.Redis, locks *core.Client, renewals *locktest.Renewals)
	scripts int // without a fault, at least
	opts    []core.Option
	left    []string // the keys that stay
}

var lives = map[string]life{
	"reentrant": {run: reentrantLife, scripts: 6},
	"read":      {run: readersLife, scripts: 6},
	"write":     {run: writersLife, scripts: 6},
	"multi":     {run: multiLife, scripts: 2},
	"permit":    {run: permitLife, scripts: 10, left: []string{"pool", "{pool}:interlock_ops"}},
	"semaphore": {run: plainLife, scripts: 7, left: []string{"pool", "{pool}:interlock_ops"}},
	"latch":     {run: latchLife, scripts: 4, left: []string{"{pool}:interlock_ops"}},
}

// Every command of a life is lost once, as a request or as a reply. No operation fails, and no key is left after a
// second.
func TestLostReplies_AtEveryStep(t *testing.T) {
	t.Parallel()
	rounds := thorough.Or(25, 5)
	if testing.Short() {
		rounds = 1
	}
	for kind, life := range lives {
		for _, f := range lost {
			locktest.ParallelEachRedis(t, kind+"/"+f.Name, func(t *testing.T, b *locktest.Redis) {
				for range rounds {
					loseEach(t, b, life, f)
				}
			})
		}
	}
}

// TestLostReplies_BesideRenewals is like TestLostReplies_AtEveryStep, but the watchdog renews the lease.
func TestLostReplies_BesideRenewals(t *testing.T) {
	t.Parallel()
	renewed := life{run: renewedLife, scripts: 6, opts: []core.Option{core.WithWatchdog(6 * time.Second)}}
	var onServers []locktest.Subtest // they wait two seconds for each renewal
	for _, f := range lost {
		locktest.ParallelBubble(t, f.Name, func(t *testing.T, b *locktest.Redis) { loseEach(t, b, renewed, f) })
		onServers = append(onServers, locktest.Subtest{Name: f.Name + "/server", Body: func(t *testing.T) { loseEach(t, locktest.Real(t), renewed, f) }})
	}
	locktest.Together(t, onServers...)
}

// loseEach runs a life once for each of its scripts, and loses that script.
func loseEach(t *testing.T, b *locktest.Redis, l life, f locktest.Fault) {
	t.Helper()
	nth := 1
	for loseOne(t, b, l, f, nth) {
		nth++
	}
	if lost := nth - 1; lost < l.scripts {
		t.Errorf("%d scripts were lost, want at least %d", lost, l.scripts)
	}
}

// loseOne runs a life that loses its nth script. It reports whether the life has so many scripts.
func loseOne(t *testing.T, b *locktest.Redis, l life, f locktest.Fault, nth int) bool {
	t.Helper()
	locktest.Must(t, b.FlushDB(t.Context()).Err())
	proxy, rdb := faultproxy.Around(t, b.Client)
	renewals := &locktest.Renewals{}
	locks := locktest.NewClient(t, rdb, append(l.opts, locktest.Patient, core.WithObserver(renewals.Observer()))...)
	rule := f.Inject(proxy, faultproxy.Nth(nth, locktest.Scripts))
	l.run(b, locks, renewals)
	rule.Remove()
	locktest.WithinASecond(t, "nothing left", func() bool { return len(b.KeysBut(l.left...)) == 0 })
	locktest.MustClose(t, locks)
	if t.Failed() {
		t.Fatalf("%s: script %d (hits: %d)", f.Name, nth, rule.Hits())
	}
	return rule.Hits() > 0
}

// unhurried are options that give an operation enough time beside a fault.
var unhurried = []core.AcquireOption{core.WaitTime(30 * time.Second), core.LeaseTime(time.Minute)}

// reentrantLife acquires a lock with a fixed lease, re-enters it, releases the inner hold, refreshes the lease, releases
// the lock to a waiter, and releases it again.
func reentrantLife(b *locktest.Redis, locks *core.Client, _ *locktest.Renewals) {
	ctx, outer, inner := enterTwice(b, locks, unhurried...)
	releaseInner(b, outer, inner)
	locktest.Must(b.T, outer.Refresh(ctx, 20*time.Second))
	b.WantCount(outer, "1")
	passOn(b, locks, outer, unhurried...)
}

// renewedLife is like reentrantLife, but the watchdog renews the lease instead of the refresh.
func renewedLife(b *locktest.Redis, locks *core.Client, renewals *locktest.Renewals) {
	_, outer, inner := enterTwice(b, locks, unhurried[:1]...)
	before := renewals.Good()
	locktest.Eventually(b.T, "renewed", func() bool { return renewals.Good() > before })
	b.WantCount(outer, "2")
	releaseInner(b, outer, inner)
	passOn(b, locks, outer, unhurried[:1]...)
}

func enterTwice(b *locktest.Redis, locks *core.Client, opts ...core.AcquireOption) (ctx context.Context, outer, inner *core.Hold) {
	lock := locks.Lock(locktest.Pool)
	ctx, outer = locktest.MustAcquire(b.T, context.Background(), lock, opts...)
	b.WantCount(outer, "1")
	_, inner = locktest.MustAcquire(b.T, ctx, lock, opts...)
	b.WantCount(outer, "2")
	return ctx, outer, inner
}

func releaseInner(b *locktest.Redis, outer, inner *core.Hold) {
	locktest.MustRelease(b.T, inner)
	b.WantCount(outer, "1")
}

// passOn releases the lock to a waiter, which releases it.
func passOn(b *locktest.Redis, locks *core.Client, outer *core.Hold, opts ...core.AcquireOption) {
	next := locktest.GoAcquire(context.Background(), locks.Lock(locktest.Pool), opts...)
	locktest.AwaitWaiters(b.T, locks, 1)
	locktest.MustRelease(b.T, outer)
	hold := locktest.Got(b.T, next).Hold
	b.WantCount(hold, "1")
	locktest.MustRelease(b.T, hold)
}

func readersLife(b *locktest.Redis, locks *core.Client, _ *locktest.Renewals) {
	lock := locks.ReadLock(locktest.Pool)
	ctx, one := locktest.MustAcquire(b.T, context.Background(), lock, unhurried...)
	_, again := locktest.MustAcquire(b.T, ctx, lock, unhurried...)
	_, two := locktest.MustAcquire(b.T, context.Background(), lock, unhurried...)
	b.WantReaders(locktest.Pool, map[string]int{one.Field(): 2, two.Field(): 1})
	locktest.Must(b.T, one.Refresh(ctx, 30*time.Second))
	locktest.MustRelease(b.T, again)
	b.WantReaders(locktest.Pool, map[string]int{one.Field(): 1, two.Field(): 1})
	locktest.Must(b.T, two.Refresh(ctx, 10*time.Second))
	locktest.MustRelease(b.T, one)
	b.WantReaders(locktest.Pool, map[string]int{two.Field(): 1})
	locktest.MustRelease(b.T, two)
}

func writersLife(b *locktest.Redis, locks *core.Client, _ *locktest.Renewals) {
	lock := locks.WriteLock(locktest.Pool)
	ctx, one := locktest.MustAcquire(b.T, context.Background(), lock, unhurried...)
	_, again := locktest.MustAcquire(b.T, ctx, lock, unhurried...)
	_, r := locktest.MustAcquire(b.T, ctx, locks.ReadLock(locktest.Pool), unhurried...)
	b.WantReaders(locktest.Pool, map[string]int{one.Field(): 2, r.Field(): 1})
	locktest.Must(b.T, one.Refresh(ctx, 30*time.Second))
	locktest.MustRelease(b.T, again)
	_, r = r.Handover()
	next := locktest.GoAcquire(context.Background(), lock, unhurried...)
	locktest.AwaitWaiters(b.T, locks, 1)
	locktest.MustRelease(b.T, one)
	b.WantReaders(locktest.Pool, map[string]int{r.Field(): 1})
	locktest.MustRelease(b.T, r)
	o := locktest.Got(b.T, next)
	last := locktest.GoAcquire(context.Background(), lock, unhurried...)
	locktest.AwaitWaiters(b.T, locks, 1)
	locktest.MustRelease(b.T, o.Hold)
	o = locktest.Got(b.T, last)
	b.WantReaders(locktest.Pool, map[string]int{o.Hold.Field(): 1})
	locktest.MustRelease(b.T, o.Hold)
}

func multiLife(b *locktest.Redis, locks *core.Client, _ *locktest.Renewals) {
	_, hold := locktest.MustAcquire(b.T, context.Background(), locktest.MultiLockOf(locks, locktest.Pool), unhurried...)
	for _, key := range hold.Keys() {
		locktest.Eventually(b.T, "one holder", func() bool { return len(b.HKeys(context.Background(), key).Val()) == 1 })
	}
	locktest.MustRelease(b.T, hold)
}

func permitLife(bed *locktest.Redis, locks *core.Client, _ *locktest.Renewals) {
	b, ctx := locktest.PermitsOf(bed), context.Background()
	pool := locks.Semaphore(locktest.Pool, 0)
	locktest.WantGot(b.T, "TrySetPermits", true)(pool.TrySetPermits(ctx, 2))
	locktest.Must(b.T, pool.AddPermits(ctx, 2))
	locktest.Must(b.T, pool.SetPermits(ctx, 3))
	_, one := locktest.MustAcquire(b.T, ctx, pool.Lock)
	_, two := locktest.MustAcquire(b.T, ctx, pool.Lock, core.LeaseTime(time.Minute))
	locktest.Must(b.T, two.Refresh(ctx, time.Hour))
	locktest.Must(b.T, two.Refresh(ctx, 10*time.Second))
	eventuallyPermits(b, 1, 2)
	locktest.Must(b.T, two.Leave(ctx, time.Hour))
	locktest.MustRelease(b.T, one)
	eventuallyPermits(b, 2, 1)
	_, theirs := locktest.MustAcquire(b.T, ctx, b.Locks().Semaphore(locktest.Pool, 0).Lock)
	locktest.Must(b.T, pool.ReleasePermit(ctx, theirs.Field()))
	b.WantPermits(2, 1)
	locktest.WantErr(b.T, pool.ReleasePermit(ctx, theirs.Field()), core.ErrNotHeld)
	b.WantPermits(2, 1)
	if _, err := pool.ForceRelease(ctx); err != nil { // ForceRelease is not sent again
		_, err = pool.ForceRelease(ctx)
		locktest.Must(b.T, err)
	}
	eventuallyPermits(b, 3, 0)
}

func plainLife(bed *locktest.Redis, locks *core.Client, _ *locktest.Renewals) {
	b, ctx := locktest.PermitsOf(bed), context.Background()
	s := locks.PlainSemaphore(locktest.Pool)
	locktest.WantGot(b.T, "TrySetPermits", true)(s.TrySetPermits(ctx, 5))
	locktest.Must(b.T, s.Acquire(ctx, 3))
	eventuallyPermits(b, 2, 0)
	locktest.Must(b.T, s.Release(ctx, 2))
	locktest.Must(b.T, s.Acquire(ctx, 1))
	locktest.Must(b.T, s.AddPermits(ctx, 4))
	eventuallyPermits(b, 7, 0)
	n, err := s.Drain(ctx)
	if errors.Is(err, core.ErrUnavailable) { // Drain is not sent again
		n, err = s.Drain(ctx)
	}
	if n != 7 || err != nil {
		b.T.Errorf("Drain: got %d, %v, want 7", n, err)
	}
	eventuallyPermits(b, 0, 0)
	locktest.Must(b.T, s.Release(ctx, 1))
	eventuallyPermits(b, 1, 0)
}

func latchLife(b *locktest.Redis, locks *core.Client, _ *locktest.Renewals) {
	ctx := context.Background()
	l := locks.CountDownLatch(locktest.Pool)
	locktest.WantGot(b.T, "TrySetCount", true)(l.TrySetCount(ctx, 3))
	opened := locktest.Go(func() error { return l.Await(ctx) })
	locktest.AwaitWaiters(b.T, locks, 1)
	for range 3 {
		if !b.Has(locktest.Pool) {
			b.T.Error("the latch is open too early")
		}
		locktest.Must(b.T, l.CountDown(ctx))
	}
	locktest.Must(b.T, <-opened)
	b.WantGone(locktest.Pool)
}

// eventuallyPermits waits up to a second until so many permits are free and taken.
func eventuallyPermits(b locktest.Permits, free, taken int) {
	b.T.Helper()
	end := time.Now().Add(locktest.Measured(time.Second + locktest.Slack))
	for !hasPermits(b, free, taken) && time.Now().Before(end) {
		time.Sleep(time.Millisecond) // a poll with a bound, not a guess
	}
	b.WantPermits(free, taken)
}

func hasPermits(b locktest.Permits, free, taken int) bool {
	ctx := context.Background()
	return b.Get(ctx, locktest.Pool).Val() == fmt.Sprint(free) && b.ZCard(ctx, locktest.PermitLeases).Val() == int64(taken)
}

// A command is lost at every step of the life of a lock. No operation fails, the lock excludes others until its
// release, and nothing is left.
func TestLostReplies_EachKind(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"acquire", "sethold", "refresh", "renew", "release"} {
		for _, f := range lost {
			locktest.ParallelEachKind(t, op+"/"+f.Name, func(t *testing.T, w *locktest.World) {
				rules := w.Inject(f, w.Op(op))
				ctx, hold := locktest.MustAcquire(t, t.Context(), w.Mine)
				if w.IsReentrant {
					_, inner := locktest.MustAcquire(t, ctx, w.Mine)
					locktest.MustRelease(t, inner)
				}
				locktest.Pass(7 * time.Second) // two renewals
				locktest.WantAlive(t, ctx)
				w.WantTaken()
				locktest.Must(t, hold.Refresh(t.Context(), 10*time.Second))
				locktest.Must(t, hold.Refresh(t.Context(), 5*time.Second))
				w.WantTaken()
				locktest.MustRelease(t, hold)
				for i, r := range rules {
					if r.Hits() != 1 && (w.IsReentrant || op != "sethold") {
						t.Errorf("server %d: %d commands were lost, want 1", i, r.Hits())
					}
				}
				locktest.Pass(time.Second)
				w.WantFree()
			}, core.WithWatchdog(9*time.Second))
		}
	}
}

// The reply to one attempt of a waiter for a fair lock is lost: the attempt that takes the place in the queue, a later
// attempt, or the attempt that gets the lock. The waiter keeps its place, and nothing is left.
func TestLostReplies_FairWaiterKeepsItsPlace(t *testing.T) {
	t.Parallel()
	for nth := 1; nth <= 4; nth++ {
		locktest.ParallelBubble(t, fmt.Sprintf("of_attempt_%d", nth), func(t *testing.T, b *locktest.Redis) {
			b.Take("k", locktest.Stranger, time.Hour)
			locks, proxy := b.BehindAProxy()
			rule := proxy.DropReply(faultproxy.Nth(nth, locktest.Script(t, "fair/acquire")))
			_, got := b.JoinQueue(t.Context(), locks, "k")
			_, behind := b.JoinQueue(t.Context(), b.Locks(), "k")
			locktest.Pass(3 * time.Second)
			if nth < 4 && rule.Hits() == 0 {
				t.Error("no reply was lost")
			}
			locktest.WantSame(t, "waiters in Redis", len(b.Queued("k")), 2)
			if nth == 4 {
				rule.Remove()
				rule = proxy.DropReply(faultproxy.Once(locktest.Script(t, "fair/acquire")))
			}
			freed := time.Now()
			b.FreeFair("k")
			first := locktest.Got(t, got)
			locktest.WantSoon(t, "acquired after %s", freed, 200*time.Millisecond)
			if rule.Hits() == 0 {
				t.Error("no reply was lost")
			}
			b.WantCount(first.Hold, "1")
			locktest.MustRelease(t, first.Hold)
			locktest.MustRelease(t, locktest.Got(t, behind).Hold)
			b.WantNoQueue("k")
		})
	}
}

// If the first reply to a failed change is lost, the client does not report the change as done, because Redis records
// only changes that were made. The error names the record that cannot be read.
func TestLostReplies_OfAFailedChange(t *testing.T) {
	t.Parallel()
	changes := map[string]func(ctx context.Context, locks *core.Client) error{
		"set": func(ctx context.Context, locks *core.Client) error {
			return locks.Semaphore(locktest.Pool, 0).SetPermits(ctx, 9)
		},
		"add": func(ctx context.Context, locks *core.Client) error {
			return locks.Semaphore(locktest.Pool, 0).AddPermits(ctx, 9)
		},
		"release_by_id": func(ctx context.Context, locks *core.Client) error {
			return locks.Semaphore(locktest.Pool, 0).ReleasePermit(ctx, strings.Repeat("0", 32))
		},
		"release": func(ctx context.Context, locks *core.Client) error {
			return locks.PlainSemaphore(locktest.Pool).Release(ctx, 9)
		},
		"count_down": func(ctx context.Context, locks *core.Client) error {
			return locks.CountDownLatch(locktest.Pool).CountDown(ctx)
		},
	}
	for _, tt := range []struct {
		change, key, text string // the text makes the key unreadable
		why               string
	}{
		{"set", locktest.PermitLeases, "x", "not a count"},
		{"add", locktest.PermitLeases, "x", "not a count"},
		{"release_by_id", locktest.PermitLeases, "x", "not a count"},
		{"set", locktest.Pool, "many", "not an integer"},
		{"add", locktest.Pool, "many", "not an integer"},
		{"release", locktest.Pool, "many", "not an integer"},
		{"count_down", locktest.Pool, "many", "not an integer"},
	} {
		locktest.ParallelEachRedis(t, tt.change+"/"+tt.why, func(t *testing.T, b *locktest.Redis) {
			b.LoadScripts()
			b.Set(t.Context(), locktest.Pool, "4", 0)
			b.Set(t.Context(), tt.key, tt.text, 0)
			before := b.Get(t.Context(), locktest.Pool).Val()
			proxy, rdb := faultproxy.Around(t, b.Client)
			rule := proxy.DropReply(faultproxy.Once(locktest.Scripts))
			err := changes[tt.change](t.Context(), locktest.NewClient(t, rdb, locktest.Patient))
			locktest.WantErr(t, err, core.ErrUnavailable)
			if err != nil && !strings.Contains(err.Error(), tt.why) {
				t.Errorf("got %v, want an error that says %q", err, tt.why)
			}
			if got := b.Get(t.Context(), locktest.Pool).Val(); got != before || rule.Hits() != 1 {
				t.Errorf("the count is %s after %d lost replies, want %s after one", got, rule.Hits(), before)
			}
			b.WantGone("{pool}:interlock_ops")
		})
	}
}

// The reply of Leave is lost. The client sends the command again, and Leave succeeds. In case out_of_memory Redis
// accepts no new field, and another command turns the old field into the marker.
func TestLostReplies_OfLeave(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		refused, script string
		fault           locktest.Fault
		marker          time.Duration
	}{
		"marker_there":   {"", "handoff", locktest.HoldReply, 5 * time.Second},
		"marker_expired": {"", "handoff", locktest.HoldReply, 10 * time.Millisecond},
		"out_of_memory":  {"handoff", "refresh", locktest.DropReply, time.Millisecond},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			if tt.refused != "" {
				proxy.AnswerError(locktest.ScriptOn(t, tt.refused, "k"), "OOM command not allowed")
			}
			rule := tt.fault.Inject(proxy, faultproxy.Once(locktest.ScriptOn(t, tt.script, "k")))
			locktest.Must(t, hold.Leave(t.Context(), tt.marker))
			if rule.Executed() != 1 {
				t.Fatal("no reply was lost")
			}
			locktest.Pass(tt.marker)
			b.WantGone("k")
		})
	}
}

// The reply of a release is lost, and another client takes the lock before the client sends the release again. The
// second answer says that the client does not hold the lock. Release returns nil, because the first command has freed
// the lock.
func TestLostReplies_OfRelease(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]bool{"taken": true, "free": false} {
		locktest.Parallel(t, name, func(t *testing.T) {
			r := locktest.NewProxied(t)
			_, hold := locktest.MustAcquire(t, t.Context(), r.Behind(locktest.Patient).Lock("k"), core.LeaseTime(time.Minute))
			release := locktest.ScriptOn(t, "release", "k")
			r.Proxy.DropReply(faultproxy.Nth(1, release))
			second := r.Proxy.HoldRequest(faultproxy.Once(release)) // the first rule applies to the first release
			done := locktest.GoRelease(hold)
			<-second.Hit()
			r.WantFreed("k")
			if taken {
				r.Steal("k")
			}
			second.Release()
			locktest.WantOK(t, <-done)
			if taken {
				r.WantHolder("k", locktest.Stranger)
			}
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		})
	}
}

// The lost reply of a release contains the number of other clients that listen. The process leaves the lock free for a
// while, as it does if it knows of a listener.
func TestLostReplies_OfReleaseBesideListeners(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const wakingUp = 6 * time.Millisecond // of a thread of Redisson: after the resend, before this process takes the lock
		locks, proxy := b.BehindAProxy()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		messages := b.SubscribeTo(t, locktest.ChannelOf("k"))
		other := make(chan error, 1)
		go func() {
			_, err := messages.ReceiveMessage(t.Context())
			locktest.WantOK(t, err)
			time.Sleep(wakingUp) // in the time of the bubble
			_, hold, err := b.Locks().Lock("k").Acquire(t.Context(), core.WaitTime(0))
			other <- errors.Join(err, hold.Release(t.Context())) // the bubble waits for its goroutines
		}()
		waiting := locktest.GoAcquire(t.Context(), locks.Lock("k"))
		locktest.Pass(100 * time.Millisecond) // the run in this process has ended
		rule := proxy.DropReply(faultproxy.Once(locktest.ScriptOn(t, "release", "k")))
		locktest.MustRelease(t, hold)
		if err := <-other; err != nil || rule.Hits() != 1 {
			t.Errorf("%d replies were lost, and a listening waiter has missed its turn: %v", rule.Hits(), err)
		}
		locktest.MustRelease(t, (<-waiting).Hold)
	})
}
