package holding_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// TestClient_LeaksNothing starts a process that uses locks with every kind of end. While the client is open, and
// after it is closed, there are no more goroutines than before, no subscriptions, no connections beyond the pool, and
// no keys.
func TestClient_LeaksNothing(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	direct := server.Client()
	c := locktest.StartChild(t, "leaker", server.Addr())
	if got := c.Hear(); got != "quiet" {
		t.Fatal(got)
	}
	if channels := direct.PubSubChannels(t.Context(), "*").Val(); len(channels) != 0 {
		t.Errorf("subscriptions that are left: %v", channels)
	}
	if keys := direct.Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("keys that are left: %v", keys)
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
	if err := awaitGoroutines(open); err != nil {
		c.Tellf("open: %v", err)
		return err
	}
	c.Tellf("quiet")
	c.Hear()
	if err := locks.Close(c.Ctx); err != nil {
		return err
	}
	if err := awaitGoroutines(before); err != nil {
		c.Tellf("closed: %v", err)
		return err
	}
	c.Tellf("ended")
	return nil
}

// awaitGoroutines waits until there are no more goroutines than before. It waits longer than the client keeps an
// unused subscription.
func awaitGoroutines(before goleak.Option) (err error) {
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
				return nil // 5 ms is short on a busy machine
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

// whileTaken runs body while another client has the lock.
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

// A held lock without waiters takes at most heldBytes of heap. Redis is a separate process, so that its memory does
// not count.
func TestHold_Memory(t *testing.T) { //nolint:paralleltest // all tests share the heap
	const heldBytes, locks = 1000, 10_000
	client := locktest.NewClient(t, redisserver.Start(t).Client(), core.WithWatchdog(time.Hour)) // no renewal during the test
	// The first holds allocate maps and buffers that stay.
	for _, h := range acquireMany(t, client, "before", locks) {
		locktest.MustRelease(t, h)
	}
	before := heapAlloc()
	holds := acquireMany(t, client, "held", locks)
	each := float64(heapAlloc()-before) / locks
	for _, h := range holds {
		locktest.MustRelease(t, h) // a leak would be logged during another test
	}
	t.Logf("%.0f bytes for each held lock", each)
	if each > heldBytes {
		t.Errorf("%.0f bytes for each held lock, want at most %d", each, heldBytes)
	}
}

// acquireMany acquires n locks without options, as most callers do.
func acquireMany(t *testing.T, client *core.Client, name string, n int) []*core.Hold {
	t.Helper()
	holds := make([]*core.Hold, n)
	for i := range holds {
		_, holds[i] = locktest.MustAcquire(t, context.Background(), client.Lock(name+strconv.Itoa(i)))
	}
	return holds
}

// heapAlloc returns the size of the heap after garbage collection.
func heapAlloc() int64 {
	runtime.GC()
	runtime.GC() // the second collection empties the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestWatchdog_TenThousandLocks(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		goroutines := runtime.NumGoroutine()
		var holds []*core.Hold
		for i := range 100 {
			names := make([]string, 100)
			for j := range names {
				names[j] = strconv.Itoa(i) + "/" + strconv.Itoa(j)
			}
			_, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock(names...))
			holds = append(holds, hold)
		}
		locktest.Pass(10 * time.Second) // the first renewals load the script
		sent := proxy.Watch(locktest.Scripts)
		locktest.Pass(10 * time.Second)
		if got := sent.Hits(); got < 100 || got > 110 {
			t.Errorf("one period: got %d scripts, want a script per hundred locks", got)
		}
		if grown := runtime.NumGoroutine() - goroutines; grown > 2_000 { // other tests have goroutines, too
			t.Errorf("%d more goroutines than before", grown)
		}
		locktest.Pass(15 * time.Second)
		for _, hold := range holds[:3] {
			b.WantCount(hold, "1")
		}
		locktest.WantSame(t, "held", locks.Stats().Holds, 10_000)
	})
}
