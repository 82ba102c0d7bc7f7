package history_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/history"
)

// load defines the operations of a worker's goroutines and how often they happen.
type load struct {
	Goroutines int
	Watchdog   time.Duration
	Backend    time.Duration
	Think      time.Duration // the longest pause between two operations
	Work       time.Duration // the longest usual hold
	Long       time.Duration // the longest hold, wait and fixed lease
	Step       time.Duration // the interval at which a working holder checks its context
	Special    int           // the percentage of holds that do more than a short update
	Edge       int           // the percentage of operations that hold until the lease expires
}

// The keys, by their use. The index of a key is the index of its register.
var keys = []string{
	0: busiest, 1: "k1", 2: "k2", 3: "k3", 4: "k4",
	5: "m5", 6: "m6", 7: "m7", 8: "m8", // also used by MultiLocks
	9:  "f9", // clients also release it by force
	10: edge,
	11: "fair", 12: "fenced", 13: "spin", // used as the kind of lock in the name
	14: readWrite, // for readers and writers
	15: semaphore,
	16: "f-fair", 17: "f-rw", 18: "f-permits", // clients also release them by force
	19: relay, 20: "relay-spin", // passed from caller to caller in a process
	21: "non-reentrant", 22: "a", 23: "b", 24: "c", // three values of a group
	25: foreign, // Redisson has it, too
}

const (
	busiest = "hot"   // held often and briefly, so that it always has waiters
	edge    = "edge"  // held until its short lease has expired
	relay   = "relay" // several callers of a process want it at the same time
	foreign = "java"  // threads of Redisson want it, too
	group   = "group" // the key of the group

	readWrite = "rw"
	semaphore = "permits"
	permits   = 2 // of the semaphore
)

var (
	single = keys[1:5]
	many   = keys[5:9]
	values = keys[22:25] // of the group

	forced     = []target{{keys[9], history.Reentrant}, {keys[9], history.Reentrant}, {keys[9], history.Reentrant}, {keys[16], history.Fair}, {keys[17], history.ReadLock}, {keys[17], history.WriteLock}, {keys[18], history.Permit}}
	relayed    = []target{{keys[19], history.Reentrant}, {keys[19], history.Reentrant}, {keys[20], history.Spin}, {keys[21], history.NonReentrant}, {foreign, history.Reentrant}}
	semaphores = []string{semaphore, keys[18]}

	// kinds lists the locks of other kinds than the reentrant lock. A lock that is listed twice is used twice
	// as often.
	kinds = []target{
		{keys[11], history.Fair},
		{keys[11], history.Fair},
		{keys[12], history.Fenced},
		{keys[13], history.Spin},
		{keys[21], history.NonReentrant},
		{foreign, history.Reentrant},
		{foreign, history.Reentrant},
		{readWrite, history.ReadLock},
		{readWrite, history.ReadLock},
		{readWrite, history.WriteLock},
		{semaphore, history.Permit},
		{semaphore, history.Permit},
	}
)

// target names a lock and its kind.
type target struct {
	key  string
	lock history.Lock
}

// slot returns the index of the register of a key.
func slot(key string) int {
	for i, k := range keys {
		if k == key {
			return i
		}
	}
	panic("unknown key: " + key)
}

// registers holds the values that the locks guard. Nothing but the locks orders the accesses.
type registers interface {
	load(slot int) uint64
	store(slot int, value uint64)
}

// worker is one process: a client and the goroutines that use it.
type worker struct {
	load

	process int
	seed    uint64
	locks   *core.Client
	shared  registers
	now     func() time.Duration // the time since the beginning of the run
	note    func(history.Event)
	stop    chan struct{}

	running sync.WaitGroup
	values  atomic.Uint64 // the number of values so far, so that each is unique
}

func (w *worker) start() {
	for g := 1; g <= w.Goroutines; g++ {
		w.running.Go(func() { w.loop(g) })
	}
}

// finish ends the goroutines and closes the client.
func (w *worker) finish(ctx context.Context) error {
	close(w.stop)
	w.running.Wait()
	return w.locks.Close(ctx)
}

func (w *worker) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

func (w *worker) loop(goroutine int) {
	g := &caller{worker: w, id: goroutine, Rand: rand.New(rand.NewPCG(w.seed, uint64(w.process)<<32|uint64(goroutine)))}
	for !w.stopped() {
		g.act()
		time.Sleep(g.upTo(w.Think)) // the pause between two operations
	}
}

// caller is one goroutine, with its own random numbers.
type caller struct {
	*worker
	*rand.Rand

	id  int
	ops int
}

// child returns a caller for another goroutine, with separate random numbers.
func (g *caller) child() *caller {
	return &caller{worker: g.worker, id: g.id, Rand: rand.New(rand.NewPCG(g.Uint64(), g.Uint64()))}
}

