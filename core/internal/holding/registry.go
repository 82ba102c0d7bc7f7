package holding

import (
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// AsHolder returns the Holder that this package gave to a queue or to a lease.
func AsHolder(h any) *Holder {
	return h.(*Holder) //nolint:errcheck,forcetypeassert // no other type is given
}

// Register records in the queue of its key that the holder o has the lock. w is the waiter of the caller, or nil for a
// caller that does not wait. under is the holder by which the caller already has the lock, or nil. If o replaced another
// holder of this client, the lease of that holder is lost. If the answers of Redis may have arrived out of order, Register
// asks Redis in the background instead.
func (hs *Holdings) Register(o, under *Holder, w *queue.Waiter, sent, now time.Time) {
	granted := queue.Grant{Holder: o, Kind: o.lease.Kind.Family, Shared: o.lease.Kind.Shared(), Sent: sent}
	if under != nil {
		granted.Under = under
	}
	for _, before := range hs.Queues.RecordGrant(o.lease.Key, w, granted, now) {
		if replaced := AsHolder(before.Holder); before.Gone {
			replaced.lease.Lose(failure.NotMine)
		} else {
			replaced.lease.Doubt()
		}
	}
}

// Doubt asks Redis in the background whether the holders still have the lock.
func (hs *Holdings) Doubt(holders []queue.Holder) {
	for _, h := range holders {
		AsHolder(h).lease.Doubt()
	}
}

// HandleMessage calls Doubt for the holders of a lock after a message on its channel. For a semaphore it does nothing,
// because the message only means that one more permit is free.
func (hs *Holdings) HandleMessage(holders []queue.Holder) {
	if len(holders) > 0 && AsHolder(holders[0]).lease.Kind.Shares != redisstore.Limited {
		hs.Doubt(holders)
	}
}

// Blocking returns the field of a holder of this client that has the lock, alone or shared. If there is none, own is false.
// blockedBy is the field in the refusal of Redis, or empty. If the field belongs to another client, Blocking returns only
// holders that share the lock. A field of this client does not prove that such a holder exists, because Leave and abandoned
// acquires also leave fields.
func (hs *Holdings) Blocking(key, blockedBy string) (field string, own bool) {
	known := blockedBy == "" || strings.HasPrefix(blockedBy, hs.ClientID+":")
	for _, h := range hs.Queues.Holders(key) {
		if o := AsHolder(h); o.Lasts(time.Now()) && (known || o.lease.Kind.Shared()) {
			return o.Field(), true
		}
	}
	return "", false
}

// List returns the holds that have begun and not ended, without repetitions.
func (hs *Holdings) List() (list []*Hold) {
	seen := make(map[*Hold]bool)
	for _, l := range hs.Watchdog.Leases() {
		for _, h := range AsHolder(l.Holder()).liveHolds() {
			if !seen[h] {
				seen[h] = true
				list = append(list, h)
			}
		}
	}
	return list
}

// Oldest returns the time at which the oldest hold was acquired, or zero without a hold.
func (hs *Holdings) Oldest() (oldest time.Time) {
	for _, l := range hs.Watchdog.Leases() {
		at := AsHolder(l.Holder()).acquiredAt()
		if oldest.IsZero() || !at.IsZero() && at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// LeaveAll ends every lease with the cause [failure.Closed], unless its release has begun. It returns the number of
// leases that it ended. Their keys stay in Redis until they expire.
func (hs *Holdings) LeaveAll() (left int) {
	for _, l := range hs.Watchdog.Leases() {
		if l.Lose(failure.Closed) {
			left++
		}
	}
	return left
}
