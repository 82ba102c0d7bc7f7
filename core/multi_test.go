package core_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

func TestMultiLock_TakesAllInOneScript(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks, sent := b.counted(core.WithPrefix("p:"))
		b.warm(locks)
		fewest := 3 // one that the machine was too slow to answer is sent again
		for range 5 {
			before := sent.Hits()
			_, hold := acquired(t, t.Context(), locks.MultiLock("f", "e", "d"))
			fewest = min(fewest, sent.Hits()-before)
			released(t, hold)
		}
		if fewest > 1 {
			t.Errorf("got %d scripts or more each time", fewest)
		}
		ctx, hold := acquired(t, t.Context(), locks.MultiLock("c", "a", "b", "a"))
		if want := []string{"p:a", "p:b", "p:c"}; !slices.Equal(hold.Keys(), want) || hold.Key() != "p:a" {
			t.Errorf("keys: got %q, want %q: sorted, without duplicates", hold.Keys(), want)
		}
		for _, key := range hold.Keys() {
			b.wantHolders(key, map[string]string{hold.Field(): "1"})
			b.wantTTL(key, 25*time.Second, 30*time.Second)
		}
		for _, name := range []string{"a", "b", "c"} {
			if h, ok := core.Held(ctx, name); !ok || h != hold {
				t.Errorf("Held(%q): got %v", name, ok)
			}
		}
		released(t, hold)
		b.wantGone("p:a", "p:b", "p:c")
	})
}

func TestMultiLock_OneNameIsALock(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		_, hold := acquired(t, t.Context(), locks.MultiLock("a", "a"))
		if state, err := locks.MultiLock("a").State(t.Context()); err != nil || state.Holders[hold.Field()] != 1 {
			t.Errorf("state: got %+v, %v", state, err)
		}
		released(t, hold)
		b.wantGone("a")
	})
}

func TestMultiLock_AllOrNothing(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"no wait": 0, "one by one": 3 * time.Second} {
		parallelBeds(t, name, func(t *testing.T, b *bed) {
			b.take("b", stranger, time.Minute)
			locks := b.locks()
			_, hold, err := locks.MultiLock("a", "b", "c").Acquire(t.Context(), core.WaitTime(wait))
			wantErr(t, err, core.ErrNotAcquired)
			if hold != nil {
				t.Error("got a hold")
			}
			if e := notAcquired(t, err); e.Key != "b" || e.BlockedBy != stranger {
				t.Errorf("got %+v, want the key that was taken", e)
			}
			within(t, "everything to be given back", func() bool {
				return b.Exists(t.Context(), "a", "c").Val() == 0 && locks.Stats() == core.Stats{}
			})
		})
	}
}

func TestMultiLock_WaitTimeIsAnUpperBound(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.take("b", stranger, time.Hour)
		locks := b.locks()
		for _, wait := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 49 * time.Millisecond, 60 * time.Millisecond, 2 * time.Second} {
			start := time.Now()
			_, _, err := locks.MultiLock("a", "b", "c").Acquire(t.Context(), core.WaitTime(wait))
			wantErr(t, err, core.ErrNotAcquired)
			if e := notAcquired(t, err); e.Key != "b" || e.BlockedBy != stranger {
				t.Errorf("WaitTime(%s): got %+v", wait, e)
			}
			if took := time.Since(start); took > wait+time.Millisecond {
				t.Errorf("WaitTime(%s): returned after %s", wait, took)
			}
			pass(time.Millisecond) // the end of the wait is not held up by freeing
			b.wantGone("a", "c")
		}
	})
}

// A slow Redis has refused the keys together; the wait ends in the middle of trying
// them one by one.
func TestMultiLock_WaitOverInMidAttemptIsBusy(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		b.take("b", stranger, time.Hour)
		locks, proxy := b.behindProxy()
		proxy.DelayReply(scripts, 40*time.Millisecond)
		_, _, err := locks.MultiLock("a", "b").Acquire(t.Context(), core.WaitTime(110*time.Millisecond))
		wantErr(t, err, core.ErrNotAcquired)
		if errors.Is(err, core.ErrUnavailable) {
			t.Errorf("got %v, want busy", err)
		}
		pass(time.Second)
		b.wantGone("a")
	})
}

func TestMultiLock_WaitsInLineAndIsWoken(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		b.take("b", stranger, time.Hour)
		done := make(chan time.Time, 1)
		go func() {
			var at time.Time
			err := locks.MultiLock("a", "b", "c").Do(t.Context(), func(context.Context) error {
				at = time.Now()
				return nil
			})
			wantOK(t, err)
			done <- at
		}()
		pass(3300 * time.Millisecond)
		b.free("b")
		freed := time.Now()
		if took := (<-done).Sub(freed); took > time.Millisecond {
			t.Errorf("woken after %s", took)
		}
		b.wantGone("a", "b", "c")
	})
}

func TestMultiLock_OppositeOrdersDoNotDeadlock(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		one, two := b.locks(), b.locks()
		orders := [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "a"}, {"c", "a"}}
		ctx, cancel := context.WithTimeout(t.Context(), hangs)
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
		b.wantGone("a", "b", "c")
	})
}

