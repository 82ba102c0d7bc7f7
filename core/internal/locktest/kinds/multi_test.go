package kinds_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

func TestMultiLock_TakesAllInOneScript(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted(core.WithPrefix("p:"))
		b.Warm(locks)
		fewest := 3 // a command is sent again if the machine is too slow to answer
		for range 5 {
			before := sent.Hits()
			_, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock("f", "e", "d"))
			fewest = min(fewest, sent.Hits()-before)
			locktest.MustRelease(t, hold)
		}
		if fewest > 1 {
			t.Errorf("got at least %d scripts each time, want 1", fewest)
		}
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock("c", "a", "b", "a"))
		if want := []string{"p:a", "p:b", "p:c"}; !slices.Equal(hold.Keys(), want) || hold.Key() != "p:a" {
			t.Errorf("keys: got %q, want %q: sorted, without duplicates", hold.Keys(), want)
		}
		for _, key := range hold.Keys() {
			b.WantHolders(key, map[string]string{hold.Field(): "1"})
			b.WantTTL(key, 25*time.Second, 30*time.Second)
		}
		for _, name := range []string{"a", "b", "c"} {
			if h, ok := core.Held(ctx, name); !ok || h != hold {
				t.Errorf("Held(%q): got %v, want the hold", name, ok)
			}
		}
		locktest.MustRelease(t, hold)
		b.WantGone("p:a", "p:b", "p:c")
	})
}

func TestMultiLock_OneNameIsALock(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock("a", "a"))
		if state, err := locks.MultiLock("a").State(t.Context()); err != nil || state.Holders[hold.Field()] != 1 {
			t.Errorf("state: got %+v, %v", state, err)
		}
		locktest.MustRelease(t, hold)
		b.WantGone("a")
	})
}

func TestMultiLock_AllOrNothing(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"no wait": 0, "one by one": 3 * time.Second} {
		locktest.ParallelEachRedis(t, name, func(t *testing.T, b *locktest.Redis) {
			b.Take("b", locktest.Stranger, time.Minute)
			locks := b.Locks()
			_, hold, err := locks.MultiLock("a", "b", "c").Acquire(t.Context(), core.WaitTime(wait))
			locktest.WantErr(t, err, core.ErrNotAcquired)
			if hold != nil {
				t.Error("got a hold with an error")
			}
			if e := locktest.NotAcquired(t, err); e.Key != "b" || e.BlockedBy != locktest.Stranger {
				t.Errorf("got %+v, want the key that was taken", e)
			}
			locktest.WithinASecond(t, "everything to be given back", func() bool {
				return b.Exists(t.Context(), "a", "c").Val() == 0 && locks.Stats() == core.Stats{}
			})
		})
	}
}

// Redis answers slowly, so the wait ends during an attempt. The error is only ErrNotAcquired, because an earlier
// attempt found a key taken.
func TestMultiLock_WaitEndsDuringAnAttempt(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("b", locktest.Stranger, time.Hour)
		locks, proxy := b.BehindAProxy()
		proxy.DelayReply(locktest.Scripts, 40*time.Millisecond)
		_, _, err := locks.MultiLock("a", "b").Acquire(t.Context(), core.WaitTime(110*time.Millisecond))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		if errors.Is(err, core.ErrUnavailable) {
			t.Errorf("got %v, want only ErrNotAcquired", err)
		}
		locktest.Pass(time.Second)
		b.WantGone("a")
	})
}

func TestMultiLock_WaitsInTheQueue(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		b.Take("b", locktest.Stranger, time.Hour)
		done := make(chan time.Time, 1)
		go func() {
			var at time.Time
			err := locks.MultiLock("a", "b", "c").Do(t.Context(), func(context.Context) error {
				at = time.Now()
				return nil
			})
			locktest.WantOK(t, err)
			done <- at
		}()
		locktest.Pass(3300 * time.Millisecond)
		b.Free("b")
		freed := time.Now()
		if took := (<-done).Sub(freed); took > time.Millisecond {
			t.Errorf("woken after %s, want at most 1ms", took)
		}
		b.WantGone("a", "b", "c")
	})
}

