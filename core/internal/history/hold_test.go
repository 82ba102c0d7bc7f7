package history_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/history"
)

// held is a hold with the records of its holder. One goroutine at a time uses it.
type held struct {
	*caller

	event   history.Event
	ctx     context.Context //nolint:containedctx // the hold's own
	cancel  context.CancelFunc
	hold    *core.Hold
	depth   int  // the number of re-entries that are not released
	doubt   bool // the count in Redis may differ from depth
	edge    bool // the holder keeps it until the lease expires
	relayed bool // the holder soon passes the lock on to the next caller
}

// hold acquires, works, and releases.
func (g *caller) hold(r request) {
	if h := g.acquire(context.Background(), r, nil); h != nil {
		h.use()
	}
}

// use works under the hold in one of several ways and ends it.
func (h *held) use() {
	switch n := h.IntN(100); {
	case h.edge:
		h.workUntil(h.upTo(2 * h.Step)) // 0: until it is lost
	case h.relayed:
		h.passOn()
	case h.event.Keys[0] == busiest, !h.chance(h.Special):
		h.update(h.upTo(h.Work))
	case n < 20, n < 50 && !h.reenters():
		h.update(h.upTo(h.Long) / 2)
	case n < 40:
		h.reenter(1 + h.IntN(3))
	case n < 50:
		h.reenterConcurrently()
	case n < 60:
		h.handOver()
		return
	case n < 68 && h.reenters():
		h.handOverInner()
		return
	case n < 76:
		h.refresh()
	case n < 84:
		h.look()
	case n < 90:
		h.update(0)
		h.leave()
		return
	default:
		h.workUntilLost()
	}
	h.release()
}

// reenters reports whether the lock has re-entries.
func (h *held) reenters() bool {
	return h.event.Lock != history.Permit && h.event.Lock != history.NonReentrant
}

// moment is the length of a hold that passes the lock on to other holds of its run.
const moment = 5 * time.Millisecond

// passOn works for a moment, or until the lease ends.
func (h *held) passOn() {
	switch n := h.IntN(100); {
	case n < 25 && !h.event.Ask.Renewed:
		h.workUntil(h.upTo(moment))
		return
	case n < 45:
		h.look()
	case n < 60 && h.reenters():
		h.reenter(1)
	}
	h.update(h.upTo(moment))
}

// alive checks the context and records its state.
func (h *held) alive() bool {
	now := h.now()
	if h.ctx.Err() != nil {
		if h.event.Hold.Ended == 0 {
			h.event.Hold.Ended, h.event.Hold.Cause = h.now(), lossCause(h.ctx)
		}
		return false
	}
	h.event.Hold.Alive = now
	if left := h.hold.Remaining(); left > 0 {
		h.event.Hold.Safe = now + left
	}
	return true
}

func lossCause(ctx context.Context) history.Outcome {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, core.ErrLost):
		return history.Lost
	case errors.Is(cause, core.ErrClosed):
		return history.Closed
	default:
		return history.Canceled
	}
}

// work waits for d, or until the context ends. It checks the context at every step.
func (h *held) work(d time.Duration) (alive bool) {
	for end := h.now() + d; ; {
		if !h.alive() {
			return false
		}
		left := end - h.now()
		if left <= 0 {
			return true
		}
		time.Sleep(min(left, h.Step)) // the work
	}
}

// update reads the registers of the lock, works, and writes them. A reader only reads. The holder of a permit
// only works.
func (h *held) update(d time.Duration) {
	switch h.event.Lock {
	case history.ReadLock:
		h.read(d)
		return
	case history.Permit:
		h.work(d)
		return
	default:
	}
	values := make([]history.Update, 0, len(h.event.Keys))
	for _, key := range h.event.Keys {
		values = append(values, history.Update{Key: key, Read: h.shared.load(slot(key))})
	}
	if !h.work(d) {
		return
	}
	for i := range values {
		u := &values[i]
		u.Wrote = uint64(h.process)<<40 | h.values.Add(1)
		h.shared.store(slot(u.Key), u.Wrote)
		u.At = h.now()
		u.Certain = h.alive()
	}
	h.event.Hold.Updates = append(h.event.Hold.Updates, values...)
}

// read reads the register, works, and reads the register again.
func (h *held) read(d time.Duration) {
	key := h.event.Keys[0]
	r := history.Reading{Key: key, First: h.shared.load(slot(key))}
	if !h.work(d) {
		return
	}
	r.Last, r.At = h.shared.load(slot(key)), h.now()
	r.Certain = h.alive()
	h.event.Hold.Reads = append(h.event.Hold.Reads, r)
}

// reentryRequest returns a request for one key of the hold, or for all of them. A writer may ask for the read
// lock.
func (h *held) reentryRequest() request {
	names := h.event.Keys
	if h.chance(50) {
		names = []string{pick(h.caller, names)}
	}
	r := h.request(names)
	r.lock, r.cut = h.event.Lock, 0
	if r.lock == history.WriteLock && h.chance(50) {
		r.lock = history.ReadLock
	}
	return r
}

