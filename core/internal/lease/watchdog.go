package lease

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/dueheap"
)

// Config is what a [Watchdog] works with. All of it is needed.
type Config struct {
	Start   time.Time     // of the client; all times are counted from it
	TTL     time.Duration // what a renewal sets
	Timeout time.Duration // of one renewal and one question; several fit into TTL
	Landing time.Duration // a command without an answer may land for so long

	Renewer Renewer
	Spawn   func(work func(ctx context.Context)) // runs background work; after the end of the client it need not

	Over error // cause of a loss: the deadline has passed
	Gone error // cause of a loss: Redis says that there is another holder, or none
}

// Watchdog is the one scheduler of a client: it renews leases in time, and loses those
// whose deadline has passed. Renewals of one moment travel together.
type Watchdog struct {
	cfg  Config
	wake chan struct{} // the first look has changed; capacity 1

	mu    sync.Mutex
	heap  dueheap.Heap[*schedule]
	ahead time.Duration // how far the wall clock was from the monotonic one when the heap was ordered
	alarm time.Duration // when the scheduler looks next, since the client's start
	idle  chan struct{} // closed when the last lease has gone; nil if nobody waits for that
}

// NewWatchdog makes the watchdog of a client. It does nothing before Run.
func NewWatchdog(cfg Config) *Watchdog {
	return &Watchdog{cfg: cfg, wake: make(chan struct{}, 1)}
}

// watch puts a lease under watch, or looks again at one that is.
func (w *Watchdog) watch(l *Lease, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !l.Held() {
		return // lost or released in this instant
	}
	s := &l.schedule
	if s.renewAt == 0 && l.wanted() {
		s.renewAt = at.Sub(w.cfg.Start) + w.period()
	}
	if !s.Queued() {
		w.heap.Push(s)
	}
	w.replan(s, at)
}

// update looks again at the deadline of a lease that is under watch.
func (w *Watchdog) update(l *Lease) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replan(&l.schedule, now)
}

// replan puts a lease where it belongs, and wakes the scheduler if it would look too late.
// The mutex is held.
func (w *Watchdog) replan(s *schedule, now time.Time) {
	if !s.Queued() {
		return
	}
	s.plan(now)
	w.heap.Fix(s)
	if s.next >= w.alarm {
		return
	}
	w.alarm = s.next
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// period is a third of the TTL, less some jitter so that a fleet that was started together
// does not renew together.
func (w *Watchdog) period() time.Duration {
	third := w.cfg.TTL / 3
	return third - rand.N(third/10+1)
}

func (w *Watchdog) forget(l *Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(&l.schedule)
}

// drop takes a lease out of the heap. The mutex is held.
func (w *Watchdog) drop(s *schedule) {
	w.heap.Remove(s)
	if w.heap.Len() == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

// Count is how many leases are under watch.
func (w *Watchdog) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heap.Len()
}

// Leases are those under watch.
func (w *Watchdog) Leases() []*Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	leases := make([]*Lease, w.heap.Len())
	for i, s := range w.heap.All() {
		leases[i] = s.lease
	}
	return leases
}

// Drained is closed when nothing is under watch: everything that was is lost, or ended.
func (w *Watchdog) Drained() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.heap.Len() == 0 {
		done := make(chan struct{})
		close(done)
		return done
	}
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	return w.idle
}
