package turns_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/thorough"
)

// The caller that has waited longest is next, in any process. All callers get the same number of turns, and waits are
// as long as the queue. Now and then processes leave the lock free for 60 ms, for waiters without messages.
func TestTurns_GoToTheProcessThatHasWaitedLongest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		processes []rival
		hold      time.Duration
		sent      float64 // scripts per turn, at most
	}{
		"4 x 8":         {ours(8, 8, 8, 8), time.Millisecond, 1.5},
		"4 x 2":         {ours(2, 2, 2, 2), time.Millisecond, 1.5},
		"4 x 1":         {ours(1, 1, 1, 1), time.Millisecond, 2.5},
		"2 x 16":        {ours(16, 16), time.Millisecond, 1.5},
		"4 x 2, 0.1 ms": {ours(2, 2, 2, 2), 100 * time.Microsecond, 2},
		"4 x 2, 10 ms":  {ours(2, 2, 2, 2), 10 * time.Millisecond, 5.5},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			lasts := max(time.Duration(thorough.Or(2, 1))*time.Second, 200*c.hold)
			all, sent := contest{processes: c.processes, hold: c.hold, lasts: lasts}.play(t, b)
			var turns []float64
			var waits []time.Duration
			var sum float64
			for _, o := range all {
				turns, waits, sum = append(turns, o.turns...), append(waits, o.waits...), sum+o.all()
			}
			queue := time.Duration(len(turns)) * max(c.hold, 400*time.Microsecond)
			t.Logf("%.0f turns, Jain %.3f, waits: 95 %% up to %s, 99 %% up to %s, all up to %s; %.2f scripts each",
				sum, jain(turns), locktest.Percentile(waits, 95), locktest.Percentile(waits, 99), locktest.Percentile(waits, 100), sent/sum)
			if j := jain(turns); j < 0.97 {
				t.Errorf("Jain's index is %.3f, want at least 0.97: %v", j, turns)
			}
			runs := 5 * time.Millisecond * time.Duration(len(all)) // the time for which the other processes may have the lock in turn
			if p := locktest.Percentile(waits, 95); p > max(2*queue, runs)+5*time.Millisecond {
				t.Errorf("5 %% of the waits are longer than %s, with a queue of %s", p, queue)
			}
			if sent > c.sent*sum {
				t.Errorf("%.2f scripts for each turn, want at most %.2f", sent/sum, c.sent)
			}
		})
	}
}

// A lone caller does not wait for all callers of a busy process.
func TestTurns_LoneCallerBesideABusyProcess(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		all, _ := contest{processes: ours(1, 100), hold: time.Millisecond, lasts: 3 * time.Second}.play(t, b)
		if p := locktest.Percentile(all[0].waits, 99); p > 60*time.Millisecond {
			t.Errorf("the lone caller waits for up to %s, want at most 60ms", p)
		}
		if all[0].all() < 200 {
			t.Errorf("the lone caller had %.0f turns in three seconds, want at least 200", all[0].all())
		}
	})
}

// Redisson's threads do not follow the rule of turns and need 1.5 ms to wake up. They still get their share, beside a
// busy process and beside a lone caller that returns at once.
func TestTurns_RedissonHasItsShare(t *testing.T) {
	t.Parallel()
	threads := rival{callers: 8, java: true}
	barging := rival{callers: 8, java: true, barges: true}
	for name, c := range map[string]struct {
		java  rival
		ours  []rival
		hold  time.Duration
		share float64
	}{
		"beside 8":              {threads, ours(8), time.Millisecond, 0.35},
		"beside 1":              {threads, ours(1), time.Millisecond, 0.35},
		"beside 4 + 4":          {threads, ours(4, 4), time.Millisecond, 0.25},
		"beside 8, 0.1 ms":      {threads, ours(8), 100 * time.Microsecond, 0.35},
		"beside 1, 10 ms":       {threads, ours(1), 10 * time.Millisecond, 0.35},
		"beside 8, 10 ms":       {threads, ours(8), 10 * time.Millisecond, 0.35},
		"in a hurry, beside 8":  {barging, ours(8), time.Millisecond, 0.35},
		"one thread, beside 8":  {rival{callers: 1, java: true}, ours(8), time.Millisecond, 0.35},
		"one thread, beside 1":  {rival{callers: 1, java: true}, ours(1), time.Millisecond, 0.35},
		"in a hurry, beside 1":  {barging, ours(1), time.Millisecond, 0.35},
		"beside 8, hold 1.5 ms": {threads, ours(8), 1500 * time.Microsecond, 0.35},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			all, _ := contest{
				processes: append([]rival{c.java}, c.ours...), hold: c.hold, lasts: max(time.Second, 200*c.hold),
			}.play(t, b)
			var sum float64
			for _, o := range all {
				sum += o.all()
			}
			share, longest := all[0].all()/sum, locktest.Percentile(all[0].waits, 100)
			t.Logf("%.0f %% of %.0f turns, waits of up to %s", 100*share, sum, longest)
			if share < c.share || share > 0.75 {
				t.Errorf("Redisson has %.0f %% of %.0f turns, want %.0f to 75 %%", 100*share, sum, 100*c.share)
			}
			// Threads that attempt first overtake each other, and their waits are longer.
			if !c.java.barges && longest > 300*time.Millisecond {
				t.Errorf("Redisson waits for up to %s, want at most 300ms", longest)
			}
		})
	}
}