func TestMultiLock_OppositeOrdersDoNotDeadlock(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		one, two := b.Locks(), b.Locks()
		orders := [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "a"}, {"c", "a"}}
		ctx, cancel := context.WithTimeout(t.Context(), locktest.HangTimeout)
		defer cancel()
		var group sync.WaitGroup
		held := make(map[string]bool)
		var mu sync.Mutex
		mark := func(names []string, on bool) {
			mu.Lock()
			defer mu.Unlock()
			for _, name := range names {
				if held[name] == on {
					t.Errorf("%s: two holders", name)
				}
				held[name] = on
			}
		}
		for _, locks := range []*core.Client{one, two} {
			for _, names := range orders {
				group.Go(func() {
					for range 10 {
						err := locks.MultiLock(names...).Do(ctx, func(context.Context) error {
							mark(names, true)
							mark(names, false)
							return nil
						})
						if err != nil {
							t.Errorf("%v: %v", names, err)
						}
					}
				})
			}
		}
		group.Wait()
		b.WantGone("a", "b", "c")
	})
}

func TestMultiLock_ReentersAHeldKey(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		locks := b.Locks(core.WithObserver(obs.Observer()))
		ctx, outer := locktest.MustAcquire(t, t.Context(), locks.Lock("b"))
		innerCtx, inner := locktest.MustAcquire(t, ctx, locks.MultiLock("a", "b", "c"))
		b.WantCount(outer, "2")
		_, all := locktest.MustAcquire(t, innerCtx, locks.MultiLock("c", "a"))
		if got := obs.Outcomes(); !slices.Equal(got, []core.Outcome{core.OutcomeAcquired, core.OutcomeAcquired, core.OutcomeReentered}) {
			t.Errorf("outcomes: got %q", got)
		}
		locktest.MustRelease(t, all)
		locktest.MustRelease(t, inner)
		b.WantGone("a", "c")
		b.WantCount(outer, "1")
		locktest.MustRelease(t, outer)
		b.WantGone("b")
	})
}

// A MultiLock that cannot get one of its keys holds none of the others, and does not change a key that its context
// already holds.
func TestMultiLock_RollsBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		block func(t *testing.T, b *locktest.Redis) // keeps "c" from being acquired
		limit time.Duration                         // of the context; 0: none
		wait  []core.AcquireOption
		want  []error
		never []error
	}{
		"a key is taken": {
			block: func(_ *testing.T, b *locktest.Redis) { b.Take("c", locktest.Stranger, time.Minute) },
			wait:  []core.AcquireOption{core.WaitTime(locktest.Unhurried(800 * time.Millisecond))},
			want:  []error{core.ErrNotAcquired},
			never: []error{core.ErrUnavailable},
		},
		"a key has another type": {
			block: func(t *testing.T, b *locktest.Redis) {
				t.Helper()
				locktest.Must(t, b.Set(t.Context(), "c", "text", 0).Err())
			},
			wait:  []core.AcquireOption{core.WaitTime(time.Second)},
			want:  []error{core.ErrUnavailable},
			never: []error{core.ErrNotAcquired},
		},
		"the context ends": {
			block: func(_ *testing.T, b *locktest.Redis) { b.Take("c", locktest.Stranger, time.Hour) },
			limit: 800 * time.Millisecond,
			want:  []error{core.ErrNotAcquired, context.DeadlineExceeded},
		},
	} {
		locktest.ParallelEachRedis(t, name, func(t *testing.T, b *locktest.Redis) {
			c.block(t, b)
			locks := b.Locks()
			held, outer := locktest.MustAcquire(t, t.Context(), locks.Lock("b"))
			for what, owner := range map[string]context.Context{"beside an owned part": held, "alone": t.Context()} {
				ctx, cancel := owner, context.CancelFunc(func() {})
				if c.limit > 0 {
					ctx, cancel = context.WithTimeout(owner, c.limit)
				}
				keys := map[string][]string{"beside an owned part": {"a", "b", "c"}, "alone": {"a", "c", "d"}}[what]
				_, _, err := locks.MultiLock(keys...).Acquire(ctx, c.wait...)
				cancel()
				locktest.WantErr(t, err, c.want...)
				for _, other := range c.never {
					if errors.Is(err, other) {
						t.Errorf("%s: %v matches %q too", what, err, other)
					}
				}
				b.WantGone("a", "d")
				b.WantCount(outer, "1")
				locktest.WantAlive(t, held)
			}
			locktest.MustRelease(t, outer)
		})
	}
}

