package interop_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// lostRepliesOfCounts loses the reply of each operation of Go on a semaphore, permits and a latch. Java sees each
// operation once.
func lostRepliesOfCounts(t *testing.T, s *site) {
	proxy := faultproxy.New(t, s.addr)
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	locks, thread := newLocks(t, rdb), s.java.Thread(t)
	lost := func(what, name string, do func() error) {
		t.Helper()
		rule := proxy.DropReply(nextScript(kind{}, name))
		if err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		wantHit(t, rule, what)
	}
	want := func(verb, name string, n int64) {
		t.Helper()
		if got := thread.Start(verb, named(name)).Number(); got != n {
			t.Errorf("%s of Java: got %d, want %d", verb, got, n)
		}
	}

	name := unique("semaphore")
	sem := locks.PlainSemaphore(name)
	lost("TrySetPermits", name, func() error { _, err := sem.TrySetPermits(t.Context(), 3); return err })
	lost("Acquire", name, func() error { return sem.Acquire(t.Context(), 2) })
	want("semaphore.availablePermits", name, 1)
	lost("Release", name, func() error { return sem.Release(t.Context(), 2) })
	want("semaphore.availablePermits", name, 3)

	name = unique("permits")
	pool := locks.Semaphore(name, 0)
	lost("SetPermits", name, func() error { return pool.SetPermits(t.Context(), 3) })
	var hold *core.Hold
	lost("Acquire", name, func() (err error) { _, hold, err = pool.Acquire(t.Context()); return err })
	want("permits.acquiredPermits", name, 1)
	lost("Release", name, func() error { return hold.Release(t.Context()) })
	want("permits.availablePermits", name, 3)
	id := thread.Start("permits.acquire", named(name)).OK().Value
	lost("ReleasePermit", name, func() error { return pool.ReleasePermit(t.Context(), id) })
	want("permits.availablePermits", name, 3)
	want("permits.acquiredPermits", name, 0)

	name = unique("latch")
	latch := locks.CountDownLatch(name)
	lost("TrySetCount", name, func() error { _, err := latch.TrySetCount(t.Context(), 2); return err })
	waits := s.java.Thread(t).Start("latch.await", named(name))
	lost("CountDown", name, func() error { return latch.CountDown(t.Context()) })
	want("latch.getCount", name, 1)
	lost("CountDown", name, func() error { return latch.CountDown(t.Context()) })
	if !waits.True() {
		t.Error("await of Java: got false")
	}
	s.wantGone(t, name)
}

// slowLease leaves Redisson enough time to send a renewal again. Redisson waits for a second or two before it
// does so, and the time until the next renewal begins only then.
const slowLease = 6 * time.Second

// lostRenewals loses replies of renewals of a holder, two of Go and one of Java. The holder still excludes the other
// side with one hold, and releases the lock with one release.
func lostRenewals(t *testing.T, s *site, k kind) {
	proxy, own := s.proxied(t, k, core.WithWatchdog(briefLease))
	config := s.config
	config.Addrs, config.Watchdog, config.Timeout, config.Retries = []string{proxy.Addr()}, slowLease, 500*time.Millisecond, "2"
	for _, holds := range []struct {
		holder, waiter party
		lease          time.Duration
		lost           int
	}{
		{own, javaParty{s.java}, briefLease, 2},
		{javaParty{s.jvm.Open(t, config)}, goParty{s.locks(t)}, slowLease, 1},
	} {
		t.Run(holds.holder.String()+" holds", func(t *testing.T) {
			t.Parallel()
			name := unique("renewed")
			holder := take(t, holds.holder, k, name)
			end := time.Now().Add(holds.lease * 2)
			for range holds.lost {
				lost := proxy.DropReply(nextScript(k, name))
				eventually(t, "a renewal", func() bool { return lost.Hits() == 1 })
			}
			for time.Now().Before(end) {
				wantRefused(t, holds.waiter, k.rivalKind(), name)
				time.Sleep(briefLease / 10) // before the next poll, up to a limit
			}
			s.wantHeld(t, k, name, holder.field, "1")
			holder.release(t)
			take(t, holds.waiter, k.rivalKind(), name).release(t)
			s.wantFree(t, k, name)
		})
	}
}
