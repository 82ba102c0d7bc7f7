package core

import (
	"errors"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Field names the ownership in Redis.
func (o *ownership) Field() string { return o.lease.Field }

// ownerOf is the ownership that this client has given to a queue, or to a lease.
func ownerOf(h any) *ownership {
	return h.(*ownership) //nolint:errcheck,forcetypeassert // there are no others
}

// Lasts reports whether the lease lasts by the clocks, also while it is being released.
func (o *ownership) Lasts(now time.Time) bool { return !o.lease.Expired(now) }

// acquired registers the ownership that the attempt of w has brought, or that of a caller that
// does not wait, or has the lock already as under. A holder of this client whose lock it has taken
// is lost, or asks Redis.
func (c *Client) acquired(o, under *ownership, w *queue.Waiter, g grant, now time.Time) {
	granted := queue.Grant{Holder: o, Kind: o.lease.Kind.Family, Shared: o.lease.Kind.Shared(), Sent: g.sent}
	if under != nil {
		granted.Under = under
	}
	for _, before := range c.queues.Acquired(o.lease.Key, w, granted, now) {
		if replaced := ownerOf(before.Holder); before.Gone {
			replaced.lease.Lose(errNotMine)
		} else {
			c.verify(replaced)
		}
	}
}

// passed notes that the attempt of w, or that of a caller that does not wait, has brought what
// nobody holds.
func (c *Client) passed(o *ownership, w *queue.Waiter, now time.Time) {
	if strings.Contains(o.lease.Field, ":") { // it has changed the count
		c.settled.note(o.lease.Key, o.lease.Field)
	}
	if w != nil {
		c.queues.Served(w, now)
	}
}

// hinted asks Redis whether holders of this client still have their lock, after a message; not
// where that only says that there is room for one more.
func (c *Client) hinted(holders []queue.Holder) {
	if len(holders) > 0 && ownerOf(holders[0]).lease.Kind.Shares != redisstore.Limited {
		c.doubt(holders)
	}
}

// doubt asks Redis whether holders of this client still have their lock.
func (c *Client) doubt(holders []queue.Holder) {
	for _, h := range holders {
		c.verify(ownerOf(h))
	}
}

// leaves has the queue forget the ownership. notified is how many others heard a message of
// that, as [queue.Queues.Ended] has it.
func (o *ownership) leaves(notified int) {
	o.client.queues.Ended(o.lease.Key, o, notified, time.Now())
}

// expectFall prepares for the message of a command that lowers the TTL of the lock, which is
// held for as long as left, to lease. It reports whether the TTL falls, as far as is known.
func (o *ownership) expectFall(left, lease time.Duration) (falls bool) {
	if falls = left > lease; falls {
		o.client.queues.ExpectEcho(o.lease.Key, time.Now())
	}
	return falls
}

// fallen ends what expectFall has begun, also with the empty change of a command that got no
// answer: a message that comes then is looked into.
func (o *ownership) fallen(change redisstore.Change) {
	o.client.queues.EchoSent(o.lease.Key, change.Fell, time.Now())
}

// notQueued is the error of an acquisition that the queue of its key did not let in.
func notQueued(err error, key string, kind *redisstore.Kind) error {
	if other, ok := errors.AsType[*queue.KindError](err); ok {
		return invalidf("this client uses %q as a %s; one name is for one kind: use that kind here too, or another name for the %s", key, other.Kind, kind.Noun())
	}
	return ErrTooManyWaiters
}
