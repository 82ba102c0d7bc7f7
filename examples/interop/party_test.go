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

// party is one side that takes locks. What holds for both languages is written once, for two
// parties.
type party interface {
	String() string
	// ask begins to wait for a lock. The grant comes when it is held, or has the error.
	ask(t *testing.T, k kind, name string) <-chan grant
	// awaits returns once somebody who asked for the lock waits for it, in a moment between two
	// attempts. It must be the first of its side who waits for this key.
	awaits(t *testing.T, s *site, k kind, name string)
	// try makes one attempt.
	try(t *testing.T, k kind, name string) (grant, bool)
}

// grant is a lock that is held, with a watchdog.
type grant struct {
	err   error // why there is none
	at    time.Time
	field string // of the holder
	// free releases it; began is when the call of unlock began.
	free func(t *testing.T) (began time.Time, err error)
}

// release frees a lock that is held.
func (g grant) release(t *testing.T) (began time.Time) {
	t.Helper()
	began, err := g.free(t)
	if err != nil {
		t.Fatalf("release: %v", err)
	}
	return began
}

// take waits for the lock, for half a minute at most.
func take(t *testing.T, p party, k kind, name string) grant {
	t.Helper()
	return received(t, p.ask(t, k, name), p.String()+" to have "+name)
}

// patience is longer than the lease of 30 s at whose end a waiter of Java looks that has missed its
// message: it is late then, which each test judges.
const patience = 45 * time.Second

func received(t *testing.T, grants <-chan grant, what string) grant {
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

// refused makes sure that a party does not get the lock in one attempt.
func refused(t *testing.T, p party, k kind, name string) {
	t.Helper()
	if _, got := p.try(t, k, name); got {
		t.Fatalf("%s took %s, which is held", p, name)
	}
}

// goParty is a client of package core: every caller is a holder of its own.
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

func (p goParty) awaits(t *testing.T, _ *site, _ kind, name string) {
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

// javaParty is a client of Redisson: every call has a thread of its own.
type javaParty struct{ client *interop.Client }

func (p javaParty) String() string { return "Java" }

func (p javaParty) ask(t *testing.T, k kind, name string) <-chan grant {
	t.Helper()
	thread := p.client.Thread(t)
	field, lock := thread.Field(), thread.Lock(k.java, k.names(name)...)
	call := lock.Lock()
	grants := make(chan grant, 1)
	go func() { // ends with the process at the latest
		<-call.Done()
		if a := call.Answer(); a.Err != nil {
			grants <- grant{err: a.Err}
		} else {
			grants <- heldBy(lock, field, a)
		}
	}()
	return grants
}

func (p javaParty) awaits(t *testing.T, s *site, k kind, name string) {
	t.Helper()
	if k.waited != nil {
		eventually(t, "a waiter for "+name, func() bool {
			return slices.ContainsFunc(k.names(name), func(key string) bool { return k.waited(t, s, key) })
		})
	}
	settle()
}

// settle leaves who begins to wait the time for its attempts before it sleeps. Nothing goes
// wrong if that was not enough: the lock is then acquired by one of them.
func settle() { time.Sleep(5*time.Millisecond + rand.N(10*time.Millisecond)) } // no assertion rests on it

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

// direction is who holds, and who waits for it.
type direction struct{ holder, waiter party }

func (d direction) String() string { return d.waiter.String() + " after " + d.holder.String() }

// bothWays are the two directions.
func bothWays(java *interop.Client, locks *core.Client) []direction {
	return []direction{
		{holder: goParty{locks}, waiter: javaParty{java}}, // first: see awaits
		{holder: javaParty{java}, waiter: goParty{locks}},
	}
}
