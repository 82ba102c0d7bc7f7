package interop_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/interop"
)

// gate is an object other than a lock for which callers wait: permits or a latch. Each side can shut it, open it, and
// pass it.
type gate struct {
	name    string
	channel func(name string) string
	own     func(locks *core.Client, name string) ownGate
	java    func(thread *interop.Thread, name string) javaGate
	// inCluster reports whether a name can be used in a Cluster; nil: all names.
	inCluster func(name string) bool
}

// ownGate is a gate in Go. shut returns the function that opens it, and pass waits until it is open.
type ownGate struct {
	shut func(ctx context.Context) (open func(ctx context.Context) error, err error)
	pass func(ctx context.Context) error
}

// javaGate is a gate for a thread of Java. The result of the verb that shuts it is an argument of the verb that opens
// it.
type javaGate struct {
	shut func() string
	open func(value string) *interop.Call
	pass func() *interop.Call
}

var gates = []gate{
	{name: "semaphore", channel: semaphoreChannel, own: ownSemaphore, java: javaSemaphore},
	{name: "permits", channel: semaphoreChannel, own: ownPermits, java: javaPermits},
	{name: "latch", channel: latchChannel, own: ownLatch, java: javaLatch, inCluster: withoutBraces},
}

func ownSemaphore(locks *core.Client, name string) ownGate {
	sem := locks.PlainSemaphore(name)
	return ownGate{
		shut: func(ctx context.Context) (func(context.Context) error, error) {
			_, err := sem.TrySetPermits(ctx, 0)
			return func(ctx context.Context) error { return sem.Release(ctx, 1) }, err
		},
		pass: func(ctx context.Context) error { return sem.Acquire(ctx, 1) },
	}
}

func javaSemaphore(thread *interop.Thread, name string) javaGate {
	one := named(name, "permits", "1")
	return javaGate{
		shut: func() string { return thread.Start("semaphore.trySetPermits", named(name, "permits", "0")).OK().Value },
		open: func(string) *interop.Call { return thread.Start("semaphore.release", one) },
		pass: func() *interop.Call { return thread.Start("semaphore.acquire", one) },
	}
}

func ownPermits(locks *core.Client, name string) ownGate {
	pool := locks.Semaphore(name, 1)
	return ownGate{
		shut: func(ctx context.Context) (func(context.Context) error, error) {
			_, hold, err := pool.Acquire(ctx, core.WaitTime(0))
			return hold.Release, err
		},
		pass: func(ctx context.Context) error { _, _, err := pool.Acquire(ctx); return err }, // closed with the client
	}
}

func javaPermits(thread *interop.Thread, name string) javaGate {
	return javaGate{
		shut: func() string {
			thread.Start("permits.trySetPermits", named(name, "permits", "1")).OK()
			return thread.Start("permits.acquire", named(name)).OK().Value
		},
		open: func(id string) *interop.Call { return thread.Start("permits.release", named(name, "id", id)) },
		pass: func() *interop.Call { return thread.Start("permits.acquire", named(name)) },
	}
}

func ownLatch(locks *core.Client, name string) ownGate {
	latch := locks.CountDownLatch(name)
	return ownGate{
		shut: func(ctx context.Context) (func(context.Context) error, error) {
			_, err := latch.TrySetCount(ctx, 1)
			return latch.CountDown, err
		},
		pass: func(ctx context.Context) error { return latch.Await(ctx) },
	}
}

func javaLatch(thread *interop.Thread, name string) javaGate {
	return javaGate{
		shut: func() string { return thread.Start("latch.trySetCount", named(name, "count", "1")).OK().Value },
		open: func(string) *interop.Call { return thread.Start("latch.countDown", named(name)) },
		pass: func() *interop.Call { return thread.Start("latch.await", named(name)) },
	}
}

func withoutBraces(name string) bool { return !strings.ContainsAny(name, "{}") }

// gateKeeper is a side that opens and passes a gate.
type gateKeeper interface {
	String() string
	// shut closes a gate. It returns the function that opens the gate and returns the time at which that began.
	shut(t *testing.T, g gate, name string) (open func() time.Time)
	// pass starts a caller that waits for a gate to open, and returns when it waits. The channel gets the time at
	// which the caller has passed.
	pass(t *testing.T, s *site, g gate, name, key string) <-chan grant
}

