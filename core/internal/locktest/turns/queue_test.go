package turns_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// queue starts n callers. Each starts when the previous caller waits. When all have released the lock, queue sends the
// order in which they got it.
func queue(t *testing.T, locks *core.Client, name string, n int) <-chan []int {
	t.Helper()
	var group sync.WaitGroup
	turns := make(chan int, n)
	before := locks.Stats().Waiters
	for i := range n {
		group.Go(func() {
			err := locks.Lock(name).Do(t.Context(), func(context.Context) error {
				turns <- i
				return nil
			})
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		})
		locktest.AwaitWaiters(t, locks, before+i+1)
	}
	order := make(chan []int, 1)
	go func() {
		group.Wait()
		close(turns)
		var all []int
		for i := range turns {
			all = append(all, i)
		}
		order <- all
	}()
	return order
}

func wantOrder(t *testing.T, order <-chan []int, n int) {
	t.Helper()
	if got := <-order; len(got) != n || !slices.IsSorted(got) {
		t.Errorf("%d callers: got the order %v, want the order of arrival", n, got)
	}
}

func TestQueue_FirstComeFirstServed(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		order := queue(t, locks, "k", 50)
		locktest.MustRelease(t, hold)
		wantOrder(t, order, 50)
		b.WantGone("k")
	})
}

func TestQueue_BehindAForeignHolder(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		b.Take("k", locktest.Stranger, time.Minute)
		order := queue(t, locks, "k", 10)
		b.AwaitListeners("k", 1)
		b.Free("k")
		wantOrder(t, order, 10)
	})
}

// A hundred waiters cost no more than one waiter, because only the head of the queue sends commands.
func TestQueue_OneContenderPerProcessAndKey(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Hour)
		locks, proxy := b.BehindAProxy()
		sent, subscribed := proxy.Watch(locktest.Scripts), proxy.Watch(faultproxy.Command("subscribe"))
		ctx, cancel := context.WithCancel(t.Context())
		done := locktest.KeepBusy(ctx, locks, "k", 100)
		locktest.Pass(time.Minute)
		if got := sent.Hits(); got < 60 || got > 90 {
			t.Errorf("a minute of 100 waiters: got %d scripts, want the poll of one", got)
		}
		locktest.WantSame(t, "subscriptions", subscribed.Hits(), 1)
		cancel()
		<-done
	})
}

func TestQueue_CancelledWaiter(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		for range 20 {
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() {
				_, h, err := locks.Lock("k").Acquire(ctx)
				if h != nil {
					_ = h.Release(context.Background())
				}
				gone <- err
			}()
			locktest.AwaitWaiters(t, locks, 1)
			order := queue(t, locks, "k", 1)
			cancel()
			locktest.WantErr(t, <-gone, core.ErrNotAcquired, context.Canceled)
			locktest.AwaitWaiters(t, locks, 1)
			locktest.MustRelease(t, hold)
			wantOrder(t, order, 1)
			b.WantGone("k")
		}
		locktest.WantSame(t, "stats", locks.Stats(), core.Stats{})
	})
}

// If a waiter leaves at the instant of its hand-off, either it has the lock or another caller gets it.
func TestQueue_ChosenWaiterLeaves(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		for range 100 {
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			ctx, cancel := context.WithCancel(t.Context())
			first := make(chan error, 1)
			go func() {
				_, h, err := locks.Lock("k").Acquire(ctx)
				if err == nil {
					err = h.Release(context.Background())
				}
				first <- err
			}()
			locktest.AwaitWaiters(t, locks, 1)
			order := queue(t, locks, "k", 1)
			go cancel()
			locktest.MustRelease(t, hold)
			if err := <-first; err != nil {
				locktest.WantErr(t, err, core.ErrNotAcquired)
			}
			wantOrder(t, order, 1)
			b.WantGone("k")
		}
	})
}

