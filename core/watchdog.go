package core

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// watchdog is the one scheduler of a client: it renews leases in time, and ends
// holds whose deadline has passed. Renewals of one moment travel together.
type watchdog struct {
	client *Client
	wake   chan struct{} // the first deadline has changed; capacity 1

	mu    sync.Mutex
	heap  ownerHeap
	ahead time.Duration      // how far the wall clock was from the monotonic one, when last looked at
	alarm time.Duration      // when the scheduler looks next, since the client's start
	idle  chan struct{}      // closed when the last hold has gone; nil if nobody waits for that
	passe map[*owner]waiting // renewals on the wire that somebody waits for
}

type waiting = chan struct{}

func newWatchdog(c *Client) *watchdog {
	return &watchdog{client: c, wake: make(chan struct{}, 1), passe: make(map[*owner]waiting)}
}

// add puts an owner under watch, or adds a renewed hold to one that is.
func (w *watchdog) add(o *owner, renewed bool, at time.Time) {
	if renewed {
		o.wantRenewal()
	}
	now := at.Sub(w.client.start)
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.over() {
		return // lost in this instant
	}
	if renewed && o.renewAt == 0 {
		o.renewAt = now + w.period()
	}
	o.next = w.due(o)
	if o.index < 0 {
		heap.Push(&w.heap, o)
	} else {
		heap.Fix(&w.heap, o.index)
	}
	w.expect(o)
}

// update looks again at the deadline of an owner.
func (w *watchdog) update(o *owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.index < 0 {
		return
	}
	o.next = w.due(o)
	heap.Fix(&w.heap, o.index)
	w.expect(o)
}

// expect wakes the scheduler if it would look too late for o. The mutex is held.
func (w *watchdog) expect(o *owner) {
	if o.next >= w.alarm {
		return
	}
	w.alarm = o.next
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// period is a third of the watchdog lease, less some jitter so that a fleet that
// was started together does not renew together.
func (w *watchdog) period() time.Duration {
	third := w.client.cfg.watchdog / 3
	return third - rand.N(third/10+1)
}

// due is when the watchdog has to look at an owner.
func (w *watchdog) due(o *owner) time.Duration {
	end := time.Duration(o.deadline.mono.Load())
	if o.renewAt > 0 && !o.renewing {
		return min(end, o.renewAt)
	}
	return end
}

// remove ends the watch.
func (w *watchdog) remove(o *owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.index < 0 {
		return
	}
	w.drop(o.index)
}

// drop takes an owner out of the heap. The mutex is held.
func (w *watchdog) drop(index int) {
	heap.Remove(&w.heap, index)
	if len(w.heap) == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

// count is how many owners are under watch.
func (w *watchdog) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.heap)
}

// owners is a copy of what is under watch.
func (w *watchdog) owners() []*owner {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*owner(nil), w.heap...)
}

// drained is closed when nothing is under watch.
func (w *watchdog) drained() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.heap) == 0 {
		done := make(chan struct{})
		close(done)
		return done
	}
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	return w.idle
}

// run is the scheduler, until ctx ends.
func (w *watchdog) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(w.look())
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-timer.C:
		}
	}
}

// look handles what is due, and says when the next look is.
func (w *watchdog) look() time.Duration {
	now := time.Now()
	over, renew, next := w.collect(now)
	over = append(over, w.jumped(now)...)
	for _, o := range over {
		if o.checkClock(now); o.alive(now) {
			w.add(o, false, now) // renewed in this instant
		}
	}
	if len(renew) > 0 {
		w.client.spawn(func(ctx context.Context) { w.renew(ctx, renew) })
	}
	return next
}

// jumped gives the owners whose deadline has passed on the wall clock only: the
// machine was suspended, and the heap, which is in monotonic order, does not show
// them.
func (w *watchdog) jumped(now time.Time) (over []*owner) {
	ahead := time.Duration(now.UnixNano()-w.client.start.UnixNano()) - now.Sub(w.client.start)
	w.mu.Lock()
	defer w.mu.Unlock()
	if ahead-w.ahead > clockJump {
		for _, o := range w.heap {
			if o.deadline.passed(w.client.start, now) {
				over = append(over, o)
			}
		}
	}
	w.ahead = ahead
	return over
}

// A step of the wall clock that is looked into, and how often it is looked for
// while locks are held.
const (
	clockJump  = 100 * time.Millisecond
	clockCheck = time.Second
)

// coalesce is the part of the lease by which renewals are brought forward to
// travel with others.
const coalesce = 30

// collect takes from the heap what is due.
func (w *watchdog) collect(now time.Time) (over, renew []*owner, next time.Duration) {
	at := now.Sub(w.client.start)
	soon := at + w.client.cfg.watchdog/coalesce
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.alarm = at + next }()
	for len(w.heap) > 0 {
		o := w.heap[0]
		switch {
		case o.deadline.passed(w.client.start, now):
			w.drop(0)
			over = append(over, o)
			continue
		case o.renewing || o.renewAt == 0 || o.renewAt > soon || len(renew) == 0 && o.renewAt > at:
			return over, renew, min(max(o.next-at, time.Millisecond), clockCheck)
		}
		o.renewing = true
		o.next = w.due(o)
		heap.Fix(&w.heap, 0)
		renew = append(renew, o)
	}
	return over, renew, time.Hour
}

// ownerHeap orders owners by the time at which the watchdog looks at them.
type ownerHeap []*owner

func (h ownerHeap) Len() int           { return len(h) }
func (h ownerHeap) Less(i, j int) bool { return h[i].next < h[j].next }
func (h ownerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push adds an owner; it is for container/heap.
func (h *ownerHeap) Push(x any) {
	o := x.(*owner) //nolint:forcetypeassert,errcheck // only owners are pushed
	o.index = len(*h)
	*h = append(*h, o)
}

// Pop takes the last one; it is for container/heap.
func (h *ownerHeap) Pop() any {
	last := len(*h) - 1
	o := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	o.index = -1
	return o
}