func TestMultiLock_PartAlreadyOwnedIsReentered(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		obs := newRecorder()
		locks := b.locks(core.WithObserver(obs.observer()))
		ctx, outer := acquired(t, t.Context(), locks.Lock("b"))
		innerCtx, inner := acquired(t, ctx, locks.MultiLock("a", "b", "c"))
		b.wantCount(outer, "2")
		_, all := acquired(t, innerCtx, locks.MultiLock("c", "a"))
		if got := obs.outcomes(); !slices.Equal(got, []core.Outcome{core.OutcomeAcquired, core.OutcomeAcquired, core.OutcomeReentered}) {
			t.Errorf("outcomes: got %q", got)
		}
		released(t, all)
		released(t, inner)
		b.wantGone("a", "c")
		b.wantCount(outer, "1")
		released(t, outer)
		b.wantGone("b")
	})
}

func TestMultiLock_FailureBesideAnOwnedPartRollsBack(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		b.take("c", stranger, time.Minute)
		locks := b.locks()
		ctx, outer := acquired(t, t.Context(), locks.Lock("b"))
		_, _, err := locks.MultiLock("a", "b", "c").Acquire(ctx, core.WaitTime(800*time.Millisecond))
		wantErr(t, err, core.ErrNotAcquired)
		b.wantGone("a")
		b.wantCount(outer, "1")
		wantAlive(t, ctx)
		released(t, outer)
	})
}

func TestMultiLock_LostPartRollsBack(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		ctx, first := acquired(t, t.Context(), locks.Lock("a"))
		ctx, second := acquired(t, ctx, locks.Lock("b"))
		b.Del(t.Context(), "b")
		_, _, err := locks.MultiLock("a", "b", "c").Acquire(ctx, core.WaitTime(time.Second))
		wantOnly(t, err, core.ErrLost, core.ErrNotAcquired)
		eventually(t, "everything to be taken back", func() bool {
			return b.Exists(t.Context(), "c").Val() == 0 && b.HGet(t.Context(), "a", first.Field()).Val() == "1"
		})
		wantErr(t, second.Release(t.Context()), core.ErrLost)
		released(t, first)
		b.wantGone("a", "b", "c")
	})
}

func TestMultiLock_LossOfOneKeyEndsTheHold(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		ctx, hold := acquired(t, t.Context(), b.locks().MultiLock("a", "b"))
		b.take("b", stranger, time.Hour)
		pass(10 * time.Second)
		wantEnded(t, ctx, core.ErrLost)
		if hold.Remaining() != 0 {
			t.Errorf("remaining: got %s", hold.Remaining())
		}
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		b.wantGone("a")
		b.wantHolders("b", map[string]string{stranger: "1"})
	})
}

func TestMultiLock_WrongTypeRollsBack(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		b.Set(t.Context(), "b", "text", 0)
		_, _, err := b.locks().MultiLock("a", "b", "c").Acquire(t.Context(), core.WaitTime(time.Second))
		wantErr(t, err, core.ErrUnavailable)
		if errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("%v: an error is taken for taken", err)
		}
		b.wantGone("a", "c")
	})
}

func TestMultiLock_CancelledRollsBack(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		b.take("b", stranger, time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, _, err := locks.MultiLock("a", "b", "c").Acquire(ctx)
		wantErr(t, err, core.ErrNotAcquired, context.DeadlineExceeded)
		b.wantGone("a", "c")
	})
}

func TestMultiLock_LostReplyLeavesNothing(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks, proxy := b.behindProxy()
		released(t, second(acquired(t, t.Context(), locks.MultiLock("a", "b", "c")))) // the script is known
		lost := proxy.DropReply(faultproxy.Once(faultproxy.All(scripts, faultproxy.Containing("c"))))
		_, hold := acquired(t, t.Context(), locks.MultiLock("a", "b", "c"), core.WaitTime(10*time.Second))
		if lost.Hits() != 1 {
			t.Errorf("%d replies lost", lost.Hits())
		}
		for _, key := range hold.Keys() {
			eventually(t, "one holder", func() bool { return len(b.HKeys(t.Context(), key).Val()) == 1 })
		}
		released(t, hold)
		eventually(t, "nothing to be left", func() bool { return b.Exists(t.Context(), "a", "b", "c").Val() == 0 })
	})
}

func second[A, B any](_ A, b B) B { return b }

func TestMultiLock_DoesNotOvertakeALineForEver(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		ctx, cancel := context.WithCancel(t.Context())
		done := busyCallers(ctx, locks, "b", 8)
		waiters(t, locks, 7)
		for i := range 5 {
			err := locks.MultiLock("a", "b", "c"+strconv.Itoa(i)).Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(10*time.Second))
			if err != nil {
				t.Errorf("round %d: %v", i, err)
			}
		}
		cancel()
		<-done
		eventually(t, "what the cancelled left to be gone", func() bool { return b.Exists(t.Context(), "a", "b").Val() == 0 })
	})
}
