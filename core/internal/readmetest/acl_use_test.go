package readmetest_test

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
)

var scriptCommand = regexp.MustCompile(`call\('([A-Z]+)'`)

// aclGroup contains the locks that a user with some of the rights uses.
type aclGroup struct {
	user  string
	rows  []string // the rows of the table whose rights the user needs in addition to the block
	locks []lockOf
	also  func(t *testing.T, one, other *core.Client, seen *seen) // may be nil
}

// lockOf describes how to create and acquire a lock.
type lockOf struct {
	name string
	of   func(*core.Client) core.Lock
	opts []core.AcquireOption

	several bool // a MultiLock, which has neither State nor ForceRelease
	permit  bool // has no re-entry
}

func aclGroups() []aclGroup {
	withToken := func(name string, of func(*core.Client, string) core.Lock) lockOf {
		return lockOf{name: name, of: func(c *core.Client) core.Lock { return of(c, name) }, opts: []core.AcquireOption{core.WithToken()}}
	}
	without := func(name string, of func(*core.Client, string) core.Lock) lockOf {
		return lockOf{name: name, of: func(c *core.Client) core.Lock { return of(c, name) }}
	}
	permit := func(name string) lockOf {
		return lockOf{name: name, of: func(c *core.Client) core.Lock { return c.Semaphore(name, 1).Lock }, permit: true}
	}
	return []aclGroup{
		{user: "plain", also: handOff, locks: []lockOf{
			without("order:1", (*core.Client).Lock), without("spin", (*core.Client).SpinLock), without("of{42}", (*core.Client).Lock),
			{name: "multi{1}", several: true, of: func(c *core.Client) core.Lock { return c.MultiLock("multi{1}", "multi{1}b") }},
		}},
		{user: "token", rows: []string{tokens}, locks: []lockOf{
			withToken("t:order", (*core.Client).Lock), withToken("t:spin", (*core.Client).SpinLock),
			without("t:fenced", (*core.Client).FencedLock), without("t:of{42}", (*core.Client).FencedLock),
		}},
		{user: "rw", rows: []string{readWrite}, also: readAndWrite, locks: []lockOf{
			without("read", (*core.Client).ReadLock), without("write", (*core.Client).WriteLock), without("of{43}", (*core.Client).WriteLock),
		}},
		{user: "rwtoken", rows: []string{tokens, readWrite}, locks: []lockOf{withToken("t:write", (*core.Client).WriteLock)}},
		{user: "fair", rows: []string{fair}, locks: []lockOf{
			without("fair", (*core.Client).FairLock), without("fair{44}", (*core.Client).FairLock),
		}},
		{user: "fairtoken", rows: []string{tokens, fair}, locks: []lockOf{withToken("t:fair", (*core.Client).FairLock)}},
		{user: "group", rows: []string{groupLocks}, locks: []lockOf{
			{name: "group", several: true, of: func(c *core.Client) core.Lock { return c.GroupLock("group", "a", "b") }},
			without("group{46}", func(c *core.Client, name string) core.Lock { return c.GroupLock(name, "a") }),
		}},
		{user: "counts", rows: []string{semaphores}, also: countEverything, locks: []lockOf{
			permit("permit"), permit("permit{45}"),
		}},
	}
}

// use calls every operation of every lock of the group.
func (g aclGroup) use(t *testing.T, connect func() redis.UniversalClient) {
	t.Helper()
	for _, l := range g.locks {
		seen := &seen{renewed: make(chan struct{})}
		one, other := openLocks(t, connect(), core.WithObserver(seen.observer()), core.WithWatchdog(3*time.Second)), openLocks(t, connect())
		l.useAll(t, one, other, seen)
	}
	if g.also != nil {
		seen := &seen{renewed: make(chan struct{})}
		g.also(t, openLocks(t, connect(), core.WithObserver(seen.observer())), openLocks(t, connect()), seen)
	}
}

// useAll calls every operation of a lock while another client wants it.
func (l lockOf) useAll(t *testing.T, one, other *core.Client, seen *seen) {
	t.Helper()
	lock := l.of(one)
	ok(t, one.Ready(t.Context()))
	ctx, hold, err := lock.Acquire(t.Context(), l.opts...)
	if err != nil {
		t.Errorf("%s: %v", l.name, err)
		return
	}
	if len(l.opts) > 0 && hold.Token() == 0 {
		t.Errorf("%s: no token", l.name)
	}
	<-seen.renewed
	ok(t, hold.Refresh(ctx, time.Minute))
	if !l.several {
		_, err = lock.State(ctx)
		ok(t, err)
	}
	for _, wait := range []time.Duration{0, 500 * time.Millisecond} { // one attempt, and a waiter that gives up; another client holds the lock
		_, third, err := l.of(other).Acquire(t.Context(), append(l.opts, core.WaitTime(wait))...)
		if err == nil {
			ok(t, third.Release(t.Context())) // a second reader
		} else if !errors.Is(err, core.ErrNotAcquired) {
			t.Errorf("%s: %v", l.name, err)
		}
	}
	var callers sync.WaitGroup
	for _, locks := range []*core.Client{one, one, other, other} {
		callers.Go(func() {
			err := l.of(locks).Do(t.Context(), func(ctx context.Context) error {
				if l.permit {
					return nil
				}
				return l.of(locks).Do(ctx, func(context.Context) error { return nil })
			}, append(l.opts, core.WaitTime(time.Minute))...)
			if err != nil {
				t.Errorf("%s: %v", l.name, err)
			}
		})
	}
	for l.name != "read" && (one.Stats().Waiters < 2 || other.Stats().Waiters < 2) {
		time.Sleep(time.Millisecond) // between two polls
	}
	ok(t, hold.Release(ctx))
	callers.Wait()
	l.leaveAndForce(t, one)
}