func (g *caller) upTo(d time.Duration) time.Duration {
	return time.Duration(g.Int64N(int64(d) + 1))
}

func (g *caller) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *caller, from []T) T { return from[g.IntN(len(from))] }

// act performs one random operation.
func (g *caller) act() {
	switch n := g.IntN(100); {
	case n < g.Edge:
		g.hold(g.toTheEdge())
	case n < 18:
		g.hold(g.request([]string{busiest}))
	case n < 24:
		g.relay(pick(g, relayed))
	case n < 36:
		g.hold(g.request([]string{pick(g, single)}))
	case n < 42:
		g.hold(g.request([]string{pick(g, many)}))
	case n < 49:
		g.hold(g.request(g.several(many)))
	case n < 53:
		r := g.request(g.several(values))
		r.lock = history.Group
		g.hold(r)
	case n < 61:
		g.hold(g.requestOf(pick(g, forced)))
	case n < 64:
		g.force(pick(g, forced))
	default:
		g.hold(g.requestOf(pick(g, kinds)))
	}
}

// several returns a few of the keys, at most three: two or more for a MultiLock, one or more for a group lock.
func (g *caller) several(of []string) []string {
	names := append([]string{}, of...)
	g.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:len(names)-2+g.IntN(2)]
}

// request describes an acquisition.
type request struct {
	keys    []string
	lock    history.Lock
	opts    []core.AcquireOption
	ask     history.Ask
	cut     time.Duration // the time after which the context ends; 0: never
	soft    bool          // a cancel ends the context, not a deadline
	edge    bool          // the holder keeps the lock until its lease expires
	relayed bool          // the holder soon passes the lock on to the next caller
}

func (g *caller) requestOf(of target) request {
	r := g.request([]string{of.key})
	r.lock = of.lock
	return r
}

func (g *caller) request(keys []string) request {
	r := request{keys: keys, ask: history.Ask{Wait: history.NoWaitTime, Lease: g.Watchdog, Renewed: true}}
	switch n := g.IntN(10); {
	case n < 1:
		r.wait(0)
	case n < 3:
		r.wait(time.Millisecond + g.upTo(g.Work*4))
	case n < 7:
		r.wait(g.Long/4 + g.upTo(g.Long))
	case n < 8:
		r.cut = time.Millisecond + g.upTo(g.Work)
	default:
		r.cut = g.Long + g.upTo(g.Long)
	}
	r.soft = g.chance(50)
	if g.chance(40) {
		r.ask.Lease, r.ask.Renewed = (g.Long/20 + g.upTo(g.Long)).Truncate(time.Millisecond), false
		r.opts = append(r.opts, core.LeaseTime(r.ask.Lease))
	} else if g.chance(25) {
		r.ask.MaxHold = (time.Millisecond + g.upTo(g.Long/2)).Truncate(time.Millisecond)
		r.opts = append(r.opts, core.MaxHold(r.ask.MaxHold))
	}
	return r
}

// toTheEdge returns a request whose short lease the holder uses up while others wait, for the key edge or for
// a lock of another kind.
func (g *caller) toTheEdge() request {
	r := request{keys: []string{edge}, ask: history.Ask{Lease: (g.Long/50 + g.upTo(g.Long/5)).Truncate(time.Millisecond)}}
	if g.chance(30) {
		of := pick(g, kinds)
		r.keys, r.lock = []string{of.key}, of.lock
	}
	r.edge = true
	r.opts = append(r.opts, core.LeaseTime(r.ask.Lease))
	r.wait(g.Long + g.upTo(g.Long))
	return r
}

// relay lets several callers of the process want one lock at the same time, so that each passes it on to the
// next. Fixed leases are so short that a run may reach the end of its lease.
func (g *caller) relay(of target) {
	r := request{keys: []string{of.key}, lock: of.lock, ask: history.Ask{Lease: g.Watchdog, Renewed: true}, relayed: true}
	if g.chance(60) {
		r.ask.Lease, r.ask.Renewed = (5*time.Millisecond + g.upTo(g.upTo(60*time.Millisecond))).Truncate(time.Millisecond), false
		r.opts = append(r.opts, core.LeaseTime(r.ask.Lease))
	}
	r.wait(g.Long/4 + g.upTo(g.Long))
	var all sync.WaitGroup
	for range 2 + g.IntN(7) {
		next := g.child()
		all.Go(func() { next.hold(r) })
	}
	all.Wait()
}

func (r *request) wait(d time.Duration) {
	r.ask.Wait = d
	r.opts = append(r.opts, core.WaitTime(d))
}

func (g *caller) lock(names []string, kind history.Lock) core.Lock {
	switch {
	case kind == history.Group:
		return g.locks.GroupLock(group, names...)
	case len(names) > 1:
		return g.locks.MultiLock(names...)
	}
	return lockOf(g.locks, target{names[0], kind})
}

