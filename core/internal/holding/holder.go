package holding

import (
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Holder is one field in Redis: one outermost acquisition of one key. It has a lease and holds: the acquisition and its
// re-entries. It is safe for concurrent use.
type Holder struct {
	in         *Holdings
	lease      lease.Lease
	token      int64      // fencing token; 0 where the lock has none
	operations operations // gives commands their turns

	mu       sync.Mutex
	holds    []*Hold // holds that have begun and not ended
	entering int     // holds that have not begun yet
	amending bool    // the count in Redis may be wrong and is being corrected

	// Room for the first hold, which saves the usual acquisition an allocation.
	first   Hold
	self    [1]*Holder
	oneHold [1]*Hold
}

// Open returns the holder of a lease that Redis granted to an acquire or a hand-off. The lease is not under watch yet.
func (hs *Holdings) Open(claim redisstore.Claim, token int64, sent time.Time, ttl time.Duration) *Holder {
	o := &Holder{in: hs, token: token}
	o.self[0] = o
	o.holds = o.oneHold[:0]
	hs.Watchdog.Open(&o.lease, claim, o, sent, ttl)
	return o
}

// AsSlice returns a slice that contains only the holder. It does not allocate.
func (o *Holder) AsSlice() []*Holder { return o.self[:] }

// Lease returns the lease.
func (o *Holder) Lease() *lease.Lease { return &o.lease }

// Key returns the Redis key.
func (o *Holder) Key() string { return o.lease.Key }

// Kind returns the kind of the lock.
func (o *Holder) Kind() *redisstore.Kind { return o.lease.Kind }

// Field returns the name of the holder in Redis.
func (o *Holder) Field() string { return o.lease.Field }

// Token returns the fencing token; 0 where the lock has none.
func (o *Holder) Token() int64 { return o.token }

// Lasts reports whether the lease lasts by the clocks. It may be true while the lease is being released.
func (o *Holder) Lasts(now time.Time) bool { return !o.lease.Expired(now) }

// Alive reports whether the holder has the lock: the lease lasts, and no release has begun.
func (o *Holder) Alive(now time.Time) bool { return o.lease.Alive(now) }

// Watch puts the lease under watch, renewed or not. at is the time of the grant, which may be long before a MultiLock
// has its hold.
func (o *Holder) Watch(renewed bool, at time.Time) {
	if renewed {
		o.lease.Renew(at)
	} else {
		o.lease.Watch(at)
	}
}

// begin adds a hold.
func (o *Holder) begin(h *Hold) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holds = append(o.holds, h)
	if o.entering > 0 {
		o.entering--
	}
}

// count returns how many holds there are, including holds that have not begun. The caller holds the mutex.
func (o *Holder) count() int { return len(o.holds) + o.entering }

// countHolds returns the same as count. The caller does not hold the mutex.
func (o *Holder) countHolds() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count()
}

// liveHolds returns the holds that have begun and not ended.
func (o *Holder) liveHolds() []*Hold {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]*Hold(nil), o.holds...)
}

// acquiredAt returns the time at which the first hold was acquired; zero without a hold.
func (o *Holder) acquiredAt() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.holds) == 0 {
		return time.Time{}
	}
	return o.holds[0].info.Acquired()
}

// remove removes a hold and returns how many are left. It is called once per hold.
func (o *Holder) remove(h *Hold) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(h)
	return o.count()
}

// removeUnlessLast removes a leaked hold if it is not the only one.
func (o *Holder) removeUnlessLast(h *Hold) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count() > 1 {
		o.drop(h)
		h.cancel(failure.Leaked) // no caller listens, but an outer context still refers to it
	}
}

// drop removes a hold from the list and leaves no reference to it in the array. A reference would keep the hold alive,
// and through its context the outer hold. The caller holds the mutex.
func (o *Holder) drop(h *Hold) {
	o.holds = slices.DeleteFunc(o.holds, func(other *Hold) bool { return other == h })
}