// A client that listens need not wait for the lock. Beside idle subscriptions a process goes on nearly as if it were
// alone, and notices at once when another client wants the lock again.
func TestTurns_IdleListenersCostLittle(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		idle := b.SubscribeTo(t, locktest.ChannelOf("k"))
		defer idle.Close()
		locks := b.Locks()
		ctx, cancel := context.WithCancel(t.Context())
		turns, ended := holders(ctx, locks, 1, time.Millisecond)
		locktest.Pass(3 * time.Second)
		if n := turns.Load(); n < 2600 {
			t.Errorf("%d turns of 1 ms in three seconds, want at least 2600", n)
		}
		start := time.Now()
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"), core.WaitTime(10*time.Second))
		locktest.WantSoon(t, "a turn after %s", start, 250*time.Millisecond)
		locktest.MustRelease(t, hold)
		cancel()
		ended.Wait()
	})
}

// A process that is alone does not subscribe, even if it leaves the lock free now and then. So it does not receive
// messages about its releases.
func TestTurns_LoneProcessDoesNotSubscribe(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		ctx, cancel := context.WithCancel(t.Context())
		turns, ended := holders(ctx, b.Locks(), 8, time.Millisecond)
		locktest.Pass(4 * time.Second)
		locktest.WantSame(t, "subscriptions", b.PubSubNumSub(t.Context(), locktest.ChannelOf("k")).Val()[locktest.ChannelOf("k")], 0)
		if n := turns.Load(); n < 3500 {
			t.Errorf("%d turns of 1 ms in four seconds, want at least 3500", n)
		}
		cancel()
		ended.Wait()
	})
}

const (
	processes      = 4
	callersPerProc = 500
	turnsInAll     = 4000
	turnTakes      = time.Millisecond
)

// 2,000 callers in four processes want one lock, and one at a time gets it. The callers of one process take turns. The
// processes share the lock as fairly as a machine with fewer processors allows. A turn takes a while, so that not only
// the scheduler of the machine decides which process is next.
func TestTurns_ManyCallersInFourProcesses(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	direct := server.Client()
	children := make([]*locktest.Child, processes)
	for i := range children {
		children[i] = locktest.StartChild(t, "caller", server.Addr())
	}
	for _, c := range children {
		if got := c.Hear(); got != "ready" {
			t.Fatal(got)
		}
	}
	for _, c := range children {
		c.Tell("go")
	}
	var procs []float64
	var sum float64
	for _, c := range children {
		var callers []float64
		var own float64
		for text := range strings.FieldsSeq(c.Hear()) {
			turns, err := strconv.ParseFloat(text, 64)
			locktest.Must(t, err)
			callers = append(callers, turns)
			own += turns
		}
		if most, least := slices.Max(callers), slices.Min(callers); most > least+2 {
			t.Errorf("callers of one process had %v to %v turns: they did not take turns", least, most)
		}
		procs = append(procs, own)
		sum += own
	}
	if n, _ := direct.Get(t.Context(), "turns").Float64(); n != sum {
		t.Errorf("%v turns were counted under the lock, %v were taken: two callers had it at a time", n, sum)
	}
	if j := jain(procs); j < 0.6 { // 0.25 if one process has all turns
		t.Errorf("Jain's index of the processes is %.2f, want at least 0.6: %v", j, procs)
	}
	t.Logf("turns by process: %v, fairness %.3f", procs, jain(procs))
	locktest.WithinASecond(t, "no key left", func() bool { return direct.Exists(context.Background(), "hot").Val() == 0 })
}

// jain returns Jain's index: 1 if all have the same, 1/n if one has everything.
func jain(xs []float64) float64 {
	var sum, squares float64
	for _, x := range xs {
		sum += x
		squares += x * x
	}
	return sum * sum / (float64(len(xs)) * squares)
}

// callerRole starts callers that take turns until all processes together have had enough, and reports the turns of
// each. The count is read and written in two steps, so that two holders at a time would lose turns.
func callerRole(c locktest.ChildSide) error {
	locks, err := core.New(c.Redis, locktest.Patient)
	if err != nil {
		return err
	}
	if err := locks.Ready(c.Ctx); err != nil {
		return err
	}
	c.Tellf("ready")
	c.Hear()
	ctx, cancel := context.WithTimeout(c.Ctx, locktest.HangTimeout)
	defer cancel()
	turns, errs := make([]int, callersPerProc), make([]error, callersPerProc)
	var callers sync.WaitGroup
	for i := range turns {
		callers.Go(func() { turns[i], errs[i] = takeTurns(ctx, locks, c.Redis) })
	}
	callers.Wait()
	if err := errors.Join(errors.Join(errs...), locks.Close(ctx)); err != nil {
		return err
	}
	c.Tellf("%s", strings.Trim(fmt.Sprint(turns), "[]"))
	return nil
}

func takeTurns(ctx context.Context, locks *core.Client, rdb *redis.Client) (turns int, err error) {
	enough := errors.New("enough")
	for {
		err := locks.Lock("hot").Do(ctx, func(ctx context.Context) error {
			n, err := rdb.Get(ctx, "turns").Int()
			switch {
			case n >= turnsInAll:
				return enough
			case err != nil && !errors.Is(err, redis.Nil):
				return err
			}
			time.Sleep(turnTakes) // the work
			return rdb.Set(ctx, "turns", n+1, 0).Err()
		})
		switch {
		case errors.Is(err, enough):
			return turns, nil
		case err != nil:
			return turns, err
		}
		turns++
	}
}
