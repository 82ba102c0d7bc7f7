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
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// TestFault_SleepOfTheProcessIsNoOutage stops a process for longer than the backend timeout,
// in the middle of its calls: when it goes on, Redis has answered long ago, and is not
// reported as down.
func TestFault_SleepOfTheProcessIsNoOutage(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	sleeper := startChild(t, "sleeper", server.Addr())
	if got := sleeper.says(); got != "warm" {
		t.Fatal(got)
	}
	for range 3 {
		time.Sleep(50 * time.Millisecond) // some calls
		must(t, sleeper.cmd.Process.Signal(syscall.SIGSTOP))
		time.Sleep(1500 * time.Millisecond) // the fault, held open
		must(t, sleeper.cmd.Process.Signal(syscall.SIGCONT))
	}
	sleeper.hears("enough")
	if got := sleeper.says(); got != "outages 0" {
		t.Error(got)
	}
}

// sleeperRole calls until it is told to end, and counts how often Redis was silent.
func sleeperRole(c childSide) error {
	locks, err := core.New(c.rdb, core.WithBackendTimeout(time.Second))
	if err != nil {
		return err
	}
	defer func() { _ = locks.Close(c.ctx) }()
	var outages atomic.Int64
	ctx, end := context.WithCancel(c.ctx)
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
	c.tellf("warm")
	c.wait()
	end()
	all.Wait()
	c.tellf("outages %d", outages.Load())
	return nil
}