func TestMultiLock_LostPartRollsBack(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, first := locktest.MustAcquire(t, t.Context(), locks.Lock("a"))
		ctx, second := locktest.MustAcquire(t, ctx, locks.Lock("b"))
		b.Del(t.Context(), "b")
		_, _, err := locks.MultiLock("a", "b", "c").Acquire(ctx, core.WaitTime(time.Second))
		locktest.WantOnly(t, err, core.ErrLost, core.ErrNotAcquired)
		locktest.Eventually(t, "everything to be taken back", func() bool {
			return b.Exists(t.Context(), "c").Val() == 0 && b.HGet(t.Context(), "a", first.Field()).Val() == "1"
		})
		locktest.WantErr(t, second.Release(t.Context()), core.ErrLost)
		locktest.MustRelease(t, first)
		b.WantGone("a", "b", "c")
	})
}

func TestMultiLock_LossOfOneKeyEndsTheHold(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks().MultiLock("a", "b"))
		b.Take("b", locktest.Stranger, time.Hour)
		locktest.Pass(10 * time.Second)
		locktest.WantEnded(t, ctx, core.ErrLost)
		if hold.Remaining() != 0 {
			t.Errorf("remaining: got %s, want 0", hold.Remaining())
		}
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		b.WantGone("a")
		b.WantHolders("b", map[string]string{locktest.Stranger: "1"})
	})
}

func second[A, B any](_ A, b B) B { return b }

func TestMultiLock_GetsItsTurnBesideBusyCallers(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, cancel := context.WithCancel(t.Context())
		done := locktest.KeepBusy(ctx, locks, "b", 8)
		locktest.AwaitWaiters(t, locks, 7)
		for i := range 5 {
			err := locks.MultiLock("a", "b", "c"+strconv.Itoa(i)).Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(10*time.Second))
			if err != nil {
				t.Errorf("round %d: %v", i, err)
			}
		}
		cancel()
		<-done
		locktest.Eventually(t, "the keys of the cancelled callers to be gone", func() bool { return b.Exists(t.Context(), "a", "b").Val() == 0 })
	})
}

// slowEnd is an observer that delays the start of a hold.
type slowEnd time.Duration

func (d slowEnd) observer() *core.Observer { return &core.Observer{AcquireEnd: d.observeAcquireEnd} }

func (d slowEnd) observeAcquireEnd(context.Context, core.AcquireResult) {
	<-time.NewTimer(time.Duration(d)).C
}

// The lease expires before the hold starts. The context of the hold ends at its start.
func TestHold_LostBeforeItBegins(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"k"}, {"a", "b"}} {
		locktest.ParallelBubble(t, fmt.Sprint(names), func(t *testing.T, b *locktest.Redis) {
			obs := &locktest.Recorder{}
			locks := b.Locks(core.WithObserver(slowEnd(100*time.Millisecond).observer(), obs.Observer()))
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock(names...), core.LeaseTime(50*time.Millisecond))
			select {
			case <-ctx.Done():
			default:
				t.Error("the context has not ended")
			}
			locktest.WantEnded(t, ctx, core.ErrLost)
			if hold.Remaining() != 0 {
				t.Errorf("remaining: got %s, want 0", hold.Remaining())
			}
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
			locktest.WantSame(t, "losses", obs.Count("loss"), 1)
		})
	}
}

