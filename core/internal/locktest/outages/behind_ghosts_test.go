package outages_test

import (
	"context"
	"path"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// If a ghost keeps the lock, a caller with WaitTime(0) gets ErrNotAcquired after a second, whatever the backend
// timeout. The client does not report an outage, because Redis has answered all the time.
func TestBehindGhost_IsRefusedAfterASecond(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, time.Second, time.Minute} {
		locktest.ParallelBubble(t, timeout.String(), func(t *testing.T, b *locktest.Redis) {
			down := &locktest.BackendRecorder{}
			locks, proxy := b.BehindAProxy(core.WithBackendTimeout(timeout), core.WithObserver(down.Observer()))
			locktest.KeepGhosts(t, proxy, "k")
			locktest.LeaveGhost(t, locks, proxy, "k")
			start := time.Now()
			_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0))
			locktest.WantOnly(t, err, core.ErrNotAcquired, core.ErrUnavailable)
			if took := time.Since(start); took < 990*time.Millisecond || took > time.Second {
				t.Errorf("refused after %s, want a second", took)
			}
			locktest.WantSame(t, "events of availability", len(down.All()), 0)
		})
	}
}

// A server of a Redlock on which a ghost has the lock counts as answering. Callers get ErrNotAcquired, with and without
// a wait time.
func TestBehindGhost_OfARedlock(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"does not wait": 0, "waits": 2 * time.Second} {
		locktest.ParallelBubbleOf(t, name, 3, func(t *testing.T, servers []*locktest.Redis) {
			down := &locktest.BackendRecorder{}
			clients := locktest.BehindEach(t, servers, core.WithBackendTimeout(200*time.Millisecond), core.WithObserver(down.Observer()))
			for i, s := range servers {
				for _, source := range locktest.ScriptSources(t) {
					locktest.Must(t, s.Client.ScriptLoad(t.Context(), source).Err())
				}
				locktest.MustRelease(t, hold(locktest.MustAcquire(t, t.Context(), clients[i].Lock("warm"))))
				locktest.KeepGhosts(t, s.Proxy, "k")
				locktest.LeaveGhost(t, clients[i], s.Proxy, "k")
			}
			_, _, err := core.Redlock("k", clients...).Acquire(t.Context(), core.WaitTime(wait))
			locktest.WantOnly(t, err, core.ErrNotAcquired, core.ErrUnavailable)
			locktest.WantSame(t, "events of availability", len(down.All()), 0)
		})
	}
}

func hold(_ context.Context, h *core.Hold) *core.Hold { return h }

// A connection ends after a ghost has held the lock for longer than the backend timeout. Redis has not been silent,
// so the client makes another attempt.
func TestBehindGhost_LostConnectionIsNotSilence(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy(core.WithBackendTimeout(400 * time.Millisecond))
		locktest.KeepGhosts(t, proxy, "k")
		locktest.LeaveGhost(t, locks, proxy, "k")
		got := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(0))
		locktest.Pass(450 * time.Millisecond)
		locktest.Must(t, b.Del(t.Context(), "k").Err())
		lost := proxy.DropRequest(faultproxy.Once(locktest.ScriptOn(t, "acquire", "k")))
		o := locktest.Got(t, got)
		if lost.Hits() != 1 {
			t.Errorf("%d attempts were lost, want one", lost.Hits())
		}
		locktest.MustRelease(t, o.Hold)
	})
}

// slowHook, when armed, holds the answer to the next command of the caller whose context has the hook as a key.
type slowHook struct {
	armed   atomic.Bool
	hit     chan struct{}
	release chan struct{}
}

func (h *slowHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *slowHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *slowHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		waits := ctx.Value(h) != nil && h.armed.CompareAndSwap(true, false)
		err := next(ctx, cmd)
		if waits {
			close(h.hit)
			<-h.release
		}
		return err
	}
}

// The client clears the ghost up before a caller gets the answer that the ghost has the lock. The caller attempts again
// and gets the free lock.
func TestBehindGhost_IsClearedUpBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		hook := &slowHook{hit: make(chan struct{}), release: make(chan struct{})}
		proxy, locks := b.BehindHooks(hook)
		for _, source := range locktest.ScriptSources(t) {
			locktest.Must(t, b.ScriptLoad(t.Context(), source).Err())
		}
		stays := locktest.KeepGhosts(t, proxy, "k")
		locktest.LeaveGhost(t, locks, proxy, "k")
		hook.armed.Store(true)
		got := locktest.GoAcquire(context.WithValue(t.Context(), hook, true), locks.Lock("k"), core.WaitTime(0))
		<-hook.hit
		stays.Remove()
		locktest.Eventually(t, "the ghost to be cleared up", func() bool { return b.Exists(t.Context(), "k").Val() == 0 })
		locktest.Pass(time.Second)
		close(hook.release)
		locktest.MustRelease(t, locktest.Got(t, got).Hold)
	})
}