// replace puts one hold in the place of another.
func (o *Holder) replace(from, to *Hold) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, h := range o.holds {
		if h == from {
			o.holds[i] = to
		}
	}
}

// checkClock loses the lease if its deadline has passed. When it returns, the contexts of the holds that need the lease
// are canceled, even if another goroutine is just about to cancel them.
func (o *Holder) checkClock(now time.Time) {
	cause := o.lease.CheckClock(now)
	if cause == nil {
		return // it lasts, or was released
	}
	for _, h := range o.liveHolds() {
		if h.Loss() != nil {
			h.cancel(cause)
		}
	}
}

// Lost cancels the contexts of the holds that need the lease. The lease calls it when it is lost. Lost frees nothing
// unless a command without an answer may have raised the lease in Redis. In that case the reaper frees the lock, because
// other callers would have to wait until that lease expires.
func (o *Holder) Lost(error) {
	for _, h := range o.liveHolds() {
		if cause := h.Loss(); cause != nil {
			h.lose(cause) // the cause of a hold with several leases joins the causes of all lost leases
		}
	}
	if o.lease.Outlasts(time.Now()) {
		o.relinquish()
	}
	o.leaveQueue(queue.NoMessage)
}

// Renewed notifies the Watchers of the holds. The lease calls it after every renewal.
func (o *Holder) Renewed(err error, late time.Duration) {
	for _, h := range o.liveHolds() {
		h.collect()
		h.home.Watcher.Renewed(h, err, late)
	}
}

// RecordNoAnswer records a command of the holder that got no answer and may still be executed.
func (o *Holder) RecordNoAnswer() { o.lease.RecordNoAnswer() }

// RecordAnswer records that a command of the holder was answered in time.
func (o *Holder) RecordAnswer() { o.operations.recordAnswer() }

// relinquish makes the reaper free the lock if Redis still has it.
func (o *Holder) relinquish() {
	o.in.Graves.Relinquish(o.lease.Kind, []string{o.lease.Key}, o.lease.Field, o.lease.Longest())
}

// leaveQueue makes the queue of the key forget the holder. notified is the number of other clients that were notified,
// or one of the constants of [queue.Queues.RemoveHolder].
func (o *Holder) leaveQueue(notified int) {
	o.in.Queues.RemoveHolder(o.lease.Key, o, notified, time.Now())
}

// endCause returns the error of an operation on a lease that has ended.
func (o *Holder) endCause() error {
	if loss := o.lease.Loss(); loss != nil {
		return loss
	}
	return failure.NotHeld
}

// confirm handles the answer of a script that looked for the field of the holder. If the field is missing, the lock is
// lost.
func (o *Holder) checkMine(mine bool) error {
	if !mine {
		o.lease.Lose(failure.NotMine)
		return failure.NotMine
	}
	return nil
}

// LoseOnRefusal records that Redis refused the lock to a caller to which this holder gave it. It returns how the holder
// ended: it was released in between, or it is lost.
func (o *Holder) LoseOnRefusal() error {
	_ = o.checkMine(false) //nolint:errcheck // the cause says more
	return o.endCause()
}

// recordLease records the outcome of a command, sent at sent, that gives the lock a lease of length ttl.
func (o *Holder) recordLease(sent time.Time, ttl time.Duration, err error) {
	if err == nil {
		o.lease.Acknowledge(sent, ttl)
	}
	o.checkClock(time.Now())
}

// expectEcho prepares the queue for the message of a command that lowers the lease, of which left remains, to ttl.
// It reports whether the lease becomes shorter, as far as this client knows.
func (o *Holder) expectEcho(left, ttl time.Duration) (falls bool) {
	if falls = left > ttl; falls {
		o.in.Queues.ExpectEcho(o.lease.Key, time.Now())
	}
	return falls
}

// echoSent completes expectEcho. After a command without an answer the change is empty, and the queue treats a later
// message as one of another client.
func (o *Holder) echoSent(change redisstore.Change) {
	o.in.Queues.ResolveEcho(o.lease.Key, change.Fell, time.Now())
}