// lockOf returns the lock that a target names.
func lockOf(locks *core.Client, of target) core.Lock {
	switch of.lock {
	case history.Fair:
		return locks.FairLock(of.key)
	case history.Fenced:
		return locks.FencedLock(of.key)
	case history.Spin:
		return locks.SpinLock(of.key)
	case history.ReadLock:
		return locks.ReadLock(of.key)
	case history.WriteLock:
		return locks.WriteLock(of.key)
	case history.Permit:
		return locks.Semaphore(of.key, 0).Lock
	case history.NonReentrant:
		return locks.NonReentrantLock(of.key)
	case history.Group:
		return locks.GroupLock(group, of.key)
	case history.Reentrant:
	}
	return locks.Lock(of.key)
}

// acquire makes an acquisition with ctx. For a re-entry, ctx is the context of outer. If the acquisition
// fails, acquire records it and returns nil.
func (g *caller) acquire(ctx context.Context, r request, outer *held) *held {
	g.ops++
	e := history.Event{
		Kind: history.Acquire, Process: g.process, Goroutine: g.id, Keys: r.keys, Lock: r.lock,
		Owner: fmt.Sprintf("p%d.g%d.%d", g.process, g.id, g.values.Add(1)), Begin: g.now(),
	}
	if outer != nil {
		e.Owner, r.ask.Reentry = outer.event.Owner, true
	}
	queued := new(atomic.Int64)
	ctx, cancel, ended := g.bounded(context.WithValue(ctx, queuedKey{}, queued), r)
	ctx, hold, err := g.lock(r.keys, r.lock).Acquire(ctx, r.opts...)
	e.End = g.now()
	r.ask.Cut, r.ask.Queued = time.Duration(ended.Load()), time.Duration(queued.Load())
	e.Ask, e.Outcome, e.Note = &r.ask, outcome(err), text(err)
	if err != nil {
		cancel()
		g.note(e)
		return nil
	}
	e.Hold = &history.Hold{Field: hold.Field(), Token: hold.Token(), Alive: e.End}
	return &held{caller: g, event: e, ctx: ctx, cancel: cancel, hold: hold, edge: r.edge, relayed: r.relayed}
}

// queuedKey is the context key of the time at which Redis first refused an acquisition.
type queuedKey struct{}

// refusals creates an observer that records this time. From this time on a waiter of a fair lock has its
// place.
type refusals struct{ now func() time.Duration }

func (r refusals) observer() *core.Observer { return &core.Observer{Contention: r.observeContention} }

func (r refusals) observeContention(ctx context.Context, c core.Contention) {
	if queued, ok := ctx.Value(queuedKey{}).(*atomic.Int64); ok && c.TTL != 0 { // 0: Redis was not asked
		queued.Store(int64(r.now()))
	}
}

// bounded returns the context of a request and the time at which the context ends.
func (g *caller) bounded(ctx context.Context, r request) (context.Context, context.CancelFunc, *atomic.Int64) {
	ended := new(atomic.Int64)
	switch {
	case r.cut == 0:
		return ctx, func() {}, ended
	case r.soft:
		ctx, cancel := context.WithCancel(ctx)
		timer := time.AfterFunc(r.cut, func() {
			cancel()
			ended.Store(int64(g.now()))
		})
		return ctx, func() { timer.Stop(); cancel() }, ended
	}
	ended.Store(int64(g.now() + r.cut))
	ctx, cancel := context.WithTimeout(ctx, r.cut)
	return ctx, cancel, ended
}

// force releases a lock by force, whichever client holds it.
func (g *caller) force(of target) {
	e := history.Event{Kind: history.Force, Process: g.process, Goroutine: g.id, Keys: []string{of.key}, Lock: of.lock, Begin: g.now()}
	freed, err := lockOf(g.locks, of).ForceRelease(context.Background())
	e.End, e.Outcome, e.Note = g.now(), history.OK, text(err)
	switch {
	case err != nil:
		e.Outcome = outcome(err)
	case !freed:
		e.Outcome = history.Free
	}
	g.note(e)
}

// outcome returns the class of an error. A loss matches ErrNotHeld, too.
func outcome(err error) history.Outcome {
	for _, class := range []struct {
		sentinel error
		outcome  history.Outcome
	}{
		{core.ErrClosed, history.Closed},
		{core.ErrTooManyWaiters, history.Overload},
		{core.ErrLost, history.Lost},
		{core.ErrNotHeld, history.NotHeld},
		{core.ErrUnavailable, history.Unavailable},
		{context.Canceled, history.Canceled},
		{context.DeadlineExceeded, history.Canceled},
		{core.ErrNotAcquired, history.Busy},
	} {
		if errors.Is(err, class.sentinel) {
			return class.outcome
		}
	}
	if err == nil {
		return history.Acquired
	}
	return history.Other
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
