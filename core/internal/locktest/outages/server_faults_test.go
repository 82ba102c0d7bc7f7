package outages_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// TestBackend_ErrorReplies makes Redis answer with every kind of error that does not concern the lock. The result is
// ErrUnavailable with the cause. If the error is permanent, the caller fails within a few backend timeouts, whatever
// its wait time.
func TestBackend_ErrorReplies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		fault  func(t *testing.T, rdb *redis.Client)
		want   string // in the text of the cause
		passes bool   // the state ends by itself, so that callers wait
	}{
		{"wrong type", func(t *testing.T, rdb *redis.Client) { locktest.Must(t, rdb.Set(t.Context(), "k", "v", 0).Err()) }, "WRONGTYPE", false},
		{"out of memory", func(t *testing.T, rdb *redis.Client) {
			locktest.Must(t, rdb.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err())
			locktest.Must(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
		}, "OOM", false},
		{"no permission", func(t *testing.T, rdb *redis.Client) {
			locktest.Must(t, rdb.Do(t.Context(), "acl", "setuser", "default", "-evalsha", "-eval").Err())
		}, "NOPERM", false},
		{"read-only replica", func(t *testing.T, rdb *redis.Client) {
			locktest.Must(t, rdb.ConfigSet(t.Context(), "replica-serve-stale-data", "yes").Err())
			locktest.Must(t, rdb.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
		}, "READONLY", true},
		{"min replicas", func(t *testing.T, rdb *redis.Client) {
			locktest.Must(t, rdb.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
		}, "NOREPLICAS", true},
	} {
		locktest.Parallel(t, tt.name, func(t *testing.T) {
			rdb := redisserver.Start(t).Client()
			const timeout = 4 * time.Second
			locks, err := core.New(rdb, core.WithBackendTimeout(timeout))
			locktest.Must(t, err)
			defer locktest.MustClose(t, locks)
			tt.fault(t, rdb)
			long := time.Hour
			if tt.passes {
				long = 2 * time.Second
			}
			for _, wait := range []time.Duration{0, long} {
				known := 5 * timeout
				if tt.passes {
					known += wait // for errors that may pass
				}
				start := time.Now()
				_, _, err = locks.Lock("k").Acquire(t.Context(), core.WaitTime(wait))
				if !errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrNotAcquired) {
					t.Errorf("wait %s: got %v, want only ErrUnavailable", wait, err)
				}
				if err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("wait %s: %q does not name the cause %s", wait, err, tt.want)
				}
				if d := time.Since(start); d > locktest.Measured(known) {
					t.Errorf("wait %s: failed after %s, with a backend timeout of %s", wait, d, timeout)
				}
			}
		})
	}
}

// TestBackend_ScriptFlush flushes all scripts at every point in the life of a hold.
func TestBackend_ScriptFlush(t *testing.T) {
	t.Parallel()
	redisserver.Each(t, func(t *testing.T, rdb *redis.Client) {
		locks, err := core.New(rdb, locktest.Patient)
		locktest.Must(t, err)
		defer locktest.MustClose(t, locks)
		flush := func() { locktest.Must(t, rdb.ScriptFlush(t.Context()).Err()) }
		flush()
		ctx, hold, err := locks.Lock("k").Acquire(t.Context())
		locktest.Must(t, err)
		flush()
		_, inner, err := locks.Lock("k").Acquire(ctx)
		locktest.Must(t, err)
		flush()
		locktest.Must(t, inner.Release(t.Context()))
		flush()
		locktest.Must(t, hold.Refresh(t.Context(), time.Minute))
		flush()
		locktest.Must(t, hold.Release(t.Context()))
	})
}

