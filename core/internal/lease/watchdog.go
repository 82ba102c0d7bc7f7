package lease

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/dueheap"
)

// Config configures a [Watchdog]. All fields are required.
type Config struct {
	Start   time.Time     // start of the client; all times count from it
	TTL     time.Duration // TTL that a renewal sets
	Timeout time.Duration // time limit of one batch of renewals or questions; several fit into TTL
	Landing time.Duration // how long a command without an answer may still be executed

	Renewer Renewer
	Spawn   func(work func(ctx context.Context)) // runs work in the background; after the client was closed, it may drop the work

	Over error // cause of a loss: the deadline has passed
	Gone error // cause of a loss: Redis has another holder, or none
}

// Watchdog is the scheduler of a client. It renews leases in time and loses leases whose deadline has passed. Renewals
// that are due at the same time are sent together.
type Watchdog struct {
	cfg  Config
	wake chan struct{} // wakes Run when the next look has to be earlier; capacity 1

	mu    sync.Mutex
	heap  dueheap.Heap[*schedule]
	ahead time.Duration // how far the wall clock was ahead of the monotonic clock when the heap was ordered
	alarm time.Duration // time of the next look, since the client's start
	idle  chan struct{} // closed when the last lease leaves the heap; nil if no caller waits for that
}

// NewWatchdog returns the watchdog of a client. It does nothing before Run.
func NewWatchdog(cfg Config) *Watchdog {
	return &Watchdog{cfg: cfg, wake: make(chan struct{}, 1)}
}

// watch puts a lease under watch. If it is under watch already, watch plans the next look. It does nothing if the lease
// is not held.
func (w *Watchdog) watch(l *Lease, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !l.Held() {
		return // just lost or released
	}
	s := &l.schedule
	if s.renewAt == 0 && l.needsRenewal() {
		s.renewAt = at.Sub(w.cfg.Start) + w.period()
	}
	if !s.Queued() {
		w.heap.Push(s)
	}
	w.replan(s, at)
}

// update plans the next look at a lease, if it is under watch, by its new deadline.
func (w *Watchdog) update(l *Lease) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replan(&l.schedule, now)
}

// replan moves a lease to its place in the heap and wakes the scheduler if it would look too late. The caller holds the
// mutex.
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

// period returns a third of the TTL, less some jitter, so that processes that were started together do not renew at the
// same time.
func (w *Watchdog) period() time.Duration {
	third := w.cfg.TTL / 3
	return third - rand.N(third/10+1)
}

func (w *Watchdog) forget(l *Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(&l.schedule)
}

// drop removes a lease from the heap. The caller holds the mutex.
func (w *Watchdog) drop(s *schedule) {
	w.heap.Remove(s)
	if w.heap.Len() == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

// Count returns how many leases are under watch.
func (w *Watchdog) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heap.Len()
}

// Leases returns the leases under watch.
func (w *Watchdog) Leases() []*Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	leases := make([]*Lease, w.heap.Len())
	for i, s := range w.heap.All() {
		leases[i] = s.lease
	}
	return leases
}

// Drained returns a channel that is closed when no lease is under watch, because all are lost or ended.
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