func (l lockOf) leaveAndForce(t *testing.T, locks *core.Client) {
	t.Helper()
	lock := l.of(locks)
	_, left, err := lock.Acquire(t.Context(), l.opts...)
	if err != nil {
		t.Errorf("%s: %v", l.name, err)
		return
	}
	ok(t, left.Leave(t.Context(), time.Minute))
	if !l.several {
		_, err = lock.ForceRelease(t.Context())
		ok(t, err)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// handOff lets a caller of a client hand a lock on to another caller of that client.
func handOff(t *testing.T, one, other *core.Client, seen *seen) {
	t.Helper()
	contend(t, one, other)
	if !seen.handoff.Load() {
		t.Error("no lock was passed on inside a client, so the test does not cover that")
	}
}

// readAndWrite lets readers and writers use a lock together.
func readAndWrite(t *testing.T, locks, _ *core.Client, _ *seen) {
	t.Helper()
	read, write := locks.ReadLock("map"), locks.WriteLock("map")
	ok(t, write.Do(t.Context(), func(ctx context.Context) error {
		return read.Do(ctx, func(context.Context) error { return nil })
	}))
	var writers sync.WaitGroup
	ok(t, read.Do(t.Context(), func(ctx context.Context) error {
		writers.Go(func() { ok(t, write.Do(t.Context(), func(context.Context) error { return nil })) })
		for ctx.Err() == nil && locks.Stats().Waiters < 1 {
			time.Sleep(time.Millisecond) // between two polls
		}
		return read.Do(ctx, func(context.Context) error { return nil })
	}))
	writers.Wait()
}

// countEverything uses semaphores and latches together with a lock.
func countEverything(t *testing.T, one, other *core.Client, _ *seen) {
	t.Helper()
	permits := one.Semaphore("reports", 0)
	_, err := permits.TrySetPermits(t.Context(), 1)
	ok(t, err)
	ok(t, permits.SetPermits(t.Context(), 3))
	ok(t, permits.AddPermits(t.Context(), 1))
	_, hold, err := permits.Acquire(t.Context())
	ok(t, err)
	_, err = permits.Available(t.Context())
	ok(t, err)
	_, err = permits.Acquired(t.Context())
	ok(t, err)
	ok(t, other.Semaphore("reports", 0).ReleasePermit(t.Context(), hold.Field()))
	if err := hold.Release(t.Context()); !errors.Is(err, core.ErrNotHeld) {
		t.Errorf("got %v, want the returned permit", err)
	}

	numbers := one.PlainSemaphore("numbers")
	_, err = numbers.TrySetPermits(t.Context(), 2)
	ok(t, err)
	ok(t, numbers.Acquire(t.Context(), 2))
	var waiter sync.WaitGroup
	waiter.Go(func() { ok(t, other.PlainSemaphore("numbers").Acquire(t.Context(), 1)) })
	for other.Stats().Waiters < 1 {
		time.Sleep(time.Millisecond) // between two polls
	}
	ok(t, numbers.Release(t.Context(), 1))
	waiter.Wait()
	ok(t, numbers.AddPermits(t.Context(), 2))
	_, err = numbers.Available(t.Context())
	ok(t, err)
	_, err = numbers.Drain(t.Context())
	ok(t, err)

	latch := one.CountDownLatch("latch")
	_, err = latch.TrySetCount(t.Context(), 1)
	ok(t, err)
	waiter.Go(func() { ok(t, other.CountDownLatch("latch").Await(t.Context())) })
	for other.Stats().Waiters < 1 {
		time.Sleep(time.Millisecond) // between two polls
	}
	_, err = latch.Count(t.Context())
	ok(t, err)
	ok(t, latch.CountDown(t.Context()))
	waiter.Wait()
	_, err = latch.TrySetCount(t.Context(), 1)
	ok(t, err)
	_, err = latch.Delete(t.Context())
	ok(t, err)
}

// seen records background events of a client.
type seen struct {
	handoff atomic.Bool
	once    sync.Once
	renewed chan struct{}
}

func (s *seen) observer() *core.Observer {
	return &core.Observer{HoldEnd: s.observeHoldEnd, Renewal: s.observeRenewal}
}

func (s *seen) observeHoldEnd(_ context.Context, r core.HoldResult) {
	if r.HandedOff {
		s.handoff.Store(true)
	}
}

func (s *seen) observeRenewal(context.Context, core.Renewal) { s.once.Do(func() { close(s.renewed) }) }

// contend lets callers of all clients wait for one lock. The first holder keeps it until all other callers of
// its client wait.
func contend(t *testing.T, clients ...*core.Client) {
	t.Helper()
	const each = 8
	ctx, first, err := clients[0].Lock("order:42").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for _, locks := range clients {
		for range each {
			callers.Go(func() {
				err := locks.Lock("order:42").Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(time.Minute))
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	for _, locks := range clients {
		for ctx.Err() == nil && locks.Stats().Waiters < each {
			time.Sleep(time.Millisecond) // between two polls
		}
	}
	if err := first.Release(ctx); err != nil {
		t.Error(err)
	}
	callers.Wait()
}
