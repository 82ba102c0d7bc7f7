package interop_test

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

// semaphoreShared lets both sides share permits without owners. A release of either side wakes the other side.
func semaphoreShared(t *testing.T, s *site) {
	name, thread := unique("semaphore"), s.java.Thread(t)
	locks := s.locks(t)
	sem := locks.PlainSemaphore(name)
	if set, err := sem.TrySetPermits(t.Context(), 3); !set || err != nil {
		t.Fatal(set, err)
	}
	thread.Start("semaphore.acquire", named(name, "permits", "2")).OK()
	if err := sem.Acquire(t.Context(), 2, core.WaitTime(0)); !errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("Go takes 2 permits of 1: got %v", err)
	}
	waits := make(chan time.Time, 1)
	go func() {
		if err := sem.Acquire(t.Context(), 3, core.WaitTime(20*time.Second)); err != nil {
			t.Error(err)
		}
		waits <- time.Now()
	}()
	goParty{locks}.awaitWaiter(t, s, kind{}, name)
	released := thread.Start("semaphore.release", named(name, "permits", "2")).OK().From
	wantSoon(t, "Go", released, <-waits)
	s.wantValue(t, name, "0")

	call := thread.Start("semaphore.acquire", named(name, "permits", "2"))
	eventually(t, "Java to wait", func() bool { return s.listeners(t, name, semaphoreChannel(name)) > 0 })
	settle()
	released = time.Now()
	if err := sem.Release(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	wantSoon(t, "Java", released, call.OK().To)
	s.wantValue(t, name, "1")
	s.conserved(t, name, sem, func(take bool) {
		verb := "semaphore.release"
		if take {
			verb = "semaphore.acquire"
		}
		thread := s.java.Thread(t)
		thread.Start(verb, named(name, "permits", "1")).OK()
	})
	s.wantValue(t, name, "1")
}

func wantSoon(t *testing.T, who string, released, at time.Time) {
	t.Helper()
	t.Logf("%s got the permit %s after the release", who, at.Sub(released).Round(10*time.Microsecond))
	if took := at.Sub(released); took > wokenWithin {
		t.Errorf("%s waited %s after the release, want at most %s", who, took, wokenWithin)
	}
}

// conserved lets callers of both sides acquire and release the only permit of a semaphore in turns.
func (s *site) conserved(t *testing.T, name string, sem core.PlainSemaphore, java func(take bool)) {
	t.Helper()
	var running sync.WaitGroup
	var inside, most atomic.Int64
	enter := func() { most.Store(max(most.Load(), inside.Add(1))) }
	for range 3 {
		running.Go(func() {
			for range 20 {
				if err := sem.Acquire(t.Context(), 1, core.WaitTime(20*time.Second)); err != nil {
					t.Error(err)
					return
				}
				enter()
				inside.Add(-1)
				if err := sem.Release(t.Context(), 1); err != nil {
					t.Error(err)
				}
			}
		})
		running.Go(func() {
			for range 20 {
				java(true)
				enter()
				inside.Add(-1)
				java(false)
			}
		})
	}
	running.Wait()
	if most.Load() > 1 {
		t.Errorf("%s: %d callers held the only permit at the same time", name, most.Load())
	}
}

// permitsShared lets both sides share permits with leases. Each side wakes the other and counts its permits. Java
// releases a permit of Go by its id, and Go notices the loss.
func permitsShared(t *testing.T, s *site) {
	name, thread := unique("permits"), s.java.Thread(t)
	locks := s.locks(t, core.WithWatchdog(forcedLease))
	pool := locks.Semaphore(name, 0)
	if !thread.Start("permits.trySetPermits", named(name, "permits", "2")).True() {
		t.Fatal("trySetPermits: got false")
	}
	ctx, first, err := pool.Acquire(t.Context(), core.WaitTime(0))
	if err != nil {
		t.Fatal(err)
	}
	id := thread.Start("permits.acquire", named(name)).OK().Value
	if score := s.deadline(t, name, first.Field()); score < 1e12 || score == neverExpires {
		t.Errorf("deadline of Go's permit: got %.0f", score)
	}
	if n, err := pool.Acquired(t.Context()); n != 2 || err != nil {
		t.Errorf("Acquired: got %d, %v, want 2", n, err)
	}
	if n := thread.Start("permits.acquiredPermits", named(name)).Number(); n != 2 {
		t.Errorf("acquiredPermits: got %d, want 2", n)
	}
	waits := make(chan *core.Hold, 1)
	go func() {
		_, hold, err := pool.Acquire(t.Context(), core.WaitTime(20*time.Second))
		if err != nil {
			t.Error(err)
		}
		waits <- hold
	}()
	goParty{locks}.awaitWaiter(t, s, kind{}, name)
	released := thread.Start("permits.release", named(name, "id", id)).OK().From
	second := <-waits
	wantSoon(t, "Go", released, time.Now())
	call := thread.Start("permits.tryAcquire", named(name, "wait", "20000", "lease", "60000"))
	eventually(t, "Java to wait", func() bool { return s.listeners(t, name, semaphoreChannel(name)) > 0 })
	settle()
	released = time.Now()
	if err := second.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantSoon(t, "Java", released, call.OK().To)
	leased := call.OK().Value

	if !thread.Start("permits.tryRelease", named(name, "id", first.Field())).True() {
		t.Error("Java releases the permit of Go by its id: got false")
	}
	awaitEnd(t, ctx, core.ErrLost)
	thread.Start("permits.release", named(name, "id", leased)).OK()
	s.wantValue(t, name, "2")
	s.permitsConserved(t, name, pool)
	s.wantValue(t, name, "2")
	s.wantGone(t, permitLeases(name))
}

