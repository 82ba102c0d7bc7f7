package interop_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// nextScript matches the next script about a key of a lock.
func nextScript(k kind, name string) faultproxy.Match {
	return faultproxy.Once(faultproxy.All(
		faultproxy.Command("eval", "evalsha"),
		faultproxy.Containing(k.names(name)[0]),
	))
}

// proxied creates a client of package core whose commands pass through a proxy. It uses the kind once, so that
// Redis caches the scripts.
func (s *site) proxied(t *testing.T, k kind, opts ...core.Option) (*faultproxy.Proxy, goParty) {
	t.Helper()
	proxy := faultproxy.New(t, s.addr)
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	own := goParty{newLocks(t, rdb, opts...)}
	take(t, own, k, unique("warm")).release(t)
	return proxy, own
}

// lostRepliesOfGo loses the replies of an acquisition and of a release of Go. The lock is held once, Java is excluded,
// and the release wakes Java.
func lostRepliesOfGo(t *testing.T, s *site, k kind) {
	java := javaParty{s.java}
	proxy, own := s.proxied(t, k)
	name := unique("lost")

	lost := proxy.DropReply(nextScript(k, name))
	holder := take(t, own, k, name)
	wantHit(t, lost, "acquire")
	if k.name == "read" { // the second attempt gets the lock in addition to the first one, whose hold is then removed
		eventually(t, "one reader", func() bool { return len(s.hash(t, name)) == len(readLayout(holder.field, "1")) })
	}
	s.wantHeld(t, k, name, holder.field, "1")
	wantRefused(t, java, k.rivalKind(), name)

	grants := java.ask(t, k.rivalKind(), name)
	java.awaitWaiter(t, s, k.rivalKind(), name)
	lost = proxy.DropReply(nextScript(k, name))
	released := holder.release(t)
	wantHit(t, lost, "release")
	next := receive(t, grants, "Java")
	if took := next.at.Sub(released); took > wokenWithin {
		t.Errorf("Java waited %s after the release, want at most %s", took, wokenWithin)
	}
	next.release(t)
	s.wantFree(t, k, name)
}

func wantHit(t *testing.T, r *faultproxy.Rule, what string) {
	t.Helper()
	if r.Hits() != 1 {
		t.Errorf("%s: %d replies were lost, want 1", what, r.Hits())
	}
}

// lostRepliesOfJava loses the replies of an unlock and of a lock of Java. Redisson then releases no other holder's lock,
// and nothing remains for longer than its lease.
func lostRepliesOfJava(t *testing.T, s *site, k kind) {
	proxy := faultproxy.New(t, s.addr)
	config := s.config
	config.Addrs, config.Timeout, config.Retries = []string{proxy.Addr()}, 500*time.Millisecond, "1"
	java, own := javaParty{s.jvm.Open(t, config)}, goParty{s.locks(t)}
	take(t, java, k, unique("warm")).release(t)
	name := unique("lost")

	holder := take(t, java, k, name)
	grants := own.ask(t, k.rivalKind(), name)
	own.awaitWaiter(t, s, k.rivalKind(), name)
	lost := proxy.DropReply(nextScript(k, name))
	_, err := holder.free(t)
	wantHit(t, lost, "unlock")
	t.Logf("the reply of unlock was lost: %v", err)
	next := receive(t, grants, "Go")
	s.wantHeld(t, k.rivalKind(), name, next.field, "1")
	next.release(t)

	lost = proxy.DropReply(nextScript(k, name))
	thread := java.client.Thread(t)
	a := thread.Lock(k.java, name).LockFor(briefLease).Answer()
	wantHit(t, lost, "lock")
	t.Logf("the reply of lock was lost: %v; in Redis: %v", a.Err, s.master(name).HGetAll(t.Context(), name).Val())
	next = take(t, own, k.rivalKind(), name)
	if took := next.at.Sub(a.To); took > briefLease+wokenWithin {
		t.Errorf("Go got the lock %s after the answer, want at most %s", took, briefLease+wokenWithin)
	}
	s.wantHeld(t, k.rivalKind(), name, next.field, "1")
	next.release(t)
}

// cutOff cuts a holder in Go off from Redis. The holder's context is canceled before Java gets
// the lock.
func cutOff(t *testing.T, s *site, k kind) {
	java := javaParty{s.java}
	proxy, own := s.proxied(t, k, core.WithWatchdog(briefLease))
	name := unique("cut")
	ctx, hold, err := k.lock(own.locks, name).Acquire(t.Context(), core.WaitTime(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	grants := java.ask(t, k.rivalKind(), name)
	java.awaitWaiter(t, s, k.rivalKind(), name)

	proxy.BlackHole(true)
	time.Sleep(50 * time.Millisecond) // an answer on its way extends the deadline once more
	deadline := time.Now().Add(hold.Remaining())
	awaitEnd(t, ctx, core.ErrLost)
	next := receive(t, grants, "Java")
	if next.at.Before(deadline) {
		t.Errorf("Java got the lock %s before the deadline of the holder", deadline.Sub(next.at))
	}
	if took := next.at.Sub(deadline); took > briefLease+wokenWithin {
		t.Errorf("Java got the lock %s after the deadline of the holder, want at most %s", took, briefLease+wokenWithin)
	}
	if err := hold.Release(t.Context()); !errors.Is(err, core.ErrLost) {
		t.Errorf("Release: got %v, want ErrLost", err)
	}
	s.wantHeld(t, k.rivalKind(), name, next.field, "1")
	next.release(t)
}
