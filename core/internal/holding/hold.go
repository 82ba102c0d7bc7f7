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

// Hold is what a caller gets by one acquisition or re-entry. It does not contain the handle that the caller refers to,
// so the client notices when the handle becomes unreachable. It is safe for concurrent use.
//
//	New ── Begin ──▶ held ──┬── Release, Leave, Move ──▶ ended
//	                        └── lost, or left by a closed client ── Release ──▶ ended
//
// fate records the second state, ended the last one. A hold that lasts for longer than its limit gets to the second
// state, too, but Redis still has the lock: see [Hold.Limit].
type Hold struct {
	holders  []*Holder // one per key, or one per server that granted a Redlock
	needs    int       // number of leases that the hold needs; with fewer leases the hold is lost
	cancel   context.CancelCauseFunc
	home     *Holdings // its Watcher is notified
	info     Info
	limit    *limit          // nil: the watchdog renews the lease until the hold ends
	observed context.Context //nolint:containedctx // context for the Watcher; nil without observers
	renewal  atomic.Int32    // fixed, renewed or heldTooLong
	ended    atomic.Bool
	leaked   atomic.Bool  // its handle was garbage-collected; it ends with its lease
	fate     atomic.Int32 // how it ended without its caller: fateNone, fateLost, fateLeft or fateHeldTooLong

	// The handle of a renewed or observed hold gets a cleanup at the first renewal, or at the loss. Until then the field
	// unwatched keeps the handle reachable. Most holds end before that and need no cleanup.
	unwatched atomic.Pointer[Handle]
	cleanup   atomic.Pointer[runtime.Cleanup]
}

// Handle is the object through which a caller refers to its hold.
type Handle struct{ Hold *Hold }

// Info describes the acquisition that made a hold. It repeats nothing that the leases contain.
type Info struct {
	Label     string
	Start     time.Time
	Took      time.Duration // from Start until it was acquired
	Lease     time.Duration // the configured lease
	AllKeys   *[]string     // the keys of a MultiLock
	Keys      int32
	Renewed   bool // the watchdog renews the lease
	Reentrant bool
	Redlock   bool
}

// Acquired returns when the lock was acquired.
func (i *Info) Acquired() time.Time { return i.Start.Add(i.Took) }

// These are the ways in which a hold ends without its caller.
const (
	fateNone        int32 = iota
	fateLost              // the lease expired, or Redis no longer has the lock
	fateLeft              // the client was closed; the key is left to its lease
	fateHeldTooLong       // the hold lasted for longer than its limit; the key stays until the release or the end of the lease
)

// fateOf maps the cause to fateHeldTooLong, fateLeft or fateLost.
func fateOf(cause error) int32 {
	switch {
	case errors.Is(cause, failure.HeldTooLong):
		return fateHeldTooLong
	case errors.Is(cause, failure.Closed) && !errors.Is(cause, failure.Lost):
		return fateLeft
	default:
		return fateLost
	}
}

// End describes the end of a hold to the Watcher.
type End struct {
	Remaining   time.Duration // the rest of the lease when the end began; 0 when lost
	HandedOff   bool          // the release gave the lock to a waiter of this client
	Left        bool          // the key stays in Redis until it expires
	Moved       bool          // another hold of the same lock has replaced this hold
	Lost        bool
	HeldTooLong bool // the hold lasted for longer than its limit
	Err         error
}

// NewHold returns a hold that has not begun. needs is the number of leases of holders that the hold needs. The hold
// reports its events to the Watcher of hs.
func (hs *Holdings) NewHold(holders []*Holder, needs int, info Info) *Hold {
	var h *Hold
	if len(holders) == 1 && !info.Reentrant && holders[0].first.holders == nil {
		h = &holders[0].first
	} else {
		h = &Hold{}
	}
	h.home, h.info, h.holders, h.needs = hs, info, holders, needs
	if info.Renewed {
		h.renewal.Store(renewed)
	}
	return h
}

