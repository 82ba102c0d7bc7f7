package acquiring_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// preparation counts how often an acquisition has prepared its wait.
type preparation struct {
	times int
	do    func(ctx context.Context) error // nil: nothing
}

func (p *preparation) option() core.AcquireOption {
	return core.BeforeWait(func(ctx context.Context) error {
		p.times++
		if p.do == nil {
			return nil
		}
		return p.do(ctx)
	})
}

func TestBeforeWait_NotCalledWithoutAWait(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		b.Warm(locks)
		var p preparation
		locktest.WantSame(t, "acquire and release: scripts", locktest.Fewest(sent, func() {
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("free"), p.option(), core.WaitTime(time.Minute))
			locktest.MustRelease(t, hold)
		}), 2)
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("free"), p.option(), core.WaitTime(time.Minute))
		_, inner := locktest.MustAcquire(t, ctx, locks.Lock("free"), p.option(), core.WaitTime(time.Minute))
		_, _, err := locks.Lock("free").Acquire(t.Context(), p.option(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, hold)
		if p.times != 0 {
			t.Errorf("prepared %d times, want none", p.times)
		}
	})
}

// A caller of each kind prepares its wait once, after one attempt, and gets the lock in the end.
func TestBeforeWait_OnceAfterTheFirstAttempt(t *testing.T) {
	t.Parallel()
	for _, kind := range locktest.KindsOnOneServer() {
		if kind.Lock == nil {
			continue
		}
		for where, same := range map[string]bool{"of another process": false, "of this process": true} {
			locktest.ParallelBubble(t, kind.Name+"/"+where, func(t *testing.T, b *locktest.Redis) {
				obs := &locktest.Recorder{}
				mine := b.Locks(core.WithObserver(obs.Observer()))
				other := mine
				if !same {
					other = b.Locks()
				}
				holder := kind.On(other, "k")
				if kind.Name == "read" { // readers share the lock
					holder = kind.Rival([]*core.Client{other}, "k")
				}
				_, hold := locktest.MustAcquire(t, t.Context(), holder)
				p := preparation{do: func(context.Context) error {
					locktest.WantSame(t, "waiters while it prepares", mine.Stats().Waiters, 0)
					time.Sleep(time.Second) // in the time of the bubble
					return nil
				}}
				done := make(chan error)
				go func() {
					done <- kind.On(mine, "k").Do(t.Context(), func(context.Context) error { return nil }, p.option(), core.WaitTime(time.Minute))
				}()
				time.Sleep(time.Second / 2) // in the time of the bubble
				synctest.Wait()
				if p.times != 1 {
					t.Errorf("prepared %d times, want once", p.times)
				}
				time.Sleep(10 * time.Second) // in the time of the bubble
				locktest.MustRelease(t, hold)
				if err := <-done; err != nil {
					t.Errorf("got %v", err)
				}
				if p.times != 1 {
					t.Errorf("prepared %d times in the end, want once", p.times)
				}
				contentions := 0
				for _, e := range obs.Names() {
					if e == "contention" {
						contentions++
					}
				}
				if contentions != 1 {
					t.Errorf("observers were notified %d times, want once: %q", contentions, obs.Names())
				}
			})
		}
	}
}

func TestBeforeWait_OfARedlock(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		var p preparation
		mine, other := locktest.BehindEach(t, servers), locktest.BehindEach(t, servers)
		for _, holder := range [][]*core.Client{other, mine} {
			p.times = 0
			_, hold := locktest.MustAcquire(t, t.Context(), core.Redlock("k", holder...))
			time.AfterFunc(10*time.Second, func() { locktest.MustRelease(t, hold) })
			err := core.Redlock("k", mine...).Do(t.Context(), func(context.Context) error { return nil }, p.option(), core.WaitTime(time.Minute))
			if err != nil || p.times != 1 {
				t.Errorf("prepared %d times: %v", p.times, err)
			}
			_, hold = locktest.MustAcquire(t, t.Context(), core.Redlock("k", mine...), p.option())
			locktest.MustRelease(t, hold)
		}
		failing := preparation{do: func(context.Context) error { return core.ErrTooManyWaiters }}
		_, hold := locktest.MustAcquire(t, t.Context(), core.Redlock("k", other...))
		_, _, err := core.Redlock("k", mine...).Acquire(t.Context(), failing.option())
		locktest.WantErr(t, err, core.ErrTooManyWaiters)
		locktest.MustRelease(t, hold)
	})
}