// The waiter leaves while a fault holds the hand-off.
func TestQueue_ChosenWaiterLeavesDuringTheHandOff(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]int{"last in line": 0, "others wait": 2} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			ctx, cancel := context.WithCancel(t.Context())
			first := make(chan error, 1)
			go func() {
				_, _, err := locks.Lock("k").Acquire(ctx)
				first <- err
			}()
			locktest.Pass(time.Second)
			order := queue(t, locks, "k", others)
			proxy.DelayReply(faultproxy.Once(locktest.Scripts), 100*time.Millisecond)
			done := locktest.GoRelease(hold)
			locktest.Pass(50 * time.Millisecond)
			cancel()
			locktest.WantErr(t, <-first, core.ErrNotAcquired, context.Canceled)
			locktest.WantOK(t, <-done)
			wantOrder(t, order, others)
			locktest.Pass(time.Millisecond)
			b.WantGone("k")
			locktest.WantSame(t, "stats", locks.Stats(), core.Stats{})
		})
	}
}

// When the head leaves, the new head attempts at once, because the old head may have missed a message or its next
// poll.
func TestQueue_NewHeadAttemptsAtOnce(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		b.Take("k", locktest.Stranger, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		done := locktest.KeepBusy(ctx, locks, "k", 1)
		locktest.Pass(100 * time.Millisecond)
		got := locktest.AcquiredAt(t, locks, "k")
		locktest.Pass(100 * time.Millisecond)
		b.Del(t.Context(), "k")
		start := time.Now()
		cancel()
		<-done
		if took := (<-got).Sub(start); took != 0 {
			t.Errorf("acquired after %s, want at once", took)
		}
	})
}

// After 16 hand-offs the lock is freed with a message, so that others get a turn.
func TestHandOff_RunIsBoundedByCount(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		sub := b.SubscribeTo(t, locktest.ChannelOf("k"))
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		order := queue(t, locks, "k", 60)
		locktest.MustRelease(t, hold)
		wantOrder(t, order, 60)
		b.Publish(t.Context(), locktest.ChannelOf("k"), "end")
		sub.Want("0", "0", "0", "0", "0", "end") // 61 turns: the first lasts too long for a run, then runs have 17, 17, 17 and 9
	})
}

func TestHandOff_RunIsBoundedByTime(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		locks := b.Locks(core.WithObserver(obs.Observer()))
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				err := locks.Lock("k").Do(t.Context(), func(context.Context) error {
					<-time.NewTimer(20 * time.Millisecond).C
					return nil
				})
				locktest.WantOK(t, err)
			})
		}
		group.Wait()
		run, longest := 0, 0
		for _, e := range obs.Events() {
			if r, ok := e.Data.(core.HoldResult); ok {
				if run++; !r.HandedOff {
					longest, run = max(longest, run), 0
				}
			}
		}
		if longest > 4 {
			t.Errorf("the lock stayed for %d turns of 20ms, want at most 4", longest)
		}
	})
}

// A caller that releases a lost lock does not hand it off. The next waiter attempts.
func TestHandOff_OfALostLock(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		order := queue(t, locks, "k", 1)
		b.Del(t.Context(), "k")
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		wantOrder(t, order, 1)

		_, hold = locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		order = queue(t, locks, "k", 1)
		b.Take("k", locktest.Stranger, time.Minute)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		b.WantHolders("k", map[string]string{locktest.Stranger: "1"})
		b.Del(t.Context(), "k")
		wantOrder(t, order, 1)
	})
}

func TestHandOff_RefusedByRedis(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	locks := b.Locks()
	b.Warm(locks)
	_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
	next := make(chan error, 1)
	go func() {
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.LeaseTime(time.Minute))
		next <- err
	}()
	locktest.AwaitWaiters(t, locks, 1)
	b.ConfigSet(t.Context(), "maxmemory", "1") // Redis refuses HSET but not DEL
	locktest.WantOK(t, hold.Release(t.Context()))
	b.WantGone("k")
	locktest.WantErr(t, <-next, core.ErrUnavailable) // it attempts, and fails
	b.ConfigSet(t.Context(), "maxmemory", "0")
}

