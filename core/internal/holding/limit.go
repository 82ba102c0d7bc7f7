package holding

import (
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
)

// These are the states of the renewal of a hold. It begins with one of the first two and changes at most once:
//
//	renewed ──┬── Refresh, a leak, the end of the hold ──▶ fixed
//	          └── the limit has passed ──▶ heldTooLong
const (
	fixed       int32 = iota // the watchdog does not renew the leases for this hold
	renewed                  // the holders count it among the holds to renew
	heldTooLong              // the hold lasted for longer than its limit
)

// limit is the time at which a hold ends if the watchdog still renews its leases.
type limit struct {
	at    time.Time
	timer *time.Timer          // nil before startLimit
	hold  atomic.Pointer[Hold] // the hold that the timer ends; nil after a leak, so that the timer does not keep the hold in memory
}

// Limit ends the hold when d has passed since its acquisition, unless the leases are fixed by then. The context of the
// hold ends, and the watchdog does not renew the leases for the hold any more. Redis keeps the lock until the release or
// the end of the leases. The caller calls Limit before [Hold.Begin].
func (h *Hold) Limit(d time.Duration) { h.limit = &limit{at: h.info.Acquired().Add(d)} }

// inherit copies the limit of the hold that h re-enters or replaces, if that limit is earlier than the limit of h. from
// may be nil.
func (h *Hold) inherit(from *limit) {
	if from != nil && (h.limit == nil || from.at.Before(h.limit.at)) {
		h.limit = &limit{at: from.at}
	}
}

// startLimit starts the timer of a hold that is renewed. If the limit has already passed, the timer fires at once.
func (h *Hold) startLimit() {
	if h.limit != nil && h.renewal.Load() == renewed {
		h.limit.hold.Store(h)
		h.limit.timer = time.AfterFunc(time.Until(h.limit.at), h.limit.pass)
	}
}

// stopLimit stops the timer of the limit.
func (h *Hold) stopLimit() {
	if h.limit != nil && h.limit.timer != nil {
		h.limit.timer.Stop()
	}
}

// dropLimit makes the timer of the limit end nothing. It does not stop the timer, because a cleanup runs outside of the
// bubble of package synctest to which the timer may belong.
func (h *Hold) dropLimit() {
	if h.limit != nil {
		h.limit.hold.Store(nil)
	}
}

// pass ends the hold when the limit has passed.
func (l *limit) pass() {
	if h := l.hold.Load(); h != nil {
		h.endByLimit()
	}
}

// endByLimit ends the context of the hold and the renewal of its leases. If the leases are fixed, or the hold has ended,
// endByLimit does nothing.
func (h *Hold) endByLimit() {
	if h.endRenewal(heldTooLong) {
		h.lose(failure.HeldTooLong)
	}
}

// stopRenewal ends the renewal of the leases for this hold.
func (h *Hold) stopRenewal() { h.endRenewal(fixed) }

// endRenewal ends the renewal of the leases for this hold and records why. Only the first call has an effect and returns
// true.
func (h *Hold) endRenewal(why int32) bool {
	if !h.renewal.CompareAndSwap(renewed, why) {
		return false
	}
	for _, o := range h.holders {
		o.lease.StopRenewal()
	}
	return true
}

// pastLimit reports whether the hold lasted for longer than its limit, and neither lost its leases before nor was left to
// them by a closed client.
func (h *Hold) pastLimit() bool {
	fate := h.fate.Load()
	return h.renewal.Load() == heldTooLong && (fate == fateNone || fate == fateHeldTooLong)
}

// limit returns the limit of the oldest hold for which the watchdog renews the lease, or has renewed it until the limit of
// that hold. If that hold has no limit, limit returns nil.
func (o *Holder) limit() *limit {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, h := range o.holds {
		if h.renewal.Load() != fixed {
			return h.limit
		}
	}
	return nil
}
