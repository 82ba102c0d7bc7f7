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

// Register records in the queue of the key that the attempt of w acquired the lock. w is nil for a caller that does not
// wait. under is the holder with which the caller already shares the lock, or nil. If another holder of this client had
// the lock, it is lost or asks Redis.
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

// Doubt asks Redis in the background whether holders of this client still have their lock.
func (hs *Holdings) Doubt(holders []queue.Holder) {
	for _, h := range holders {
		AsHolder(h).lease.Doubt()
	}
}

// HandleMessage handles a message on the channel of a lock. It calls Doubt, except for a semaphore, where the message
// only means that one more permit is free.
func (hs *Holdings) HandleMessage(holders []queue.Holder) {
	if len(holders) > 0 && AsHolder(holders[0]).lease.Kind.Shares != redisstore.Limited {
		hs.Doubt(holders)
	}
}

// Blocking returns the field of the hold of this client that has the lock, or a share of it. blockedBy is the field that
// Redis returned, or empty. That it belongs to this client does not prove that such a hold exists, because Leave and
// abandoned acquisitions also leave fields of this client.
func (hs *Holdings) Blocking(key, blockedBy string) (field string, own bool) {
	known := blockedBy == "" || strings.HasPrefix(blockedBy, hs.ClientID+":")
	for _, h := range hs.Queues.Holders(key) {
		if o := AsHolder(h); o.Lasts(time.Now()) && (known || o.lease.Kind.Shared()) {
			return o.Field(), true
		}
	}
	return "", false
}

// List returns the holds that have not ended, each once.
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

// Oldest returns the time at which the oldest hold was acquired. It is zero without a hold.
func (hs *Holdings) Oldest() (oldest time.Time) {
	for _, l := range hs.Watchdog.Leases() {
		at := AsHolder(l.Holder()).acquiredAt()
		if oldest.IsZero() || !at.IsZero() && at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// LeaveAll ends every hold with the cause [failure.Closed], unless its release has begun. It returns how many keys are
// left to expire.
func (hs *Holdings) LeaveAll() (left int) {
	for _, l := range hs.Watchdog.Leases() {
		if l.Lose(failure.Closed) {
			left++
		}
	}
	return left
}
