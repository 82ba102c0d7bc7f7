package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"go.uber.org/goleak"
)

// TestFault_NothingLeaks has a process of its own use locks with every kind of end.
// While the client is open, and again when it is closed, there are no more
// goroutines than before, no subscriptions, no connections beyond the pool, and no
// keys.
func TestFault_NothingLeaks(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	direct := server.Client()
	c := locktest.StartChild(t, "leaker", server.Addr())
	if got := c.Hear(); got != "quiet" {
		t.Fatal(got)
	}
	if channels := direct.PubSubChannels(t.Context(), "*").Val(); len(channels) != 0 {
		t.Errorf("subscriptions: %v", channels)
	}
	if keys := direct.Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("keys: %v", keys)
	}
	c.Tell("close")
	if got := c.Hear(); got != "ended" {
		t.Error(got)
	}
}

// leakerRole compares the goroutines before and after every kind of end.
func leakerRole(c locktest.ChildSide) error {
	before := goleak.IgnoreCurrent()
	locks, err := core.New(c.Redis, core.WithWatchdog(locktest.Unhurried(3*time.Second)), locktest.Patient)
	if err != nil {
		return err
	}
	if err := locks.Lock("warm").Do(c.Ctx, func(context.Context) error { return nil }); err != nil {
		return err
	}
	open := goleak.IgnoreCurrent()
	for name, end := range ends {
		for i := range 20 {
			if err := end(c, locks, fmt.Sprint(name, i)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	locktest.Eventually(c.T, "nothing held and wanted", func() bool { return locks.Stats() == core.Stats{} })
	if err := settled(open); err != nil {
		c.Tellf("open: %v", err)
		return err
	}
	c.Tellf("quiet")
	c.Hear()
	if err := locks.Close(c.Ctx); err != nil {
		return err
	}
	if err := settled(before); err != nil {
		c.Tellf("closed: %v", err)
		return err
	}
	c.Tellf("ended")
	return nil
}

// settled waits until there are no other goroutines than before: for longer than an
// unused subscription is kept.
func settled(before goleak.Option) (err error) {
	for end := time.Now().Add(locktest.HangTimeout); time.Now().Before(end); {
		if err = goleak.Find(before); err == nil {
			return nil
		}
	}
	return err
}

// ends are the ways in which an acquisition or a hold ends.
var ends = map[string]func(c locktest.ChildSide, locks *core.Client, key string) error{
	"success": func(c locktest.ChildSide, locks *core.Client, key string) error {
		return locks.Lock(key).Do(c.Ctx, func(context.Context) error { return nil })
	},
	"hand-off": func(c locktest.ChildSide, locks *core.Client, key string) error {
		return whileHeld(c, locks, key, func(hold *core.Hold) error {
			got := locktest.GoAcquire(c.Ctx, locks.Lock(key))
			locktest.AwaitWaiters(c.T, locks, 1)
			if err := hold.Release(c.Ctx); err != nil {
				return err
			}
			return (<-got).Hold.Release(c.Ctx)
		})
	},
	"timeout": func(c locktest.ChildSide, locks *core.Client, key string) error {
		return whileTaken(c, key, func() error {
			_, _, err := locks.Lock(key).Acquire(c.Ctx, core.WaitTime(5*time.Millisecond))
			if errors.Is(err, core.ErrUnavailable) {
				return nil // five milliseconds are little on a busy machine
			}
			return wants(err, core.ErrNotAcquired)
		})
	},
	"cancel": func(c locktest.ChildSide, locks *core.Client, key string) error {
		return whileTaken(c, key, func() error {
			ctx, cancel := context.WithCancel(c.Ctx)
			got := locktest.GoAcquire(ctx, locks.Lock(key))
			locktest.AwaitWaiters(c.T, locks, 1)
			cancel()
			return wants((<-got).Err, context.Canceled)
		})
	},
	"loss": func(c locktest.ChildSide, locks *core.Client, key string) error {
		ctx, hold, err := locks.Lock(key).Acquire(c.Ctx, core.LeaseTime(10*time.Millisecond))
		if err != nil {
			return err
		}
		<-ctx.Done()
		return wants(hold.Release(c.Ctx), core.ErrLost)
	},
	"failed release": func(c locktest.ChildSide, locks *core.Client, key string) error {
		return whileHeld(c, locks, key, func(hold *core.Hold) error {
			err := c.Redis.Set(c.Ctx, key, "not a lock", 0).Err()
			err = errors.Join(err, wants(hold.Release(c.Ctx), core.ErrUnavailable))
			return errors.Join(err, c.Redis.Del(c.Ctx, key).Err())
		})
	},
	"re-entry": func(c locktest.ChildSide, locks *core.Client, key string) error {
		return reenterOften(c.Ctx, locks.Lock(key), 50)
	},
	"forgotten": func(c locktest.ChildSide, locks *core.Client, key string) error {
		_, _, err := locks.Lock(key).Acquire(c.Ctx, core.LeaseTime(50*time.Millisecond))
		runtime.GC()
		return err
	},
}

func reenterOften(ctx context.Context, lock core.Lock, times int) error {
	if times == 0 {
		return nil
	}
	return lock.Do(ctx, func(ctx context.Context) error { return reenterOften(ctx, lock, times-1) })
}

func whileHeld(c locktest.ChildSide, locks *core.Client, key string, body func(*core.Hold) error) error {
	_, hold, err := locks.Lock(key).Acquire(c.Ctx)
	if err != nil {
		return err
	}
	return body(hold)
}

// whileTaken runs body while somebody elsewhere has the lock.
func whileTaken(c locktest.ChildSide, key string, body func() error) error {
	err := c.Redis.HSet(c.Ctx, key, locktest.Stranger, 1).Err()
	return errors.Join(err, body(), c.Redis.Del(c.Ctx, key).Err())
}

func wants(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return fmt.Errorf("got %w, want %w", err, want)
}