// Callers of one client compete with callers of another client. Without an end of runs and a pause after them, one
// client got 59 of 2,491 turns.
func TestHandOff_TwoProcessesShareTheTurns(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		all, _ := contest{processes: ours(16, 16), hold: 100 * time.Microsecond, lasts: time.Second}.play(t, b)
		one, two := all[0].all(), all[1].all()
		t.Logf("%.0f and %.0f turns", one, two)
		if share := min(one, two) / (one + two); share < 0.4 {
			t.Errorf("%.0f and %.0f turns, want at least 40 %% for each client", one, two)
		}
	})
}

// A caller in another process needs a millisecond longer than callers of this process. Without a pause after a run it
// would find the lock taken every time.
func TestHandOff_PauseLetsASlowerProcessIn(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		near := b.Locks()
		far, proxy := b.BehindAProxy()
		proxy.DelayRequest(locktest.Scripts, time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for range 32 {
			group.Go(func() {
				for ctx.Err() == nil {
					_ = near.Lock("k").Do(ctx, func(context.Context) error {
						<-time.NewTimer(100 * time.Microsecond).C
						return nil
					})
				}
			})
		}
		for range 10 {
			start := time.Now()
			err := far.Lock("k").Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(time.Second))
			if took := time.Since(start); err != nil || took > 20*time.Millisecond {
				t.Errorf("the caller had its turn after %s, want at most 20ms: %v", took, err)
			}
		}
		cancel()
		group.Wait()
	})
}

// One caller against a busy process.
func TestHandOff_LoneCallerBesideABusyProcess(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		busy, near := b.BehindAProxy(locktest.Patient)
		lone, far := b.BehindAProxy(locktest.Patient)
		locktest.Wobble(near, 0)
		locktest.Wobble(far, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		turns := locktest.TakeTurns(t, ctx, busy.Lock("k"), 32, 100*time.Microsecond)
		waits := make([]int64, 30)
		for i := range waits {
			before := turns.Taken.Load()
			locktest.Must(t, lone.Lock("k").Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(time.Second)))
			waits[i] = turns.Taken.Load() - before
		}
		slices.Sort(waits)
		t.Logf("turns of the others before the caller: %v", waits)
		if median := waits[len(waits)/2]; median > 34 { // two runs
			t.Errorf("the median of the turns of the others before it is %d, want at most 34: %v", median, waits)
		}
	})
}

func TestWait_EndsExactlyWithTheLease(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, 1234*time.Millisecond)
		start := time.Now()
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"))
		if took := time.Since(start); took < 1234*time.Millisecond || took > 1250*time.Millisecond {
			t.Errorf("acquired after %s, want 1234ms to 1250ms", took)
		}
		locktest.MustRelease(t, hold)
	})
}

func TestWait_WakingKeepsTheRemainingWait(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Hour)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() { // messages without meaning
			defer close(stopped)
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					b.Publish(context.Background(), locktest.ChannelOf("k"), "0")
				case <-stop:
					return
				}
			}
		}()
		start := time.Now()
		_, _, err := b.Locks().Lock("k").Acquire(t.Context(), core.WaitTime(5*time.Second))
		close(stop)
		<-stopped
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.WantSame(t, "returned after", time.Since(start), 5*time.Second)
	})
}

func TestWait_MessageWakesAtOnce(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		b.Take("k", locktest.Stranger, time.Hour)
		got := locktest.AcquiredAt(t, locks, "k")
		locktest.Pass(3210 * time.Millisecond)
		b.Free("k")
		freed := time.Now()
		if took := (<-got).Sub(freed); took != 0 {
			t.Errorf("woken after %s, want at once", took)
		}
	})
}

// The lock is freed between the failed attempt and the subscription.
func TestWait_UnlockBeforeTheSubscriptionIsSeen(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		b.Take("k", locktest.Stranger, time.Hour)
		proxy.DelayRequest(faultproxy.Command("subscribe"), 100*time.Millisecond)
		start := time.Now()
		time.AfterFunc(50*time.Millisecond, func() { b.Free("k") })
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		locktest.WantSoon(t, "acquired after %s", start, 110*time.Millisecond)
		locktest.MustRelease(t, hold)
	})
}

