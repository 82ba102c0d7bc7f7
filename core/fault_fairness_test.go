package core_test

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

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/redis/go-redis/v9"
)

const (
	processes      = 4
	callersPerProc = 500
	turnsInAll     = 4000
	turnTakes      = time.Millisecond
)

// TestFault_ManyCallersInFourProcesses has 2,000 callers in four processes want one
// lock. They make progress, one at a time, and get their turns fairly: in a process
// one after the other, between processes as far as a machine with fewer processors
// than that lets them. A turn takes a while, so that it is not the scheduler of the machine
// alone that decides who comes next.
func TestFault_ManyCallersInFourProcesses(t *testing.T) {
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
			t.Errorf("callers of one process had %v to %v turns: not one after the other", least, most)
		}
		procs = append(procs, own)
		sum += own
	}
	if n, _ := direct.Get(t.Context(), "turns").Float64(); n != sum {
		t.Errorf("%v turns were counted under the lock, %v were taken: not one at a time", n, sum)
	}
	if j := jain(procs); j < 0.6 { // 0.25 when one process has everything
		t.Errorf("fairness of the processes is %.2f: %v", j, procs)
	}
	t.Logf("turns by process: %v, fairness %.3f", procs, jain(procs))
	locktest.WithinASecond(t, "no key left", func() bool { return direct.Exists(context.Background(), "hot").Val() == 0 })
}

// jain is Jain's index: 1 when all have the same, 1/n when one has everything.
func jain(xs []float64) float64 {
	var sum, squares float64
	for _, x := range xs {
		sum += x
		squares += x * x
	}
	return sum * sum / (float64(len(xs)) * squares)
}

// callerRole has many callers take turns until all processes together have had
// enough, and reports how many turns each of them had. The count is read and written
// in two steps, so that two holders at a time would lose turns.
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