func (p goParty) shut(t *testing.T, g gate, name string) (open func() time.Time) {
	t.Helper()
	opens, err := g.own(p.locks, name).shut(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return func() time.Time {
		began := time.Now()
		if err := opens(t.Context()); err != nil {
			t.Error(err)
		}
		return began
	}
}

func (p goParty) pass(t *testing.T, s *site, g gate, name, _ string) <-chan grant {
	t.Helper()
	passed := make(chan grant, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := g.own(p.locks, name).pass(ctx)
		passed <- grant{err: err, at: time.Now()}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	p.awaitWaiter(t, s, kind{}, name)
	return passed
}

func (p javaParty) shut(t *testing.T, g gate, name string) (open func() time.Time) {
	t.Helper()
	at := g.java(p.client.Thread(t), name)
	value := at.shut()
	return func() time.Time { return at.open(value).OK().From }
}

func (p javaParty) pass(t *testing.T, s *site, g gate, name, key string) <-chan grant {
	t.Helper()
	call := g.java(p.client.Thread(t), name).pass()
	passed := make(chan grant, 1)
	go func() { // it ends with the process, at the latest
		<-call.Done()
		a := call.Answer()
		passed <- grant{err: a.Err, at: a.To}
	}()
	eventually(t, "Java to wait for "+key, func() bool { return s.listeners(t, key, g.channel(key)) > 0 })
	settle()
	return passed
}

// passTime returns the time from the call that opens a gate to the return of the waiter.
func passTime(t *testing.T, s *site, g gate, opener, waiter gateKeeper, name, key string) time.Duration {
	t.Helper()
	open := opener.shut(t, g, name)
	grants := waiter.pass(t, s, g, name, key)
	nothing := len(grants)
	opened := open()
	took := receive(t, grants, waiter.String()+" to pass "+name).at.Sub(opened)
	if nothing != 0 || took < 0 {
		t.Errorf("%s passed the closed %s", waiter, name)
	}
	return took
}

// gatesWake makes each side open a gate for which the other side waits, and prints the times.
func gatesWake(t *testing.T, s *site) {
	for _, g := range gates {
		t.Run(g.name, func(t *testing.T) {
			java, own, other := javaParty{s.java}, goParty{s.locks(t)}, goParty{s.locks(t)}
			for _, d := range []struct{ opener, waiter gateKeeper }{{own, java}, {java, own}, {java, java}, {own, other}} {
				what := d.waiter.String() + " after " + d.opener.String()
				p50, late := measureRounds(t, s, what, g.name, func() time.Duration {
					name := unique("gate")
					return passTime(t, s, g, d.opener, d.waiter, name, name)
				})
				if mixed := d.opener.String() != d.waiter.String(); mixed && (p50 > usuallyWithin || late > maxLate) {
					t.Errorf("%s: half of the waiters waited %s or longer, %d longer than %s", what, p50, late, wokenWithin)
				}
			}
		})
	}
}

// gatesHaveNames checks that both sides use the same gate for a name, plain and with a name mapper.
func gatesHaveNames(t *testing.T, s *site) {
	for _, spelling := range spellings {
		config := s.config
		config.Prefix = spelling.prefix
		java, own := javaParty{s.open(t, s.jvm, config)}, goParty{s.locks(t, spelling.own)}
		for i, name := range lockNames {
			for _, g := range gates {
				name := name + ":" + g.name + strconv.Itoa(i) // their types differ
				key := spelling.prefix + name
				if s.topology == cluster && g.inCluster != nil && !g.inCluster(key) {
					continue
				}
				for _, d := range []struct{ opener, waiter gateKeeper }{{own, java}, {java, own}} {
					if took := passTime(t, s, g, d.opener, d.waiter, name, key); took > wokenWithin {
						t.Errorf("%s%s: %s waited %s", spelling.name, name, d.waiter, took)
					}
					for _, left := range []string{key, permitLeases(key)} { // one permit is taken
						if err := s.master(key).Del(t.Context(), left).Err(); err != nil {
							t.Error(err)
						}
					}
				}
			}
		}
	}
}
