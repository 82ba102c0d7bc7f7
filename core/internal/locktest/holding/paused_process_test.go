package holding_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// TestHold_PausedProcess stops a busy holder in another process until its lease has expired and another client has the
// lock. When the process goes on, its context reports the loss at once, so only the step that was under way is late.
// The release returns ErrLost and does not touch the lock of the new holder.
func TestHold_PausedProcess(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	direct := server.Client()
	locks := locktest.MustNew(t, server.Client(), locktest.Patient)
	defer locktest.MustClose(t, locks)
	for _, kind := range []string{"busy", "idle"} {
		holder := locktest.StartChild(t, "holder", server.Addr())
		holder.Tell(kind)
		if got := holder.Hear(); got != "held" {
			t.Fatal(got)
		}
		if kind == "busy" {
			locktest.Eventually(t, "the holder to work", func() bool { n, _ := direct.Get(t.Context(), "steps").Int(); return n > 10 })
		}
		locktest.Must(t, redisserver.PauseProcess(holder.Process))
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.WaitTime(20*time.Second))
		before, _ := direct.Get(t.Context(), "steps").Int()
		if kind == "idle" {
			holder.Tell("look") // the holder waits for this line
		}
		locktest.Must(t, redisserver.ResumeProcess(holder.Process))
		if got := holder.Hear(); !strings.HasPrefix(got, "lost") {
			t.Errorf("%s: %s", kind, got)
		}
		if after, _ := direct.Get(t.Context(), "steps").Int(); after > before+1 {
			t.Errorf("%s: %d steps after the pause, want at most the step that was under way", kind, after-before)
		}
		if holders := direct.HGetAll(t.Context(), "k").Val(); len(holders) != 1 || holders[hold.Field()] != "1" {
			t.Errorf("%s: redis has %v, want only %s", kind, holders, hold.Field())
		}
		locktest.MustRelease(t, hold)
	}
}

// A paused process loses a lock of every kind.
func TestHold_EachKind_PausedProcess(t *testing.T) {
	t.Parallel()
	for _, kind := range locktest.KindsWithHolders() {
		locktest.Parallel(t, kind.Name, func(t *testing.T) {
			server := redisserver.Start(t)
			locks := locktest.MustNew(t, server.Client(), locktest.Patient)
			defer locktest.MustClose(t, locks)
			holder := locktest.StartChild(t, "holder", server.Addr())
			holder.Tell("busy " + kind.Name)
			if got := holder.Hear(); got != "held" {
				t.Fatal(got)
			}
			locktest.Must(t, redisserver.PauseProcess(holder.Process))
			ctx, hold := locktest.MustAcquire(t, t.Context(), kind.Rival([]*core.Client{locks}, locktest.Pool), core.WaitTime(20*time.Second))
			locktest.Must(t, redisserver.ResumeProcess(holder.Process))
			if got := holder.Hear(); !strings.HasPrefix(got, "lost") {
				t.Error(got)
			}
			locktest.Must(t, hold.Refresh(ctx, time.Minute)) // Redis still has the hold
			locktest.WantAlive(t, ctx)
			locktest.MustRelease(t, hold)
		})
	}
}

// holderRole holds the lock k, or a lock of a kind, and works or waits until the lock is lost.
func holderRole(c locktest.ChildSide) error {
	how, kind, _ := strings.Cut(c.Hear(), " ")
	busy, watchdog := how == "busy", 600*time.Millisecond
	if busy && kind == "" { // the parent waits for some steps before the pause
		watchdog = locktest.Unhurried(watchdog)
	}
	locks, err := core.New(c.Redis, core.WithWatchdog(watchdog), locktest.Patient)
	if err != nil {
		return err
	}
	defer func() { _ = locks.Close(c.Ctx) }()
	lock := locks.Lock("k")
	if k, ok := locktest.KindNamed(kind); ok {
		lock = k.Lock([]*core.Client{locks}, locktest.Pool)
	}
	ctx, hold, err := lock.Acquire(c.Ctx)
	if err != nil {
		return err
	}
	c.Tellf("held")
	if busy {
		for ctx.Err() == nil {
			c.Redis.Incr(c.Ctx, "steps")
		}
	} else {
		c.Hear()
	}
	switch err, cause := ctx.Err(), context.Cause(ctx); {
	case err == nil:
		c.Tellf("alive after the pause")
	case !errors.Is(cause, core.ErrLost):
		c.Tellf("cause %v", cause)
	default:
		released := hold.Release(c.Ctx)
		if !errors.Is(released, core.ErrLost) {
			c.Tellf("released: %v", released)
			return nil
		}
		c.Tellf("lost: %v", released)
	}
	return nil
}
