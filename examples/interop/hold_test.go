package interop_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/interop"
)

// renewalKeepsOut lets each side hold a lock for more than two leases while the other side attempts again and
// again.
func renewalKeepsOut(t *testing.T, s *site, k kind) {
	for _, d := range bothWays(s.brief, s.locks(t, core.WithWatchdog(briefLease))) {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			name := unique("renewed")
			holder := take(t, d.holder, k, name)
			tries := 0
			for end := time.Now().Add(briefLease*2 + briefLease/5); time.Now().Before(end); tries++ {
				wantRefused(t, d.waiter, k.rivalKind(), name)
				time.Sleep(briefLease / 10) // between checks, for more than two leases
			}
			s.wantHeld(t, k, name, holder.field, "1")
			holder.release(t)
			take(t, d.waiter, k.rivalKind(), name).release(t)
			t.Logf("%d attempts refused", tries)
		})
	}
}

// noticeWithin limits the time until a holder notices a forced release. That happens at its next renewal, after a third
// of the lease. The limit is well before the lease expires.
const (
	forcedLease  = 9 * time.Second
	noticeWithin = 7 * time.Second
)

// forcedByJava lets Java release a lock of Go by force and acquire it.
func forcedByJava(t *testing.T, s *site, k kind) {
	locks := s.locks(t, core.WithWatchdog(forcedLease))
	name := unique("forced")
	ctx, hold, err := k.lock(locks, name).Acquire(t.Context(), core.WaitTime(0))
	if err != nil {
		t.Fatal(err)
	}
	forced := time.Now()
	if !s.java.Thread(t).Lock(k.forceKind(), k.names(name)[0]).ForceUnlock().True() {
		t.Error("forceUnlock of a lock that Go holds: got false")
	}
	rival := k.rivalKind()
	grants := javaParty{s.java}.ask(t, rival, name)
	awaitEnd(t, ctx, core.ErrLost)
	if took := time.Since(forced); took > noticeWithin {
		t.Errorf("noticed after %s, want at most %s", took, noticeWithin)
	}
	if err := hold.Release(t.Context()); !errors.Is(err, core.ErrLost) {
		t.Errorf("Release: got %v, want ErrLost", err)
	}
	next := receive(t, grants, "Java")
	s.wantHeld(t, rival, name, next.field, "1")
	next.release(t)
}

// forceKind returns the kind with which Java releases a key of the lock by force.
func (k kind) forceKind() interop.Kind {
	if k.keys != nil {
		return interop.Lock
	}
	return k.java
}

// forcedByGo lets Go release a lock of Java by force and acquire it. Java finds out when it unlocks.
func forcedByGo(t *testing.T, s *site, k kind) {
	java, own := javaParty{s.java}, goParty{s.locks(t)}
	name := unique("forced")
	holder := take(t, java, k, name)
	if was, err := k.lock(own.locks, name).ForceRelease(t.Context()); !was || err != nil {
		t.Errorf("ForceRelease of a lock that Java holds: got %t, %v", was, err)
	}
	next := take(t, own, k.rivalKind(), name)
	_, err := holder.free(t)
	wantNotHeld(t, err)
	s.wantHeld(t, k.rivalKind(), name, next.field, "1")
	next.release(t)
	take(t, java, k, name).release(t)
}

// evictedByGo lets an operator in Go take a lock from a holder in Java, which the operator names. The message wakes a
// waiter in Java, and the holder finds out when it unlocks. If another holder has the lock, that holder keeps it.
func evictedByGo(t *testing.T, s *site, k kind) {
	java, locks := javaParty{s.java}, s.locks(t)
	name := unique("evicted")
	holder := take(t, java, k, name)
	waiter := java.ask(t, k.rivalKind(), name)
	java.awaitWaiter(t, s, k.rivalKind(), name)
	key := k.names(name)[0]
	seen, err := locks.Evict(t.Context(), key, "0e6b1a52-1a3c-4d65-9c53-8d4c8a0b7f11:1")
	if !errors.Is(err, core.ErrNotHeld) || len(seen.Holders) != 1 || !strings.HasPrefix(seen.Holders[0].Field, holder.field) {
		t.Fatalf("Evict of another holder: got %+v, %v, want ErrNotHeld and the holder %s", seen, err, holder.field)
	}
	evicted := time.Now()
	was, err := locks.Evict(t.Context(), key, seen.Holders[0].Field) // the field of a writer ends with ":write"
	if err != nil || len(was.Holders) != 1 {
		t.Errorf("Evict of a lock that Java holds: got %+v, %v, want the holder %s", was, err, holder.field)
	}
	next := receive(t, waiter, "Java")
	if took := next.at.Sub(evicted); took > noticeWithin {
		t.Errorf("the waiter got the lock after %s, want at most %s: no message woke it", took, noticeWithin)
	}
	_, err = holder.free(t)
	wantNotHeld(t, err)
	s.wantHeld(t, k.rivalKind(), name, next.field, "1")
	next.release(t)
}

// wantNotHeld checks the exception of Redisson for a lock that no longer exists.
func wantNotHeld(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "IllegalMonitorStateException") {
		t.Errorf("unlock of a lost lock: got %v, want IllegalMonitorStateException", err)
	}
}

func awaitEnd(t *testing.T, ctx context.Context, want error) {
	t.Helper()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	select {
	case <-ctx.Done():
	case <-limit.C:
		t.Fatal("the context of the hold has not ended")
	}
	if got := context.Cause(ctx); !errors.Is(got, want) {
		t.Fatalf("the context of the hold ended with %v, want %v", got, want)
	}
}

// countsOfHolds lets each side re-enter its lock. The other side gets the lock only after the last release.
func countsOfHolds(t *testing.T, s *site, k kind) {
	t.Run("Go", func(t *testing.T) { t.Parallel(); reenteredByGo(t, s, k) })
	t.Run("Java", func(t *testing.T) { t.Parallel(); reenteredByJava(t, s, k) })
}

func reenteredByGo(t *testing.T, s *site, k kind) {
	java, name := javaParty{s.java}, unique("reentered")
	lock := k.lock(s.locks(t), name)
	ctx, outer, err := lock.Acquire(t.Context(), core.WaitTime(0))
	if err != nil {
		t.Fatal(err)
	}
	_, inner, err := lock.Acquire(ctx, core.WaitTime(0))
	if err != nil {
		t.Fatal(err)
	}
	s.wantHeld(t, k, name, outer.Field(), "2")
	wantRefused(t, java, k.rivalKind(), name)
	if err := inner.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantHeld(t, k, name, outer.Field(), "1")
	wantRefused(t, java, k.rivalKind(), name)
	if err := outer.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	take(t, java, k.rivalKind(), name).release(t)
	s.wantFree(t, k, name)
}

func reenteredByJava(t *testing.T, s *site, k kind) {
	own, name := goParty{s.locks(t)}, unique("reentered")
	thread := s.java.Thread(t)
	lock, field := thread.Lock(k.java, k.names(name)...), thread.Field()
	lock.Lock().OK()
	lock.Lock().OK()
	s.wantHeld(t, k, name, field, "2")
	wantRefused(t, own, k.rivalKind(), name)
	lock.Unlock().OK()
	s.wantHeld(t, k, name, field, "1")
	wantRefused(t, own, k.rivalKind(), name)
	lock.Unlock().OK()
	take(t, own, k.rivalKind(), name).release(t)
	s.wantFree(t, k, name)
}