// Bind sets the context for the Watcher, or nil, and the function that cancels the context of the caller.
func (h *Hold) Bind(observed context.Context, cancel context.CancelCauseFunc) {
	h.observed, h.cancel = observed, cancel
}

// Begin registers the hold with its holders and starts the timer of its limit. If the hold is already lost, Begin cancels
// its context.
func (h *Hold) Begin() {
	for _, o := range h.holders {
		h.inherit(o.limit())
	}
	for _, o := range h.holders { // from now on re-entries read the limit
		o.begin(h)
	}
	if cause := h.Loss(); cause != nil {
		h.lose(cause)
		return
	}
	h.startLimit()
}

// Watch makes the client notice that the handle is garbage-collected, if the hold is renewed or observed. For other holds
// it does nothing, because their leases expire by themselves.
func (h *Hold) Watch(handle *Handle) {
	if h.observed == nil && h.renewal.Load() != renewed {
		return
	}
	h.unwatched.Store(handle)
	if h.fate.Load() != fateNone {
		h.collect()
	}
}

// collect adds a cleanup to the handle and drops the reference to the handle. Only the first call has an effect.
func (h *Hold) collect() {
	handle := h.unwatched.Swap(nil)
	if handle == nil {
		return
	}
	cleanup := runtime.AddCleanup(handle, handleLeak, h)
	h.cleanup.Store(&cleanup)
}

// unwatch drops the reference to the handle, and stops the cleanup of the handle and the timer of the limit.
func (h *Hold) unwatch() {
	h.stopLimit()
	h.unwatched.Store(nil)
	if cleanup := h.cleanup.Load(); cleanup != nil {
		cleanup.Stop()
	}
}

// handleLeak stops renewing the leases of a hold whose handle was garbage-collected. The context is canceled only when
// the lease expires, because work under the lock may still use the context.
func handleLeak(h *Hold) {
	if h.ended.Load() || !h.leaked.CompareAndSwap(false, true) {
		return
	}
	h.dropLimit()
	h.stopRenewal()
	for _, o := range h.holders {
		o.removeUnlessLast(h)
	}
	h.home.Watcher.Leaked(h)
}

// Info returns a description of the acquisition that made the hold.
func (h *Hold) Info() *Info { return &h.info }

// Holders returns the holders. The caller must not change them.
func (h *Hold) Holders() []*Holder { return h.holders }

// Observed returns the context for the Watcher; nil without observers.
func (h *Hold) Observed() context.Context { return h.observed }

// Ended reports whether the caller ended the hold.
func (h *Hold) Ended() bool { return h.ended.Load() }

// Remaining returns how long the hold still has the leases that it needs. It returns 0 or less after the hold has ended
// or is lost.
func (h *Hold) Remaining(now time.Time) time.Duration {
	if h.ended.Load() {
		return 0
	}
	return remaining(h.holders, h.needs, now)
}

// EnoughLast reports whether at least needs of the holders have a lease that has not expired.
func EnoughLast(holders []*Holder, needs int, now time.Time) bool {
	return remaining(holders, needs, now) > 0
}

// remaining returns how long at least needs of the holders still have their lease.
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