// A refusal that arrives at the end of the wait time ends the wait.
func TestMultiLock_RefusalAtTheEndOfTheWait(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	locks := b.Locks()
	b.Warm(locks)
	b.Take("b", locktest.Stranger, time.Hour)
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

// If Redis falls silent while a MultiLock has keys to give back, its caller still returns by the end of the wait
// time, of its context, or of the backend timeout.
func TestMultiLock_RollBackEndsInTime(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy(core.WithBackendTimeout(time.Second))
		b.Take("b", locktest.Stranger, time.Hour)
		for name, acquire := range map[string]func() locktest.Outcome{
			"wait time": func() locktest.Outcome {
				return <-locktest.GoAcquire(t.Context(), locks.MultiLock("a", "b"), core.WaitTime(400*time.Millisecond))
			},
			"context": func() locktest.Outcome {
				ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
				defer cancel()
				return <-locktest.GoAcquire(ctx, locks.MultiLock("a", "b"))
			},
		} {
			time.AfterFunc(200*time.Millisecond, func() { proxy.BlackHole(true) }) // "a" is acquired, and the caller waits for "b"
			o := acquire()
			if o.Err == nil || o.Took > 500*time.Millisecond {
				t.Errorf("%s: got %v after %s", name, o.Err, o.Took)
			}
			proxy.BlackHole(false)
			locktest.Pass(3 * time.Second)
			b.WantGone("a")
		}
	})
}

// If the re-entry of one key fails, the client undoes the re-entries of the other keys. If the outer hold of another
// key was released before, undoing its re-entry frees the key.
func TestMultiLock_UndoesItsReentries(t *testing.T) {
	t.Parallel()
	for name, outerReleased := range map[string]bool{"outer held": false, "outer released": true} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			ctx, first := locktest.MustAcquire(t, t.Context(), locks.Lock("a"))
			ctx, second := locktest.MustAcquire(t, ctx, locks.Lock("b"))
			lost := proxy.DropRequest(locktest.ScriptOn(t, "sethold", "b"))
			got := locktest.GoAcquire(context.WithoutCancel(ctx), locks.MultiLock("a", "b"), core.WaitTime(100*time.Millisecond))
			<-lost.Hit()
			b.WantCount(first, "2")
			if outerReleased {
				locktest.MustRelease(t, first)
				b.WantCount(first, "1")
			}
			locktest.WantErr(t, (<-got).Err, core.ErrUnavailable)
			locktest.Pass(100 * time.Millisecond)
			if outerReleased {
				b.WantGone("a")
			} else {
				b.WantCount(first, "1")
				locktest.MustRelease(t, first)
			}
			lost.Remove()
			locktest.Pass(time.Second)
			b.WantCount(second, "1")
			locktest.MustRelease(t, second)
			b.WantGone("a", "b")
		})
	}
}

// A MultiLock that re-enters its first key reports the fencing token of the hold that it re-enters.
func TestMultiLock_TokenOfAReenteredKey(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		var reported int64
		locks := b.Locks(core.WithObserver(&core.Observer{AcquireEnd: func(_ context.Context, r core.AcquireResult) { reported = r.Token }}))
		ctx, outer := locktest.MustAcquire(t, t.Context(), locks.Lock("a"), core.WithToken())
		_, both := locktest.MustAcquire(t, ctx, locks.MultiLock("a", "b"))
		if reported == 0 || reported != outer.Token() || both.Token() != outer.Token() {
			t.Errorf("reported %d, hold %d, want %d", reported, both.Token(), outer.Token())
		}
		locktest.MustRelease(t, both)
		locktest.MustRelease(t, outer)
	})
}
