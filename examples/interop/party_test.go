package interop_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/interop"
)

// party is one side that acquires locks. Tests for both languages are written once, for two parties.
type party interface {
	String() string
	// ask starts to wait for a lock. The channel receives a grant with the lock or an error.
	ask(t *testing.T, k kind, name string) <-chan grant
	// awaitWaiter returns when a caller that asked for the lock waits for it between two attempts. The caller must be the
	// first of its side that waits for this key.
	awaitWaiter(t *testing.T, s *site, k kind, name string)
	// try makes one attempt.
	try(t *testing.T, k kind, name string) (grant, bool)
}

// grant is a held lock with a watchdog.
type grant struct {
	err   error // the reason that the lock is not held
	at    time.Time
	field string // of the holder
	// free releases the lock. began is the time at which the call of unlock started.
	free func(t *testing.T) (began time.Time, err error)
}

// release releases a held lock.
func (g grant) release(t *testing.T) (began time.Time) {
	t.Helper()
	began, err := g.free(t)
	if err != nil {
		t.Fatalf("release: %v", err)
	}
	return began
}

// take waits for the lock for at most half a minute.
func take(t *testing.T, p party, k kind, name string) grant {
	t.Helper()
	return receive(t, p.ask(t, k, name), p.String()+" to have "+name)
}

// patience is longer than the lease of 30 s, because a waiter of Java that missed its message tries again only after the
// lease. Each test reports such a waiter as late.
const patience = 45 * time.Second

func receive(t *testing.T, grants <-chan grant, what string) grant {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case g := <-grants:
		if g.err != nil {
			t.Fatalf("waited for %s: %v", what, g.err)
		}
		return g
	case <-limit.C:
		t.Fatalf("waited %s for %s", patience, what)
	}
	return grant{}
}

// wantRefused checks that a party does not get the lock in one attempt.
func wantRefused(t *testing.T, p party, k kind, name string) {
	t.Helper()
	if _, got := p.try(t, k, name); got {
		t.Fatalf("%s got %s, which another caller holds", p, name)
	}
}

// goParty is a client of package core. Every caller is a separate holder.
type goParty struct{ locks *core.Client }

func (p goParty) String() string { return "Go" }

func (p goParty) ask(t *testing.T, k kind, name string) <-chan grant {
	t.Helper()
	grants := make(chan grant, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, hold, err := k.lock(p.locks, name).Acquire(ctx)
		if err != nil {
			grants <- grant{err: err}
			return
		}
		grants <- held(hold)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return grants
}

func (p goParty) awaitWaiter(t *testing.T, _ *site, _ kind, name string) {
	t.Helper()
	eventually(t, "a waiter for "+name, func() bool { return p.locks.Stats().Waiters > 0 })
	settle()
}

func (p goParty) try(t *testing.T, k kind, name string) (grant, bool) {
	t.Helper()
	_, hold, err := k.lock(p.locks, name).Acquire(t.Context(), core.WaitTime(0))
	if errors.Is(err, core.ErrNotAcquired) {
		return grant{}, false
	}
	if err != nil {
		t.Fatalf("Go tries %s: %v", name, err)
	}
	return held(hold), true
}

func held(hold *core.Hold) grant {
	return grant{at: time.Now(), field: hold.Field(), free: func(t *testing.T) (time.Time, error) {
		began := time.Now()
		return began, hold.Release(t.Context())
	}}
}

// javaParty is a client of Redisson. Every call uses a separate thread.
type javaParty struct{ client *interop.Client }

func (p javaParty) String() string { return "Java" }

func (p javaParty) ask(t *testing.T, k kind, name string) <-chan grant {
	t.Helper()
	thread := p.client.Thread(t)
	field, lock := thread.Field(), thread.Lock(k.java, k.names(name)...)
	call := lock.Lock()
	grants := make(chan grant, 1)
	go func() { // it stops with the process, at the latest
		<-call.Done()
		if a := call.Answer(); a.Err != nil {
			grants <- grant{err: a.Err}
		} else {
			grants <- heldBy(lock, field, a)
		}
	}()
	return grants
}

func (p javaParty) awaitWaiter(t *testing.T, s *site, k kind, name string) {
	t.Helper()
	if k.waited == nil {
		settle()
		return
	}
	eventually(t, "a waiter for "+name, func() bool {
		return slices.ContainsFunc(k.names(name), func(key string) bool { return k.waited(t, s, key) })
	})
	// A message 1 wakes only the threads that sleep: Redisson drops it between a thread's last attempt and its sleep.
	eventually(t, "a sleeping waiter for "+name, func() bool {
		return slices.ContainsFunc(k.names(name), func(key string) bool { return p.client.Sleeps(t, key) })
	})
}

// settle gives a new waiter the time for its attempts before it sleeps. If the time is too short, one of these attempts
// acquires the lock, and the test still passes.
func settle() { time.Sleep(5*time.Millisecond + rand.N(10*time.Millisecond)) } // no assertion depends on this time

func (p javaParty) try(t *testing.T, k kind, name string) (grant, bool) {
	t.Helper()
	thread := p.client.Thread(t)
	lock := thread.Lock(k.java, k.names(name)...)
	call := lock.TryOnce()
	if !call.True() {
		return grant{}, false
	}
	return heldBy(lock, thread.Field(), call.OK()), true
}

func heldBy(lock interop.Held, field string, a interop.Answer) grant {
	return grant{at: a.To, field: field, free: func(t *testing.T) (time.Time, error) {
		freed := lock.Unlock().Answer()
		return freed.From, freed.Err
	}}
}

// direction is a pair of the party that holds and the party that waits.
type direction struct{ holder, waiter party }

func (d direction) String() string { return d.waiter.String() + " after " + d.holder.String() }

// bothWays returns the two directions.
func bothWays(java *interop.Client, locks *core.Client) []direction {
	return []direction{
		{holder: goParty{locks}, waiter: javaParty{java}}, // Java first: see awaitWaiter
		{holder: javaParty{java}, waiter: goParty{locks}},
	}
}
