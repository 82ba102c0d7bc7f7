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

// Holder is one field in Redis by which this client has the lock of one key. It has a lease. Its holds are the
// acquisition that created the field, and the re-entries of that acquisition. It is safe for concurrent use.
type Holder struct {
	in         *Holdings
	lease      lease.Lease
	token      int64      // fencing token; 0 where the lock has none
	operations operations // gives the operations of the holder their turns

	mu       sync.Mutex
	holds    []*Hold // holds that have begun and not ended
	entering int32   // number of re-entries whose hold has not begun yet
	amending bool    // the count in Redis may be wrong and is being corrected

	// Memory for the first hold, which saves the usual acquisition an allocation.
	first   Hold
	self    [1]*Holder
	oneHold [1]*Hold
}

// Open returns a new holder with the lease that Redis granted to an acquire or a hand-off. The lease is not under watch
// before [Holder.Watch].
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

// Lasts reports whether the lease has not expired by the clocks. It may return true while the lease is being released.
func (o *Holder) Lasts(now time.Time) bool { return !o.lease.Expired(now) }

// Alive reports whether the holder has the lock: its lease has not expired and is not lost, and no release has begun.
func (o *Holder) Alive(now time.Time) bool { return o.lease.Alive(now) }

// Watch makes the watchdog check the deadline of the lease and, if renewed is true, renew the lease. at is the time of
// the grant. In a MultiLock the hold may begin long after that.
func (o *Holder) Watch(renewed bool, at time.Time) {
	if renewed {
		o.lease.Renew(at)
	} else {
		o.lease.Watch(at)
	}
}

// begin adds a hold that begins now.
func (o *Holder) begin(h *Hold) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holds = append(o.holds, h)
	if o.entering > 0 {
		o.entering--
	}
}

// count returns the number of holds, including the holds that have not begun. The caller holds the mutex.
func (o *Holder) count() int { return len(o.holds) + int(o.entering) }

// countHolds is like count, but locks the mutex.
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

// removeUnlessLast removes a leaked hold and cancels its context, if the holder has another hold.
func (o *Holder) removeUnlessLast(h *Hold) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count() > 1 {
		o.drop(h)
		h.cancel(failure.Leaked) // no caller listens, but an outer context still refers to it
	}
}

// drop removes a hold from the list and clears the reference to it in the array. A reference would keep the hold in
// memory, and through its context also the outer hold. The caller holds the mutex.
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

// checkClock loses the lease if its deadline has passed. When checkClock returns, the contexts of the holds that need
// the lease are canceled, even if another goroutine found the loss and has not canceled them yet.
func (o *Holder) checkClock(now time.Time) {
	cause := o.lease.CheckClock(now)
	if cause == nil {
		return // the lease has not expired, or was released
	}
	for _, h := range o.liveHolds() {
		if h.Loss() != nil {
			h.cancel(cause)
		}
	}
}

// Lost cancels the contexts of the holds that need the lease, and removes the holder from the queue of the key. The
// lease calls it when the lease is lost. If a command without an answer may have raised the lease in Redis, Lost makes
// the reaper free the lock. Otherwise other callers would have to wait until that lease expires.
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
	o.in.Reaper.Relinquish(o.lease.Kind, []string{o.lease.Key}, o.lease.Field, o.lease.Longest())
}

// leaveQueue removes the holder from the queue of the key. notified is the number of other processes that received the
// message of the release, or one of the constants of [queue.Queues.RemoveHolder].
func (o *Holder) leaveQueue(notified int) {
	o.in.Queues.RemoveHolder(o.lease.Key, o, notified, time.Now())
}

// endCause returns the error of an operation on a lease that has ended: its loss, or [failure.NotHeld].
func (o *Holder) endCause() error {
	if loss := o.lease.Loss(); loss != nil {
		return loss
	}
	return failure.NotHeld
}

// checkMine handles the answer of a script that looked for the field of the holder. If the field is missing, checkMine
// loses the lease and returns [failure.NotMine].
func (o *Holder) checkMine(mine bool) error {
	if !mine {
		o.lease.Lose(failure.NotMine)
		return failure.NotMine
	}
	return nil
}

// LoseOnRefusal records that Redis refused the lock to a caller that already has the lock through this holder, so Redis
// no longer has the holder. If the holder was released in between, LoseOnRefusal returns [failure.NotHeld]. Otherwise
// the lease is lost, and LoseOnRefusal returns the loss.
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

// expectEcho announces a command that sets the lease to ttl. If ttl is less than left, the rest of the lease, Redis
// publishes a message, and the queue expects its echo: the same message on the subscription of this client. expectEcho
// reports whether the lease becomes shorter, as far as this client knows.
func (o *Holder) expectEcho(left, ttl time.Duration) (falls bool) {
	if falls = left > ttl; falls {
		o.in.Queues.ExpectEcho(o.lease.Key, time.Now())
	}
	return falls
}

// resolveEcho reports the answer to the command that expectEcho announced. If the command got no answer, the change is
// empty, and the queue takes a later message for a message of another process.
func (o *Holder) resolveEcho(change redisstore.Change) {
	o.in.Queues.ResolveEcho(o.lease.Key, change.Fell, time.Now())
}