// A caller attempts once before it prepares and once after. That is one attempt more than without BeforeWait.
func TestBeforeWait_Commands(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		b.Warm(locks)
		count := func(opts ...core.AcquireOption) int {
			b.Take("k", locktest.Stranger, time.Hour)
			before := sent.Hits()
			ctx, leave := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _, _ = locks.Lock("k").Acquire(ctx, opts...)
			}()
			synctest.Wait()
			got := sent.Hits() - before
			leave()
			<-done
			return got
		}
		var p preparation
		without, with := count(), count(p.option())
		if with > without+1 || p.times != 1 {
			t.Errorf("got %d scripts, and %d without BeforeWait, want one more at most", with, without)
		}
	})
}

// A caller that prepares for a long time does not delay other callers. Afterwards it joins the queue before all callers
// that came later.
func TestBeforeWait_DelaysNoOtherCaller(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		var mu sync.Mutex
		var order []string
		do := func(name string, opts ...core.AcquireOption) {
			go func() {
				err := locks.Lock("k").Do(t.Context(), func(context.Context) error {
					mu.Lock()
					order = append(order, name)
					mu.Unlock()
					time.Sleep(time.Minute) // in the time of the bubble
					return nil
				}, opts...)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}()
			time.Sleep(time.Millisecond) // in the time of the bubble
		}
		p := preparation{do: func(context.Context) error { time.Sleep(90 * time.Second); return nil }} // in the time of the bubble
		do("first", p.option())
		do("second")
		do("third")
		do("fourth")
		locktest.MustRelease(t, hold) // the second has the lock for a minute, and the third until the first is ready
		time.Sleep(time.Hour)         // in the time of the bubble
		mu.Lock()
		defer mu.Unlock()
		if got, want := order, []string{"second", "third", "first", "fourth"}; len(got) != 4 || got[2] != want[2] {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestBeforeWait_Ends(t *testing.T) {
	t.Parallel()
	errBroken := errors.New("broken")
	untilEnded := func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}
	withItsError := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	closes := func(_ context.CancelFunc, locks *core.Client) { go func() { _ = locks.Close(context.Background()) }() }
	tests := map[string]struct {
		do   func(ctx context.Context) error
		end  func(cancel context.CancelFunc, locks *core.Client)
		want []error
	}{
		"with its error":                  {func(context.Context) error { return errBroken }, nil, []error{errBroken}},
		"with the wait time":              {untilEnded, nil, []error{core.ErrNotAcquired}},
		"with the caller":                 {untilEnded, func(cancel context.CancelFunc, _ *core.Client) { cancel() }, []error{core.ErrNotAcquired, context.Canceled}},
		"with the client":                 {untilEnded, closes, []error{core.ErrClosed}},
		"with the wait time, as an error": {withItsError, nil, []error{core.ErrNotAcquired}},
		"with the caller, as an error":    {withItsError, func(cancel context.CancelFunc, _ *core.Client) { cancel() }, []error{core.ErrNotAcquired, context.Canceled}},
		"with the client, as an error":    {withItsError, closes, []error{core.ErrClosed}},
		"with an overload, itself":        {func(context.Context) error { return core.ErrTooManyWaiters }, nil, []error{core.ErrTooManyWaiters}},
	}
	for name, tt := range tests {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks := b.Locks()
			b.Take("k", locktest.Stranger, time.Hour)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error)
			start := time.Now()
			go func() {
				p := preparation{do: tt.do}
				_, _, err := locks.Lock("k").Acquire(ctx, p.option(), core.WaitTime(10*time.Second))
				done <- err
			}()
			synctest.Wait()
			if tt.end != nil {
				tt.end(cancel, locks)
			}
			locktest.WantErr(t, <-done, tt.want...)
			locktest.WantSoon(t, "the call took %s", start, 10*time.Second+time.Millisecond)
			locktest.WantSame(t, "waiters left", locks.Stats().Waiters, 0)
		})
	}
}

// A caller that returns to a queue that has filled up is refused like any other caller.
func TestBeforeWait_RefusedByAFullQueue(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks(core.WithMaxWaitersPerKey(1))
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		full := preparation{do: func(context.Context) error { t.Error("the caller prepares although the queue is full"); return nil }}
		p := preparation{do: func(context.Context) error {
			go func() { _ = locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }) }()
			synctest.Wait()
			_, _, err := locks.Lock("k").Acquire(t.Context(), full.option())
			locktest.WantErr(t, err, core.ErrTooManyWaiters)
			return nil
		}}
		_, _, err := locks.Lock("k").Acquire(t.Context(), p.option())
		locktest.WantErr(t, err, core.ErrTooManyWaiters)
		locktest.MustRelease(t, hold)
		synctest.Wait()
	})
}
