package interop_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/interop"
)

// redlockShared lets a redlock of each side use the same three servers, one of which dies. The sides exclude each other,
// and each gets the lock when it is free.
func redlockShared(t *testing.T, s *site) {
	var servers []*redisserver.Server
	var java []*interop.Client
	var own []*core.Client
	for range 3 {
		srv := redisserver.Start(t)
		servers = append(servers, srv)
		java = append(java, s.jvm.Open(t, interop.Config{
			Mode: single, Addrs: []string{srv.Addr()}, Timeout: 500 * time.Millisecond, Retries: "1",
		}))
		own = append(own, newLocks(t, srv.Client()))
	}
	check := func(name string) {
		t.Helper()
		lock := core.Redlock(name, own...)
		thread := s.java.Thread(t)
		theirs := thread.Redlock(name, java...)
		_, hold, err := lock.Acquire(t.Context(), core.WaitTime(10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if theirs.TryOnce().True() {
			t.Error("Java got the redlock that Go holds")
		}
		call := theirs.TryFor(20*time.Second, time.Minute)
		time.Sleep(50 * time.Millisecond) // enough time for the call to begin waiting; if it is not, the call still gets the lock
		released := time.Now()
		if err := hold.Release(t.Context()); err != nil && !errors.Is(err, core.ErrUnavailable) {
			t.Error(err)
		}
		if !call.True() {
			t.Fatal("Java did not get the redlock that Go has released")
		}
		t.Logf("Java got the redlock %s after the release", call.OK().To.Sub(released).Round(10*time.Microsecond))
		if _, _, err := lock.Acquire(t.Context(), core.WaitTime(0)); !errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("Go tries the redlock that Java holds: got %v, want ErrNotAcquired", err)
		}
		had := make(chan time.Time, 1)
		go func() {
			_, hold, err := lock.Acquire(t.Context(), core.WaitTime(20*time.Second))
			had <- time.Now()
			if err != nil {
				t.Error(err)
				return
			}
			_ = hold.Release(t.Context()) // one server may be dead
		}()
		time.Sleep(50 * time.Millisecond) // as above
		released = theirs.Unlock().OK().From
		t.Logf("Go got the redlock %s after the release", (<-had).Sub(released).Round(10*time.Microsecond))
	}
	check(unique("redlock"))
	redlockTurns(t, s, java, own)
	servers[1].Kill()
	check(unique("redlock"))
}

// redlockTurns lets callers of both sides take turns.
func redlockTurns(t *testing.T, s *site, java []*interop.Client, own []*core.Client) {
	t.Helper()
	name := unique("redlock")
	var inside atomic.Int64
	var running sync.WaitGroup
	enter := func() {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%d holders at a time", n)
		}
		runtime.Gosched()
		inside.Add(-1)
	}
	for range 2 {
		running.Go(func() {
			for range 5 {
				_, hold, err := core.Redlock(name, own...).Acquire(t.Context(), core.WaitTime(30*time.Second))
				if err != nil {
					t.Error(err)
					return
				}
				enter()
				if err := hold.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		running.Go(func() {
			lock := s.java.Thread(t).Redlock(name, java...)
			for range 5 {
				if lock.TryFor(30*time.Second, time.Minute).True() {
					enter()
					lock.Unlock().OK()
				}
			}
		})
	}
	running.Wait()
}