// reenter acquires the lock again inside its own hold, depth times.
func (h *held) reenter(depth int) {
	if depth == 0 {
		h.update(h.upTo(h.Work))
		return
	}
	inner := h.acquire(h.ctx, h.reentryRequest(), h)
	if inner == nil {
		h.doubt = true
		return
	}
	inner.doubt = h.doubt
	if inner.event.Lock == h.event.Lock {
		inner.depth = h.depth + 1
	}
	inner.look()
	inner.reenter(depth - 1)
	inner.release()
	h.doubt = h.doubt || inner.doubt || inner.event.Hold.Release.Outcome != history.OK
	h.look()
}

// reenterConcurrently lets two goroutines re-enter the lock at the same time.
func (h *held) reenterConcurrently() {
	var both sync.WaitGroup
	for range 2 {
		g, r := h.child(), h.reentryRequest()
		both.Go(func() {
			if inner := g.acquire(h.ctx, r, h); inner != nil {
				inner.work(g.upTo(g.Work))
				inner.release()
			}
		})
	}
	both.Wait()
	h.update(0)
}

// handOver moves the hold to another goroutine.
func (h *held) handOver() {
	h.alive()
	ctx, hold := h.hold.Handover()
	moved := &held{caller: h.child(), event: h.event, ctx: ctx, cancel: h.cancel, hold: hold, depth: h.depth}
	if err := h.hold.Release(context.Background()); !errors.Is(err, core.ErrNotHeld) {
		moved.event.Hold.Release.Twice = outcome(err) // of the handle whose hold was handed over
	}
	h.running.Go(func() {
		moved.update(moved.upTo(moved.Work * 4))
		moved.release()
	})
}

// handOverInner re-enters and hands the inner hold over. The outer hold may end before the inner one.
func (h *held) handOverInner() {
	if inner := h.acquire(h.ctx, h.reentryRequest(), h); inner != nil {
		inner.handOver()
	}
	h.release()
}

// refresh changes the lease and then works for at most about that lease.
func (h *held) refresh() {
	lease := (h.Long/20 + h.upTo(h.Long)/2).Truncate(time.Millisecond)
	h.event.Hold.Refreshed = true
	h.event.Hold.Safe = 0 // Refresh may lower it
	_ = h.hold.Refresh(context.Background(), lease)
	h.update(h.upTo(lease + h.Work))
}

// look asks Redis for the holder of the lock.
func (h *held) look() {
	if len(h.event.Keys) > 1 || !h.alive() {
		return
	}
	e := history.Event{
		Kind: history.Look, Process: h.process, Goroutine: h.id, Keys: h.event.Keys, Lock: h.event.Lock, Owner: h.event.Owner,
		Field: h.hold.Field(), Begin: h.now(), Outcome: history.OK, Count: h.depth + 1,
	}
	if h.doubt {
		e.Count = 0
	}
	state, err := h.lock(h.event.Keys, h.event.Lock).State(context.Background())
	e.End, e.Fields, e.Note = h.now(), state.Holders, text(err)
	if err != nil {
		e.Outcome = outcome(err)
	}
	h.alive()
	h.note(e)
}

// workUntilLost changes the guarded value again and again until the lease expires.
func (h *held) workUntilLost() { h.workUntil(0) }

// workUntil is like workUntilLost, but stops when no more than left remains of the lease. A release at that
// time may be too late.
func (h *held) workUntil(left time.Duration) {
	longest := h.Long
	if !h.event.Ask.Renewed {
		longest = 2 * h.event.Ask.Lease
	}
	for end := h.now() + longest; h.alive() && h.now() < end; {
		rest := h.hold.Remaining() - left
		if rest <= 0 && left > 0 {
			return
		}
		h.update(min(time.Millisecond+h.upTo(h.Work), max(rest, 0)+h.Step))
	}
}

// release ends the hold and records it.
func (h *held) release() {
	h.end(func(ctx context.Context) error { return h.hold.Release(ctx) })
}

// leave ends the hold and leaves a marker.
func (h *held) leave() {
	h.event.Hold.Left = (time.Millisecond + h.upTo(h.Long/2)).Truncate(time.Millisecond)
	h.end(func(ctx context.Context) error { return h.hold.Leave(ctx, h.event.Hold.Left) })
}

func (h *held) end(end func(context.Context) error) {
	h.alive()
	r := &h.event.Hold.Release
	r.Begin = h.now()
	err := end(context.Background())
	r.End, r.Outcome, r.Note = h.now(), history.OK, text(err)
	if err != nil {
		r.Outcome = outcome(err)
	}
	if h.chance(5) {
		r.Twice = outcome(h.hold.Release(context.Background()))
	}
	h.cancel()
	h.note(h.event)
}