// HolderOf returns the holder of key that belongs to the client of hs. It returns nil if the hold has ended, has no such
// holder, or if that holder does not have the lock any more.
func (h *Hold) HolderOf(hs *Holdings, key string) *Holder {
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

// Covers reports whether the hold has the lock with this name, which the client of each holder maps to a key.
func (h *Hold) Covers(name string) bool {
	return slices.ContainsFunc(h.holders, func(o *Holder) bool { return o.lease.Key == o.in.KeyOf(name) })
}

// LossOf returns the loss of one of the keys of the client of hs. It returns nil if no such key is lost or if the hold has
// ended.
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

// CheckClock loses the leases that have expired by the clock. If the hold then has too few leases, its context is
// canceled when CheckClock returns.
func (h *Hold) CheckClock(now time.Time) {
	if h.ended.Load() {
		return
	}
	for _, o := range h.holders {
		o.checkClock(now)
	}
}

// Loss returns the errors of the lost leases if the hold has fewer leases than it needs. Otherwise it returns nil.
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

// Move ends the hold and returns a new hold of the same lock, which has not begun. The caller binds the new hold and
// then calls [Hold.CompleteMove] of the old one. If the old hold had already ended, moved is false and the new hold has
// ended, too.
func (h *Hold) Move() (to *Hold, moved bool) {
	to = &Hold{home: h.home, info: h.info, holders: h.holders, needs: h.needs}
	to.inherit(h.limit)
	if !h.ended.CompareAndSwap(false, true) {
		to.ended.Store(true)
		return to, false
	}
	h.unwatch()
	return to, true
}

// CompleteMove puts the hold to, which Move returned, in the place of this hold. If the lock is lost, or if this hold
// lasted for longer than its limit, CompleteMove cancels the context of to.
func (h *Hold) CompleteMove(to *Hold) {
	to.renewal.Store(h.renewal.Swap(fixed))
	for _, o := range to.holders {
		o.replace(h, to)
	}
	_ = h.finish(End{Moved: true, Remaining: h.remainingToReport(time.Now())}) //nolint:errcheck // a move has no error
	cause, fate := to.Loss(), h.fate.Load()
	if to.pastLimit() && (fate == fateNone || fate == fateHeldTooLong) {
		cause = failure.HeldTooLong
	}
	switch {
	case cause == nil:
		to.startLimit()
	case fate != fateNone: // the loss was already reported
		to.fate.Store(fate)
		to.cancel(cause)
	default:
		to.lose(cause)
	}
}

// remainingToReport returns the rest of the lease for [End.Remaining]. Without observers it returns 0.
func (h *Hold) remainingToReport(now time.Time) time.Duration {
	if h.observed == nil {
		return 0
	}
	return max(remaining(h.holders, h.needs, now), 0)
}

// lose cancels the context and reports the loss. Only the first call has an effect.
func (h *Hold) lose(cause error) {
	if h.ended.Load() || !h.fate.CompareAndSwap(fateNone, fateOf(cause)) {
		return
	}
	h.cancel(cause)
	h.collect()
	if !h.leaked.Load() {
		h.home.Watcher.Lost(h, cause)
	}
}

// loseOnRelease reports the loss in err, the error of a release, unless a loss was reported before. If err is neither a
// loss nor the close of the client, loseOnRelease does nothing.
func (h *Hold) loseOnRelease(err error) {
	if !errors.Is(err, failure.Lost) && !errors.Is(err, failure.Closed) {
		return
	}
	if h.fate.CompareAndSwap(fateNone, fateOf(err)) {
		h.home.Watcher.Lost(h, err)
	}
}

// finish reports the end of the hold and returns the error for its caller. If the hold lasted for longer than its limit,
// that error is [failure.HeldTooLong], unless the end failed for another reason than a loss.
func (h *Hold) finish(e End) error {
	fate := h.fate.Load()
	e.Lost = fate == fateLost || errors.Is(e.Err, failure.Lost)
	e.Left = e.Left || !e.Lost && (fate == fateLeft || errors.Is(e.Err, failure.Closed))
	e.HeldTooLong = fate == fateHeldTooLong
	if e.HeldTooLong && !e.Moved && (e.Err == nil || e.Lost) {
		e.Err = failure.HeldTooLong
	}
	if e.Lost {
		e.Remaining = 0
	}
	h.home.Watcher.Ended(h, e)
	return e.Err
}

// Cancel cancels the context of a hold that never began.
func (h *Hold) Cancel(cause error) { h.cancel(cause) }

// Watcher returns the Watcher of the hold.
func (h *Hold) Watcher() Watcher { return h.home.Watcher }

// NeedOnly lowers to n the number of leases that the hold needs.
func (h *Hold) NeedOnly(n int) { h.needs = n }