func TestWait_PollsAreJittered(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Hour)
		locks, proxy := b.BehindAProxy()
		var at []time.Time
		proxy.Watch(faultproxy.All(locktest.Scripts, func([]string) bool { at = append(at, time.Now()); return true }))
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(30*time.Second))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		gaps := make(map[time.Duration]bool)
		for i := 2; i < len(at)-1; i++ {
			gap := at[i+1].Sub(at[i])
			gaps[gap] = true
			if gap > time.Second || gap < 700*time.Millisecond {
				t.Errorf("gap of %s between two polls, want 700ms to 1s", gap)
			}
		}
		if len(gaps) < 10 {
			t.Errorf("%d different gaps, want at least 10", len(gaps))
		}
	})
}

func TestWait_NoSubscriptionIsLeft(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		b.Take("k", locktest.Stranger, time.Hour)
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(time.Second))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.WantSame(t, "subscribers at the end of the wait", b.PubSubNumSub(t.Context(), locktest.ChannelOf("k")).Val()[locktest.ChannelOf("k")], 1)
		locktest.Pass(10 * time.Second)
		locktest.WantSame(t, "subscribers left", b.PubSubNumSub(t.Context(), locktest.ChannelOf("k")).Val()[locktest.ChannelOf("k")], 0)
	})
}

// Callers of one client that compete all the time get nearly the same number of turns.
func TestQueue_IsFairAmongLocalCallers(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		all, _ := contest{processes: ours(16), hold: time.Millisecond, lasts: time.Second}.play(t, b)
		turns := all[0].turns
		t.Logf("%v", turns)
		if j := jain(turns); j < 0.99 {
			t.Errorf("Jain's index is %.3f, want at least 0.99: %v", j, turns)
		}
	})
}

// Redis falls silent while callers wait for one key. None of them gets ErrNotAcquired, and they do not wait for the
// backend timeout one after the other.
func TestQueue_OutageIsNotARefusal(t *testing.T) {
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
		time.AfterFunc(2500*time.Millisecond, func() { proxy.BlackHole(false) }) // long enough, even if the test fails
		for _, g := range got {
			o := <-g
			locktest.WantErr(t, o.Err, core.ErrUnavailable)
			ends = append(ends, o.Took)
		}
		first, last := slices.Min(ends), slices.Max(ends)
		if first > 3*time.Second || last-first > 50*time.Millisecond {
			t.Errorf("errors after %s, want the first within the backend timeout and the others at once", ends)
		}
	})
}

// The wait ends between two polls, after a caller of another key has found Redis silent.
func TestQueue_WaitEndsDuringAnOutage(t *testing.T) {
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
			t.Errorf("returned after %s, want at most 500ms", o.Took)
		}
		proxy.BlackHole(false)
	})
}

// The first caller of a queue gets no answer, so the callers behind it do not know whether the lock is taken. They get
// ErrUnavailable, not ErrNotAcquired, even if their wait ends together with the wait of the first caller.
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

// A waiter finds the lock taken by an abandoned attempt of the same client. As soon as the client has cleared the
// attempt up, the waiter is woken, even without a subscription.
func TestQueue_AbandonedAttemptIsClearedUp(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		proxy.HoldRequest(faultproxy.Command("subscribe")) // no message wakes a waiter
		proxy.HoldReply(faultproxy.Once(locktest.ScriptOn(t, "acquire", "k")))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		_, _, err := locks.Lock("k").Acquire(ctx, core.LeaseTime(time.Hour))
		locktest.WantErr(t, err, context.DeadlineExceeded)
		proxy.DelayRequest(faultproxy.Once(locktest.ScriptOn(t, "release", "k")), 40*time.Millisecond)
		refused := proxy.Watch(locktest.ScriptOn(t, "acquire", "k"))
		o := <-locktest.GoAcquire(t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
		locktest.Must(t, o.Err)
		if refused.Hits() < 2 {
			t.Fatal("the waiter has not found the lock taken: nothing is tested")
		}
		if o.Took > 100*time.Millisecond {
			t.Errorf("woken after %s, want at most 100ms", o.Took)
		}
		locktest.MustRelease(t, o.Hold)
	})
}

// Redis executes a hand-off to a waiter that has left. When the reply arrives, the short lease of the waiter has
// expired. The release succeeds nevertheless.
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
