package holding

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
)

// Hold is what one caller has, without the handle that the caller refers to, so that the client notices when no
// caller refers to the handle any more. It is safe for concurrent use.
//
//	New ── Begin ──▶ held ──┬── Release, Leave, Move ──▶ ended
//	                        └── lost, or left by a closed client ── Release ──▶ ended
//
// fate has the second state, ended the last one.
type Hold struct {
	holders  []*Holder // one per key; of a Redlock one per server that has granted it
	needs    int       // the number of their leases that have to last; with fewer the hold is lost
	cancel   context.CancelCauseFunc
	home     *Holdings // whose Watcher is notified
	info     Info
	renewed  atomic.Bool     // the holders count it among the holds to renew
	observed context.Context //nolint:containedctx // for the Watcher; nil without observers
	ended    atomic.Bool
	leaked   atomic.Bool  // its handle was garbage-collected; it ends with its lease
	fate     atomic.Int32 // how it ended under its caller: notOver, overLost or overLeft

	// The garbage collector watches the handle of a hold that is renewed or observed from the first renewal on, or from
	// the loss. Until then the field unwatched keeps the handle alive: most holds end before, and need not pay for it.
	unwatched atomic.Pointer[Handle]
	cleanup   atomic.Pointer[runtime.Cleanup]
}

// Handle is what the user of a hold refers to.
type Handle struct{ Hold *Hold }

// Info describes the acquisition that has made a hold. What the leases know is not repeated here.
type Info struct {
	Label     string
	Start     time.Time
	Took      time.Duration // from Start until it was acquired
	Lease     time.Duration // the configured lease
	AllKeys   *[]string     // of a MultiLock
	Keys      int32
	Renewed   bool // the watchdog renews the lease
	Reentrant bool
	Redlock   bool
}

// Acquired returns when the lock was acquired.
func (i *Info) Acquired() time.Time { return i.Start.Add(i.Took) }

// How a hold ended under its caller.
const (
	notOver  int32 = iota
	overLost       // the lease has expired, or Redis does not have the lock any more
	overLeft       // the client was closed; the key is left to its lease
)

// overBy maps the cause to overLost or overLeft.
func overBy(cause error) int32 {
	if errors.Is(cause, failure.Closed) && !errors.Is(cause, failure.Lost) {
		return overLeft
	}
	return overLost
}

// End is how a hold ended, for the Watcher.
type End struct {
	Remaining time.Duration // of the lease, when the end began; 0 when lost
	HandedOff bool          // the release gave the lock to a waiter of this client
	Left      bool          // the key stays until it expires
	Moved     bool          // another hold goes on for the same lock
	Lost      bool
	Err       error
}

// NewHold returns a hold that has not begun. It needs as many of its holders as needs says. The events of the
// hold are reported to the Watcher of hs.
func (hs *Holdings) NewHold(holders []*Holder, needs int, info Info) *Hold {
	var h *Hold
	if len(holders) == 1 && !info.Reentrant && holders[0].first.holders == nil {
		h = &holders[0].first
	} else {
		h = &Hold{}
	}
	h.home, h.info, h.holders, h.needs = hs, info, holders, needs
	h.renewed.Store(info.Renewed)
	return h
}

// Bind gives the hold the context for the Watcher, or nil, and the function that ends the context of the caller.
func (h *Hold) Bind(observed context.Context, cancel context.CancelCauseFunc) {
	h.observed, h.cancel = observed, cancel
}

// Begin registers the hold with its holders. If it was lost before, its context ends.
func (h *Hold) Begin() {
	for _, o := range h.holders {
		o.begin(h)
	}
	if cause := h.Loss(); cause != nil {
		h.lose(cause)
	}
}

// Watch makes the client notice when the handle of a hold that is renewed or observed is garbage-collected. A fixed
// lease ends by itself and is lost then; for observers its hold goes on until it is released.
func (h *Hold) Watch(handle *Handle) {
	if h.observed == nil && !h.renewed.Load() {
		return
	}
	h.unwatched.Store(handle)
	if h.fate.Load() != notOver {
		h.collect()
	}
}

// collect has the garbage collector watch the handle from now on.
func (h *Hold) collect() {
	handle := h.unwatched.Swap(nil)
	if handle == nil {
		return
	}
	cleanup := runtime.AddCleanup(handle, leaked, h)
	h.cleanup.Store(&cleanup)
}

func (h *Hold) unwatch() {
	h.unwatched.Store(nil)
	if cleanup := h.cleanup.Load(); cleanup != nil {
		cleanup.Stop()
	}
}

// leaked stops renewing a hold whose handle was garbage-collected. Its key is left to its lease, and its context
// ends with that, because the work that the lock guards may still wait for the Done channel of the context.
func leaked(h *Hold) {
	if h.ended.Load() || !h.leaked.CompareAndSwap(false, true) {
		return
	}
	h.stopRenewal()
	for _, o := range h.holders {
		o.removeUnlessLast(h)
	}
	h.home.Watcher.Leaked(h)
}

// Info describes the acquisition that has made the hold.
func (h *Hold) Info() *Info { return &h.info }

// Holders returns the holders, which must not be changed.
func (h *Hold) Holders() []*Holder { return h.holders }

// Observed returns the context for the Watcher; nil without observers.
func (h *Hold) Observed() context.Context { return h.observed }

// Ended reports whether the caller has ended the hold.
func (h *Hold) Ended() bool { return h.ended.Load() }

