package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
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
	c := startChild(t, "leaker", server.Addr())
	if got := c.says(); got != "quiet" {
		t.Fatal(got)
	}
	if channels := direct.PubSubChannels(t.Context(), "*").Val(); len(channels) != 0 {
		t.Errorf("subscriptions: %v", channels)
	}
	if keys := direct.Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("keys: %v", keys)
	}
	c.hears("close")
	if got := c.says(); got != "ended" {
		t.Error(got)
	}
}

// leakerRole compares the goroutines before and after every kind of end.
func leakerRole(c childSide) error {
	before := goleak.IgnoreCurrent()
	locks, err := core.New(c.rdb, core.WithWatchdog(unhurried(3*time.Second)), patient)
	if err != nil {
		return err
	}
	if err := locks.Lock("warm").Do(c.ctx, func(context.Context) error { return nil }); err != nil {
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
	eventually(c.t, "nothing held and wanted", func() bool { return locks.Stats() == core.Stats{} })
	if err := settled(open); err != nil {
		c.tellf("open: %v", err)
		return err
	}
	c.tellf("quiet")
	c.wait()
	if err := locks.Close(c.ctx); err != nil {
		return err
	}
	if err := settled(before); err != nil {
		c.tellf("closed: %v", err)
		return err
	}
	c.tellf("ended")
	return nil
}

// settled waits until there are no other goroutines than before: for longer than an
// unused subscription is kept.
func settled(before goleak.Option) (err error) {
	for end := time.Now().Add(hangs); time.Now().Before(end); {
		if err = goleak.Find(before); err == nil {
			return nil
		}
	}
	return err
}

// ends are the ways in which an acquisition or a hold ends.
var ends = map[string]func(c childSide, locks *core.Client, key string) error{
	"success": func(c childSide, locks *core.Client, key string) error {
		return locks.Lock(key).Do(c.ctx, func(context.Context) error { return nil })
	},
	"hand-off": func(c childSide, locks *core.Client, key string) error {
		return whileHeld(c, locks, key, func(hold *core.Hold) error {
			got := acquiring(c.ctx, locks.Lock(key))
			waiters(c.t, locks, 1)
			if err := hold.Release(c.ctx); err != nil {
				return err
			}
			return (<-got).hold.Release(c.ctx)
		})
	},
	"timeout": func(c childSide, locks *core.Client, key string) error {
		return whileTaken(c, key, func() error {
			_, _, err := locks.Lock(key).Acquire(c.ctx, core.WaitTime(5*time.Millisecond))
			if errors.Is(err, core.ErrUnavailable) {
				return nil // five milliseconds are little on a busy machine
			}
			return wants(err, core.ErrNotAcquired)
		})
	},
	"cancel": func(c childSide, locks *core.Client, key string) error {
		return whileTaken(c, key, func() error {
			ctx, cancel := context.WithCancel(c.ctx)
			got := acquiring(ctx, locks.Lock(key))
			waiters(c.t, locks, 1)
			cancel()
			return wants((<-got).err, context.Canceled)
		})
	},
	"loss": func(c childSide, locks *core.Client, key string) error {
		ctx, hold, err := locks.Lock(key).Acquire(c.ctx, core.LeaseTime(10*time.Millisecond))
		if err != nil {
			return err
		}
		<-ctx.Done()
		return wants(hold.Release(c.ctx), core.ErrLost)
	},
	"failed release": func(c childSide, locks *core.Client, key string) error {
		return whileHeld(c, locks, key, func(hold *core.Hold) error {
			err := c.rdb.Set(c.ctx, key, "not a lock", 0).Err()
			err = errors.Join(err, wants(hold.Release(c.ctx), core.ErrUnavailable))
			return errors.Join(err, c.rdb.Del(c.ctx, key).Err())
		})
	},
	"re-entry": func(c childSide, locks *core.Client, key string) error {
		return reenterOften(c.ctx, locks.Lock(key), 50)
	},
	"forgotten": func(c childSide, locks *core.Client, key string) error {
		_, _, err := locks.Lock(key).Acquire(c.ctx, core.LeaseTime(50*time.Millisecond))
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

func whileHeld(c childSide, locks *core.Client, key string, body func(*core.Hold) error) error {
	_, hold, err := locks.Lock(key).Acquire(c.ctx)
	if err != nil {
		return err
	}
	return body(hold)
}

// whileTaken runs body while somebody elsewhere has the lock.
func whileTaken(c childSide, key string, body func() error) error {
	err := c.rdb.HSet(c.ctx, key, stranger, 1).Err()
	return errors.Join(err, body(), c.rdb.Del(c.ctx, key).Err())
}

func wants(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return fmt.Errorf("got %w, want %w", err, want)
}