// permitsConserved lets callers of both sides acquire and release two permits, some with a lease that expires.
func (s *site) permitsConserved(t *testing.T, name string, pool core.Semaphore) {
	t.Helper()
	var running sync.WaitGroup
	var inside, most atomic.Int64
	for i := range 3 {
		running.Go(func() {
			for range 15 {
				_, hold, err := pool.Acquire(t.Context(), core.WaitTime(20*time.Second))
				if err != nil {
					t.Error(err)
					return
				}
				most.Store(max(most.Load(), inside.Add(1)))
				inside.Add(-1)
				if err := hold.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		running.Go(func() {
			thread := s.java.Thread(t)
			for range 15 {
				id := thread.Start("permits.tryAcquire", named(name, "wait", "20000", "lease", strconv.Itoa(60000+i))).OK().Value
				most.Store(max(most.Load(), inside.Add(1)))
				inside.Add(-1)
				thread.Start("permits.release", named(name, "id", id)).OK()
			}
		})
	}
	running.Wait()
	if most.Load() > 2 {
		t.Errorf("%d callers held two permits at the same time", most.Load())
	}
}

// permitsComeBack lets the lease of a permit of either side expire. The other side, which waits, gets the
// permit.
func permitsComeBack(t *testing.T, s *site) {
	name, thread := unique("permits"), s.java.Thread(t)
	pool := s.locks(t).Semaphore(name, 1)
	_, hold, err := pool.Acquire(t.Context(), core.WaitTime(0), core.LeaseTime(500*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	ends := time.Now().Add(hold.Remaining())
	had := thread.Start("permits.tryAcquire", named(name, "wait", "20000", "lease", "500")).OK()
	if had.Value == "" || had.To.Before(ends.Add(-20*time.Millisecond)) || had.To.After(ends.Add(wokenWithin)) {
		t.Errorf("Java has %q %s after the lease of Go", had.Value, had.To.Sub(ends))
	}
	_, hold, err = pool.Acquire(t.Context(), core.WaitTime(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(had.To); took > 500*time.Millisecond+wokenWithin {
		t.Errorf("Go waited %s for the end of a lease of 500 ms", took)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
	s.wantValue(t, name, "1")
	s.wantGone(t, permitLeases(name))
}

// latchShared lets each side open a latch for which the other side waits.
func latchShared(t *testing.T, s *site) {
	name, thread := unique("latch"), s.java.Thread(t)
	locks := s.locks(t)
	latch := locks.CountDownLatch(name)
	if set, err := latch.TrySetCount(t.Context(), 2); !set || err != nil {
		t.Fatal(set, err)
	}
	if thread.Start("latch.trySetCount", named(name, "count", "5")).True() {
		t.Error("Java could set the count of a closed latch")
	}
	waits := s.java.Thread(t).Start("latch.await", named(name))
	eventually(t, "Java to wait", func() bool { return s.listeners(t, name, latchChannel(name)) > 0 })
	settle()
	thread.Start("latch.countDown", named(name)).OK()
	released := time.Now()
	if err := latch.CountDown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !waits.True() {
		t.Error("await: got false")
	}
	wantSoon(t, "Java", released, waits.OK().To)
	s.wantGone(t, name)

	if !thread.Start("latch.trySetCount", named(name, "count", "2")).True() {
		t.Error("trySetCount of an open latch: got false")
	}
	opened := make(chan time.Time, 1)
	go func() {
		if err := latch.Await(t.Context(), core.WaitTime(20*time.Second)); err != nil {
			t.Error(err)
		}
		opened <- time.Now()
	}()
	goParty{locks}.awaitWaiter(t, s, kind{}, name)
	if err := latch.CountDown(t.Context()); err != nil {
		t.Fatal(err)
	}
	released = thread.Start("latch.countDown", named(name)).OK().From
	wantSoon(t, "Go", released, <-opened)
	s.wantGone(t, name)
}