// Callers that wait for a ghost to be cleared up return in time if their context ends or their client is closed.
func TestBehindGhost_IsLeft(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		locktest.KeepGhosts(t, proxy, "k")
		locktest.LeaveGhost(t, locks, proxy, "k")
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		o := <-locktest.GoAcquire(ctx, locks.Lock("k"), core.WaitTime(0))
		locktest.WantErr(t, o.Err, core.ErrNotAcquired, context.DeadlineExceeded)
		if o.Took != 50*time.Millisecond {
			t.Errorf("the caller took %s, want 50ms", o.Took)
		}
		got := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(0))
		locktest.Pass(100 * time.Millisecond)
		closed := locktest.Go(func() error { return locks.Close(t.Context()) })
		if o = <-got; o.Took != 100*time.Millisecond {
			t.Errorf("the caller took %s, want 100ms", o.Took)
		}
		locktest.WantErr(t, o.Err, core.ErrClosed)
		locktest.Must(t, <-closed)
	})
}

// While a ghost has the lock, many callers with WaitTime(0) send few commands. One of them gets the lock.
func TestBehindGhost_Many(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		stays := locktest.KeepGhosts(t, proxy, "k")
		locktest.LeaveGhost(t, locks, proxy, "k")
		attempts := proxy.Watch(locktest.ScriptOn(t, "acquire", "k"))
		const callers = 200
		results := make(chan locktest.Outcome, callers)
		for range callers {
			go func() {
				results <- <-locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(0), core.LeaseTime(time.Minute))
			}()
		}
		locktest.Pass(300 * time.Millisecond)
		stays.Remove()
		locktest.Must(t, b.Del(t.Context(), "k").Err())
		won := 0
		for range callers {
			if o := <-results; o.Err == nil {
				won++
			} else {
				locktest.WantOnly(t, o.Err, core.ErrNotAcquired, core.ErrUnavailable)
			}
		}
		if won != 1 {
			t.Errorf("%d callers have the lock, want 1", won)
		}
		if n := attempts.Hits(); n > 12*callers {
			t.Errorf("%d attempts of %d callers", n, callers)
		}
	})
}

// clears matches the scripts that clear up ghosts of any kind.
func clears(t *testing.T) faultproxy.Match {
	t.Helper()
	var all []faultproxy.Match
	for name := range locktest.ScriptSources(t) {
		if path.Base(name) == "clear" {
			all = append(all, locktest.Script(t, name))
		}
	}
	return func(args []string) bool {
		return slices.ContainsFunc(all, func(m faultproxy.Match) bool { return m(args) })
	}
}

// A caller that a ghost of any kind excludes gets the lock as soon as the ghost is gone.
func TestBehindGhost_OfEachKind(t *testing.T) {
	t.Parallel()
	type lockOf = func(*core.Client, string) core.Lock
	cases := map[string][2]lockOf{
		"two writers":    {(*core.Client).WriteLock, (*core.Client).WriteLock},
		"several":        {locktest.MultiLockOf, (*core.Client).Lock},
		"one of several": {(*core.Client).Lock, locktest.MultiLockOf},
	}
	for _, kind := range locktest.KindsOnOneServer() {
		if kind.Lock != nil {
			cases[kind.Name] = [2]lockOf{kind.On, func(c *core.Client, key string) core.Lock { return kind.Rival([]*core.Client{c}, key) }}
		}
	}
	for name, kinds := range cases {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			stays := proxy.AnswerError(clears(t), "NOPERM not now")
			commands := faultproxy.All(faultproxy.Command("EVALSHA"), faultproxy.Containing("k{x}"))
			acquire := proxy.HoldRequest(faultproxy.Once(commands))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			defer cancel()
			_, _, err := kinds[0](locks, "k{x}").Acquire(ctx, core.LeaseTime(time.Minute))
			locktest.WantErr(t, err, context.DeadlineExceeded, core.ErrNotAcquired)
			acquire.Release()
			locktest.Pass(0)
			got := locktest.GoAcquire(t.Context(), kinds[1](locks, "k{x}"), core.WaitTime(0))
			locktest.Pass(100 * time.Millisecond)
			stays.Remove()
			o := locktest.Got(t, got)
			if o.Took < 100*time.Millisecond || acquire.Executed() != 1 {
				t.Error("no ghost has held the lock: nothing is tested")
			}
			locktest.MustRelease(t, o.Hold)
		})
	}
}

// The place in the queue of a fair lock that an abandoned attempt has taken does not exclude callers with WaitTime(0).
func TestBehindGhost_OfAPlaceInAFairQueue(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		_, holder := locktest.MustAcquire(t, t.Context(), b.Locks().FairLock("k"))
		stays := proxy.AnswerError(locktest.ScriptOn(t, "fair/clear", "k"), "NOPERM not now")
		ctx, cancel := context.WithCancel(t.Context())
		_, left := b.JoinQueue(ctx, locks, "k")
		cancel()
		<-left
		locktest.MustRelease(t, holder)
		got := locktest.GoAcquire(t.Context(), locks.FairLock("k"), core.WaitTime(0))
		locktest.Pass(100 * time.Millisecond)
		stays.Remove()
		locktest.MustRelease(t, locktest.Got(t, got).Hold)
		b.WantNoQueue("k")
	})
}
