package core_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// On real servers, of which some are killed and one comes back.
func TestRedlock_KilledServers(t *testing.T) {
	t.Parallel()
	const n = 5
	servers := make([]*redisserver.Server, n)
	clients := make([]*core.Client, n)
	for i := range servers {
		servers[i] = redisserver.Start(t)
		clients[i] = locktest.NewClient(t, servers[i].Client(), core.WithBackendTimeout(2*time.Second))
	}
	lock := core.Redlock("k", clients...)
	once := func() error {
		return lock.Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(0))
	}
	locktest.Must(t, once())

	servers[1].Kill()
	servers[2].Kill()
	locktest.Must(t, once())
	ctx, hold := locktest.MustAcquire(t, t.Context(), lock)
	servers[3].Kill()
	locktest.WantAlive(t, ctx)
	locktest.WantErr(t, hold.Release(t.Context()), core.ErrUnavailable)

	start := time.Now()
	locktest.WantOnly(t, once(), core.ErrUnavailable, core.ErrNotAcquired)
	locktest.WantAtMost(t, "the attempt", time.Since(start), 4*time.Second)
	for _, i := range []int{0, 4} {
		rdb := servers[i].Client()
		locktest.Eventually(t, "nothing to be left", func() bool { return rdb.Exists(t.Context(), "k").Val() == 0 })
	}
	servers[3].Restart()
	locktest.Eventually(t, "a majority to be back", func() bool { return once() == nil })
}

// A process whose callers contend with those of another one, as RLocks of each server.
func TestRedlock_OnRealServers(t *testing.T) {
	t.Parallel()
	servers := []*redisserver.Server{redisserver.Start(t), redisserver.Start(t), redisserver.Start(t)}
	var inside, turns atomic.Int64
	locktest.Concurrently(2, func(int) {
		var clients []*core.Client
		for _, s := range servers {
			clients = append(clients, locktest.NewClient(t, s.Client(), locktest.Patient))
		}
		locktest.Concurrently(4, func(int) {
			for range 25 {
				err := core.Redlock("k", clients...).Do(t.Context(), func(context.Context) error {
					if turns.Add(1); inside.Add(1) > 1 {
						t.Error("two holders")
					}
					inside.Add(-1)
					return nil
				})
				locktest.WantOK(t, err)
			}
		})
	})
	locktest.WantSame(t, "turns", turns.Load(), 200)
	for _, s := range servers {
		if s.Client().Exists(t.Context(), "k").Val() != 0 {
			t.Error("something is left")
		}
	}
}
