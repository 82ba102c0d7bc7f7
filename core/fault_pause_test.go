//go:build unix

package core_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// TestFault_PausedProcess stops a busy holder in another process until its lease is
// over and somebody else has the lock, and lets it go on: the first look at its
// context says that the lock is lost, so that of its steps only the one that was
// under way is late. Its release is ErrLost and leaves the new owner's lock alone.
func TestFault_PausedProcess(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	direct := server.Client()
	locks := newLocks(t, server, patient)
	defer faultClose(t, locks)
	for _, kind := range []string{"busy", "idle"} {
		holder := startChild(t, "holder", server.Addr())
		holder.hears(kind)
		if got := holder.says(); got != "held" {
			t.Fatal(got)
		}
		if kind == "busy" {
			eventually(t, "the holder to work", func() bool { n, _ := direct.Get(t.Context(), "steps").Int(); return n > 10 })
		}
		must(t, holder.cmd.Process.Signal(syscall.SIGSTOP))
		_, hold := acquired(t, t.Context(), locks.Lock("k"), core.WaitTime(20*time.Second))
		before, _ := direct.Get(t.Context(), "steps").Int()
		if kind == "idle" {
			holder.hears("look") // what it was waiting for
		}
		must(t, holder.cmd.Process.Signal(syscall.SIGCONT))
		if got := holder.says(); !strings.HasPrefix(got, "lost") {
			t.Errorf("%s: %s", kind, got)
		}
		if after, _ := direct.Get(t.Context(), "steps").Int(); after > before+1 {
			t.Errorf("%s: %d steps after the pause, want at most the one that was under way", kind, after-before)
		}
		if holders := direct.HGetAll(t.Context(), "k").Val(); len(holders) != 1 || holders[hold.Field()] != "1" {
			t.Errorf("%s: redis has %v, want only %s", kind, holders, hold.Field())
		}
		released(t, hold)
	}
}

// So it is with every kind of lock.
func TestFault_PausedProcessOfEachKind(t *testing.T) {
	t.Parallel()
	for kind, s := range sorts {
		parallel(t, kind, func(t *testing.T) {
			server := redisserver.Start(t)
			locks := newLocks(t, server, patient)
			defer faultClose(t, locks)
			holder := startChild(t, "holder", server.Addr())
			holder.hears("busy " + kind)
			if got := holder.says(); got != "held" {
				t.Fatal(got)
			}
			must(t, holder.cmd.Process.Signal(syscall.SIGSTOP))
			ctx, hold := acquired(t, t.Context(), s.rival([]*core.Client{locks}), core.WaitTime(20*time.Second))
			must(t, holder.cmd.Process.Signal(syscall.SIGCONT))
			if got := holder.says(); !strings.HasPrefix(got, "lost") {
				t.Error(got)
			}
			must(t, hold.Refresh(ctx, time.Minute)) // redis still knows it
			wantAlive(t, ctx)
			released(t, hold)
		})
	}
}

// holderRole holds the lock k, or one of a kind, and works, or waits, until it is lost.
func holderRole(c childSide) error {
	locks, err := core.New(c.rdb, core.WithWatchdog(600*time.Millisecond), patient)
	if err != nil {
		return err
	}
	defer func() { _ = locks.Close(c.ctx) }()
	c.wait()
	how, kind, _ := strings.Cut(c.in.Text(), " ")
	busy, lock := how == "busy", locks.Lock("k")
	if s, ok := sorts[kind]; ok {
		lock = s.lock([]*core.Client{locks})
	}
	ctx, hold, err := lock.Acquire(c.ctx)
	if err != nil {
		return err
	}
	c.tellf("held")
	if busy {
		for ctx.Err() == nil {
			c.rdb.Incr(c.ctx, "steps")
		}
	} else {
		c.wait()
	}
	switch err, cause := ctx.Err(), context.Cause(ctx); {
	case err == nil:
		c.tellf("alive after the pause")
	case !errors.Is(cause, core.ErrLost):
		c.tellf("cause %v", cause)
	default:
		released := hold.Release(c.ctx)
		if !errors.Is(released, core.ErrLost) {
			c.tellf("released: %v", released)
			return nil
		}
		c.tellf("lost: %v", released)
	}
	return nil
}