// Redis is down at the start, and again later. A caller fails within the backend timeout, even with a longer wait
// time, and later callers fail at once. When Redis is back, everything works without a restart.
func TestBackend_RedisDown(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	server := redisserver.Start(t)
	server.Kill()
	locks := locktest.MustNew(t, server.Client(), core.WithBackendTimeout(timeout))
	defer locktest.MustClose(t, locks)
	down := func(when string) {
		t.Helper()
		start := time.Now()
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(time.Minute))
		if !errors.Is(err, core.ErrUnavailable) || errors.Is(err, core.ErrNotAcquired) {
			t.Fatalf("%s: got %v, want ErrUnavailable", when, err)
		}
		if d := time.Since(start); d > locktest.Measured(timeout+locktest.Slack) {
			t.Errorf("%s: the caller failed after %s", when, d)
		}
		// On a busy machine this process may have slept, which is not a silence. Then another caller has to wait for
		// the backend timeout.
		locktest.Eventually(t, when+": the next caller to get ErrUnavailable at once", func() bool {
			start = time.Now()
			_, _, err = locks.Lock("another").Acquire(t.Context())
			return errors.Is(err, core.ErrUnavailable) && time.Since(start) < timeout/2
		})
	}
	up := func(when string) *core.Hold {
		t.Helper()
		var hold *core.Hold
		end := time.Now().Add(30 * time.Second)
		for err := errors.New("not tried"); err != nil; {
			if _, hold, err = locks.Lock("k").Acquire(t.Context(), core.WaitTime(time.Second)); time.Now().After(end) {
				t.Fatalf("%s: %v", when, err)
			}
		}
		return hold
	}
	down("at the start")
	server.Restart()
	locktest.Must(t, up("first start").Release(t.Context()))
	server.Kill()
	down("later")
	server.Restart()
	hold := up("second start")
	server.Kill()
	if err := hold.Release(t.Context()); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("release while down: got %v, want ErrUnavailable", err)
	}
	server.Restart()
	locktest.Must(t, up("third start").Release(t.Context()))
}

// TestSilence_WaitTimeIsKept stops Redis under a waiter. The wait ends within the backend timeout, before the end of
// the wait time and never after the caller's deadline.
func TestSilence_WaitTimeIsKept(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	locks := locktest.MustNew(t, server.Client())
	locktest.Warm(t, locks)
	server.Stop()
	defer locktest.MustClose(t, locks)
	defer server.Continue()
	for _, tt := range []struct {
		name     string
		deadline time.Duration
		cancel   bool
		opts     []core.AcquireOption
		want     error
	}{
		{"deadline", 50 * time.Millisecond, false, nil, context.DeadlineExceeded},
		{"cancel", 50 * time.Millisecond, true, nil, context.Canceled},
		{"short wait", time.Minute, false, []core.AcquireOption{core.WaitTime(50 * time.Millisecond)}, core.ErrUnavailable},
		{"long wait", time.Minute, false, []core.AcquireOption{core.WaitTime(50 * time.Second)}, core.ErrUnavailable},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
		if tt.cancel {
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(tt.deadline, cancel)
		}
		start := time.Now()
		_, _, err := locks.Lock("k").Acquire(ctx, tt.opts...)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
		if d := time.Since(start); d > locktest.Measured(min(tt.deadline, core.DefaultBackendTimeout)+locktest.Slack) {
			t.Errorf("%s: returned after %s", tt.name, d)
		}
		cancel()
	}
}

// The wait time of waiters ends while Redis does not answer. They get ErrNotAcquired, because the client itself holds
// the lock and knows without Redis that the lock is taken.
func TestSilence_HolderOfThisClientIsKnown(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	locks := locktest.MustNew(t, server.Client())
	locktest.Warm(t, locks)
	_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
	server.Stop()
	defer locktest.MustClose(t, locks)
	defer func() {
		server.Continue()
		locktest.Warm(t, locks) // Redis may answer late
		locktest.WantOK(t, hold.Release(t.Context()))
	}()
	var waiters sync.WaitGroup
	for wait := 100 * time.Millisecond; wait <= 1500*time.Millisecond; wait += 100 * time.Millisecond {
		waiters.Go(func() {
			_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(wait))
			if !errors.Is(err, core.ErrNotAcquired) {
				t.Errorf("%s: got %v", wait, err)
			}
		})
	}
	waiters.Wait()
}
