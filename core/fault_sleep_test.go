//go:build unix

package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// TestFault_SleepOfTheProcessIsNoOutage stops a process for longer than the backend timeout,
// in the middle of its calls: when it goes on, Redis has answered long ago, and is not
// reported as down.
func TestFault_SleepOfTheProcessIsNoOutage(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	sleeper := locktest.StartChild(t, "sleeper", server.Addr())
	if got := sleeper.Hear(); got != "warm" {
		t.Fatal(got)
	}
	for range 3 {
		time.Sleep(50 * time.Millisecond) // some calls
		locktest.Must(t, sleeper.Process.Signal(syscall.SIGSTOP))
		time.Sleep(1500 * time.Millisecond) // the fault, held open
		locktest.Must(t, sleeper.Process.Signal(syscall.SIGCONT))
	}
	sleeper.Tell("enough")
	if got := sleeper.Hear(); got != "outages 0" {
		t.Error(got)
	}
}

// sleeperRole calls until it is told to end, and counts how often Redis was silent.
func sleeperRole(c locktest.ChildSide) error {
	locks, err := core.New(c.Redis, core.WithBackendTimeout(time.Second))
	if err != nil {
		return err
	}
	defer func() { _ = locks.Close(c.Ctx) }()
	var outages atomic.Int64
	ctx, end := context.WithCancel(c.Ctx)
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			for ctx.Err() == nil {
				err := locks.Lock(fmt.Sprint("mine:", i)).Do(ctx, func(context.Context) error { return nil })
				if errors.Is(err, core.ErrUnavailable) {
					outages.Add(1)
				}
			}
		})
	}
	c.Tellf("warm")
	c.Hear()
	end()
	all.Wait()
	c.Tellf("outages %d", outages.Load())
	return nil
}
