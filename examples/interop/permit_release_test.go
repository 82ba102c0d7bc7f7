package interop_test

import (
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

// permitsReleasedByID makes Go release permits of Java by their ids, with a lease and without. That wakes waiters of both
// sides, and Java finds out. A permit that is not acquired is reported as not held.
func permitsReleasedByID(t *testing.T, s *site) {
	name, thread, other := unique("permits"), s.java.Thread(t), s.java.Thread(t)
	locks := s.locks(t)
	pool := locks.Semaphore(name, 0)
	if err := pool.SetPermits(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	forGood := thread.Start("permits.acquire", named(name)).OK().Value
	leased := thread.Start("permits.tryAcquire", named(name, "wait", "1000", "lease", "60000")).OK().Value

	waits := other.Start("permits.acquire", named(name))
	eventually(t, "Java to wait", func() bool { return s.listeners(t, name, semaphoreChannel(name)) > 0 })
	settle()
	released := time.Now()
	if err := pool.ReleasePermit(t.Context(), forGood); err != nil {
		t.Fatal(err)
	}
	wantSoon(t, "Java", released, waits.OK().To)
	next := waits.OK().Value
	if thread.Start("permits.tryRelease", named(name, "id", forGood)).True() {
		t.Error("Java could release a permit that Go has released")
	}
	wantNotHeldPermit(t, pool, forGood)

	got := make(chan time.Time, 1)
	waiter := s.locks(t)
	go func() {
		_, hold, err := waiter.Semaphore(name, 0).Acquire(t.Context(), core.WaitTime(20*time.Second))
		got <- time.Now()
		if err != nil {
			t.Error(err)
		} else if err := hold.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	goParty{waiter}.awaitWaiter(t, s, kind{}, name)
	released = time.Now()
	if err := pool.ReleasePermit(t.Context(), leased); err != nil {
		t.Fatal(err)
	}
	wantSoon(t, "Go", released, <-got)
	a := thread.Start("permits.release", named(name, "id", leased)).Answer()
	if a.Err == nil {
		t.Error("Java releases a permit that Go has released: no exception")
	}
	if err := pool.ReleasePermit(t.Context(), next); err != nil {
		t.Error(err)
	}
	eventually(t, "Go to have released its own", func() bool { return s.master(name).Get(t.Context(), name).Val() == "2" })
	s.wantGone(t, permitLeases(name))

	over := thread.Start("permits.tryAcquire", named(name, "lease", "100")).OK()
	time.Sleep(time.Until(over.To.Add(150 * time.Millisecond))) // until its lease has expired
	wantNotHeldPermit(t, pool, over.Value)
	s.wantValue(t, name, "2")
	s.wantGone(t, permitLeases(name))
}

func wantNotHeldPermit(t *testing.T, pool core.Semaphore, id string) {
	t.Helper()
	if err := pool.ReleasePermit(t.Context(), id); !errors.Is(err, core.ErrNotHeld) {
		t.Errorf("ReleasePermit of a permit that is not held: got %v, want ErrNotHeld", err)
	}
}

// permitsRenewed makes Go hold the only permit for more than two leases, while Java tries again and again. Then the process
// is killed, and Java gets the permit after the lease.
func permitsRenewed(t *testing.T, s *site) {
	name, thread := unique("permits"), s.java.Thread(t)
	locks := s.locks(t, core.WithWatchdog(briefLease))
	_, hold, err := locks.Semaphore(name, 1).Acquire(t.Context(), core.WaitTime(0))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(briefLease*2 + briefLease/5); time.Now().Before(end); time.Sleep(briefLease / 10) { // between polls, for more than two leases
		if id := thread.Start("permits.tryAcquire", named(name)).OK().Value; id != "" {
			t.Fatal("Java got the only permit, which Go holds")
		}
	}
	call := thread.Start("permits.tryAcquire", named(name, "wait", "20000", "lease", "60000"))
	kill := startHolder(t, s, "permit="+name+"/killed")
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if call.OK().Value == "" {
		t.Error("Java did not get the permit that Go has released")
	}

	killed := name + "/killed"
	if id := thread.Start("permits.tryAcquire", named(killed)).OK().Value; id != "" {
		t.Error("Java got the permit that a process of Go holds")
	}
	call = thread.Start("permits.tryAcquire", named(killed, "wait", "20000", "lease", "60000"))
	gone := time.Now()
	kill()
	if took := call.OK().To.Sub(gone); call.OK().Value == "" || took > goneWithin {
		t.Errorf("Java has %q %s after the process of Go was killed, want at most %s", call.OK().Value, took, goneWithin)
	}
}