// Remaining returns how long as many leases last as the hold needs; 0 or less after its end.
func (h *Hold) Remaining(now time.Time) time.Duration {
	if h.ended.Load() {
		return 0
	}
	return remaining(h.holders, h.needs, now)
}

// Lasting reports whether a number of the holders' leases last.
func Lasting(holders []*Holder, needs int, now time.Time) bool {
	return remaining(holders, needs, now) > 0
}

func remaining(holders []*Holder, needs int, now time.Time) time.Duration {
	if len(holders) == 1 {
		return holders[0].lease.Remaining(now)
	}
	left := make([]time.Duration, len(holders))
	for i, o := range holders {
		left[i] = o.lease.Remaining(now)
	}
	slices.Sort(left)
	return left[len(left)-needs]
}

// Holder returns the holder of a key of a client, if the hold has such a holder and the holder has the lock.
func (h *Hold) Holder(hs *Holdings, key string) *Holder {
	if h.ended.Load() {
		return nil
	}
	for _, o := range h.holders {
		if o.in == hs && o.lease.Key == key && o.lease.Alive(time.Now()) {
			return o
		}
	}
	return nil
}

// Covers reports whether the hold has the lock with a name, as the client of a holder maps it.
func (h *Hold) Covers(name string) bool {
	return slices.ContainsFunc(h.holders, func(o *Holder) bool { return o.lease.Key == o.in.KeyOf(name) })
}

// LossOf returns why the hold has lost one of the keys of a client; nil if it has not, or has ended.
func (h *Hold) LossOf(hs *Holdings, keys []string) error {
	if h.ended.Load() {
		return nil
	}
	for _, o := range h.holders {
		if o.in != hs || !slices.Contains(keys, o.lease.Key) {
			continue
		}
		if loss := o.lease.Loss(); loss != nil {
			return loss
		}
	}
	return nil
}

// CheckClock ends the context of the hold if the clock shows that its lease has expired.
func (h *Hold) CheckClock(now time.Time) {
	if h.ended.Load() {
		return
	}
	for _, o := range h.holders {
		o.checkClock(now)
	}
}

// Loss returns why fewer leases last than the hold needs; nil if there are enough.
func (h *Hold) Loss() error {
	if len(h.holders) == 1 {
		return h.holders[0].lease.Loss()
	}
	losses := make([]error, len(h.holders))
	for i, o := range h.holders {
		losses[i] = o.lease.Loss()
	}
	return failure.JoinBeyond(len(h.holders)-h.needs, losses)
}

// Move ends the hold and returns another one, which has not begun, for the same lock. moved reports whether the
// hold had not ended before. The caller binds the new hold, and then calls Moved.
func (h *Hold) Move() (to *Hold, moved bool) {
	to = &Hold{home: h.home, info: h.info, holders: h.holders, needs: h.needs}
	if !h.ended.CompareAndSwap(false, true) {
		to.ended.Store(true)
		return to, false
	}
	h.unwatch()
	return to, true
}

// Moved completes Move: from now on to is the hold.
func (h *Hold) Moved(to *Hold) {
	to.renewed.Store(h.renewed.Swap(false))
	for _, o := range to.holders {
		o.replace(h, to)
	}
	h.finish(End{Moved: true, Remaining: h.left(time.Now())})
	switch cause := to.Loss(); {
	case cause == nil:
	case h.fate.Load() != notOver: // that was reported already
		to.fate.Store(h.fate.Load())
		to.cancel(cause)
	default:
		to.lose(cause)
	}
}

// left returns how long the lease lasts when the end of the hold begins. Without observers it is 0.
func (h *Hold) left(now time.Time) time.Duration {
	if h.observed == nil {
		return 0
	}
	return max(remaining(h.holders, h.needs, now), 0)
}

// stopRenewal removes the hold, once, from those for which the leases are renewed.
func (h *Hold) stopRenewal() {
	if !h.renewed.CompareAndSwap(true, false) {
		return
	}
	for _, o := range h.holders {
		o.lease.StopRenewal()
	}
}

// lose ends the context and reports the loss, once.
func (h *Hold) lose(cause error) {
	if h.ended.Load() || !h.fate.CompareAndSwap(notOver, overBy(cause)) {
		return
	}
	h.cancel(cause)
	h.collect()
	if !h.leaked.Load() {
		h.home.Watcher.Lost(h, cause)
	}
}

// loseOnRelease reports the loss when the error of a release says that the hold was lost, or left to its lease by a
// closed client, and that was not reported before.
func (h *Hold) loseOnRelease(err error) {
	if !errors.Is(err, failure.Lost) && !errors.Is(err, failure.Closed) {
		return
	}
	if h.fate.CompareAndSwap(notOver, overBy(err)) {
		h.home.Watcher.Lost(h, err)
	}
}

// finish reports the end of the hold.
func (h *Hold) finish(e End) {
	fate := h.fate.Load()
	e.Lost = fate == overLost || errors.Is(e.Err, failure.Lost)
	e.Left = e.Left || fate == overLeft && !e.Lost
	if e.Lost {
		e.Remaining = 0
	}
	h.home.Watcher.Ended(h, e)
}

// Cancel ends the context of a hold that was never begun.
func (h *Hold) Cancel(cause error) { h.cancel(cause) }

// Watcher returns the Watcher of the hold.
func (h *Hold) Watcher() Watcher { return h.home.Watcher }

// NeedOnly makes the hold need so many of its leases only.
func (h *Hold) NeedOnly(n int) { h.needs = n }
