package kinds_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// Callers of single keys, in the same client or in others, keep both keys busy nearly all the time. A waiter for both
// keys gets its turn after a bounded number of turns of these callers, however many callers there are and however long
// their turns are.
func TestMultiLock_IsNotStarvedBySingleKeys(t *testing.T) {
	t.Parallel()
	const rounds = 10
	for name, c := range map[string]struct {
		elsewhere int // number of other clients; 0: the same client
		callers   int // of each client, for each key
		work      time.Duration
		turns     int64 // of both keys together, at most
	}{
		"own callers":                   {callers: 8, work: 2 * time.Millisecond, turns: 150},
		"many own callers":              {callers: 20, work: 500 * time.Microsecond, turns: 300},
		"own callers, long turns":       {callers: 3, work: 300 * time.Millisecond, turns: 150},
		"callers elsewhere":             {elsewhere: 2, callers: 2, work: 2 * time.Millisecond, turns: 4000},
		"callers elsewhere, long turns": {elsewhere: 2, callers: 2, work: 300 * time.Millisecond, turns: 500},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			locks := b.Locks()
			busy := []*core.Client{locks}
			if c.elsewhere > 0 {
				busy = nil
			}
			for range c.elsewhere {
				busy = append(busy, b.Locks())
			}
			var counts []*locktest.Turns
			for _, client := range busy {
				for _, key := range []string{"a", "b"} {
					counts = append(counts, locktest.TakeTurns(t, ctx, client.Lock(key), c.callers, c.work))
				}
			}
			taken := func() (n int64) {
				for _, count := range counts {
					n += count.Taken.Load()
				}
				return n
			}
			locktest.Pass(100 * time.Millisecond)
			var most int64
			var longest time.Duration
			bound := core.WaitTime(10*time.Second + time.Duration(c.turns)*c.work) // a starved waiter would wait for ever
			for range rounds {
				before, start := taken(), time.Now()
				locktest.Must(t, locks.MultiLock("a", "b").Do(ctx, func(context.Context) error { return nil }, bound))
				most, longest = max(most, taken()-before), max(longest, time.Since(start))
				locktest.Pass(10 * time.Millisecond)
			}
			t.Logf("at most %d turns of others at both keys, and %s", most, longest)
			if most > c.turns {
				t.Errorf("waited for %d turns of others, want %d at most", most, c.turns)
			}
		})
	}
}

// A MultiLock has acquired its keys one after the other, and its wait ends while it renews the first ones. Redis has answered
// just before, so the error is only ErrNotAcquired.
func TestMultiLock_WaitEndsDuringTheRenewal(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for _, client := range []*core.Client{b.Locks(), b.Locks()} {
			for _, key := range []string{"a", "b"} {
				locktest.TakeTurns(t, ctx, client.Lock(key), 2, 300*time.Millisecond)
			}
		}
		locks, proxy := b.BehindAProxy(core.WithBackendTimeout(time.Minute))
		b.LoadScripts()
		renewal := proxy.HoldReply(locktest.Script(t, "sethold"))
		for renewal.Hits() == 0 {
			_, hold, err := locks.MultiLock("a", "b").Acquire(t.Context(), core.WaitTime(50*time.Second))
			if err == nil {
				locktest.MustRelease(t, hold) // both keys became free at once
				continue
			}
			locktest.WantErr(t, err, core.ErrNotAcquired)
			if errors.Is(err, core.ErrUnavailable) {
				t.Errorf("got %v, want only ErrNotAcquired", err)
			}
		}
		renewal.Release()
	})
}

// lockAll takes locks like RedissonMultiLock.lock. It takes them in the given order and waits for each while it holds the
// locks before it. It releases all of them after 1.5 s per lock and starts again.
func lockAll(ctx context.Context, j *locktest.Redisson, keys ...string) bool {
	for ctx.Err() == nil {
		end := time.Now().Add(time.Duration(len(keys)) * 1500 * time.Millisecond)
		held := 0
		for held < len(keys) && j.Lock(keys[held], time.Until(end)) {
			held++
		}
		if held == len(keys) {
			return true
		}
		unlockAll(j, keys[:held]...)
	}
	return false
}

func unlockAll(j *locktest.Redisson, keys ...string) {
	for _, key := range keys {
		j.Unlock(key)
	}
}

// besideRedisson starts n callers of this library and n threads of Redisson that take the same two keys in opposite
// orders.
func besideRedisson(t *testing.T, ctx context.Context, b *locktest.Redis, locks *core.Client, n int, work time.Duration, way ...redis.Hook) (ours, theirs *locktest.Turns) {
	t.Helper()
	ours, theirs = locktest.TakeTurns(t, ctx, locks.MultiLock("a", "b"), n, work), &locktest.Turns{}
	var all sync.WaitGroup
	for i := range n {
		java := b.NewRedisson(t, locktest.RedissonField+strconv.Itoa(i))
		for _, hook := range way {
			java.Redis.AddHook(hook)
		}
		all.Go(func() {
			for ctx.Err() == nil {
				start := time.Now()
				if !lockAll(ctx, java, "b", "a") {
					return
				}
				theirs.Note(time.Since(start))
				<-time.NewTimer(work).C
				unlockAll(java, "b", "a")
			}
		})
	}
	t.Cleanup(all.Wait)
	return ours, theirs
}

// Redisson's MultiLock holds its keys while it waits. The MultiLock of this library does not, so the two do not block
// each other. Commands of Redisson take some time here. Otherwise, if two waiters are woken at the same instant,
// chance would decide which is first.
func TestMultiLock_BesideRedissonMultiLocks(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ours, theirs := besideRedisson(t, ctx, b, b.Locks(), 1, 2*time.Millisecond, slowWay(50*time.Microsecond))
		const lasts = 5 * time.Second
		locktest.Pass(lasts)
		for side, got := range map[string]*locktest.Turns{"ours": ours, "theirs": theirs} {
			t.Logf("%s: %d turns in %s, waits of up to %s", side, got.Taken.Load(), lasts, got.Longest())
			if got.Taken.Load() < 10*int64(lasts/time.Second) || got.Longest() > 2*time.Second {
				t.Errorf("%s: %d turns in %s, waits of up to %s", side, got.Taken.Load(), lasts, got.Longest())
			}
		}
	})
}

// slowWay delays every command.
type slowWay time.Duration

func (w slowWay) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w slowWay) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (w slowWay) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		time.Sleep(time.Duration(w)) // the way, in the time of the bubble
		return next(ctx, cmd)
	}
}

// The two libraries do not block each other on a real server either. With three callers on each side, a thread of
// Redisson has its first key nearly all the time. The bound is wide, because only a lasting conflict can be
// distinguished from a slow machine.
func TestMultiLock_BesideRedissonMultiLocksOnAServer(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ours, theirs := besideRedisson(t, ctx, b, b.Locks(locktest.Patient), 3, time.Millisecond)
	start := time.Now()
	const enough = 60
	for ours.Taken.Load() < enough || theirs.Taken.Load() < enough {
		if <-time.NewTimer(10 * time.Millisecond).C; time.Since(start) > locktest.Measured(40*time.Second) { // in a conflict each turn takes a second
			t.Fatalf("%d and %d turns in %s", ours.Taken.Load(), theirs.Taken.Load(), time.Since(start))
		}
	}
	t.Logf("%d and %d turns in %s", ours.Taken.Load(), theirs.Taken.Load(), time.Since(start))
}
