package core

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Refresh gives the lock a new lease, counted from now: longer or shorter, but
// never shorter than other holds of the same acquisition need. A hold with a
// watchdog gets a fixed lease: its renewal stops. The lease is 1 ms to
// [MaxDuration]. Who waits, in whatever process, is told of an end that is earlier.
//
// While a command of this holder without an answer may still land (two minutes), the
// lease is only made longer, never shorter; the call is no error then. With a Redis that
// does not answer it takes the backend timeout at most. On [ErrUnavailable] the hold keeps its old end, or has the
// new one if that is earlier, and a watchdog stays off.
func (h *Hold) Refresh(ctx context.Context, lease time.Duration) error {
	if h == nil || h.scope.ended.Load() {
		return ErrNotHeld
	}
	if err := checkLease("Refresh", lease); err != nil {
		return err
	}
	h.scope.stopRenewal()
	return eachOwner(h.scope.owners, func(_ int, o *owner) error {
		return o.refresh(ctx, lease.Truncate(time.Millisecond))
	})
}

func (o *owner) refresh(ctx context.Context, lease time.Duration) error {
	now := time.Now()
	s, err := o.beginBy(ctx, o.client.operation(now))
	if err != nil {
		return unavailable(err)
	}
	defer o.end()
	if err := o.client.watchdog.settle(ctx, o, now.Add(o.client.cfg.backendTimeout)); err != nil {
		return unavailable(err)
	}
	o.checkClock(time.Now())
	left := o.left(time.Now())
	lower, err := o.planRefresh(lease)
	if err != nil {
		return err
	}
	if lower {
		o.client.watchdog.update(o) // now: a reply may never come
		return o.setTTL(ctx, left, lease, s)
	}
	sent, err := o.setCount(ctx, o.holds(), lease, s)
	if err == nil {
		o.acknowledge(sent, lease)
		o.client.watchdog.update(o)
	}
	return err
}

// planRefresh says whether the TTL may be lowered: only when no other hold counts
// on it, and no earlier command of this holder can still land and raise it again.
// When it may, the local deadline comes first.
func (o *owner) planRefresh(lease time.Duration) (lower bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase != held {
		return false, o.endCause()
	}
	now := time.Now()
	if len(o.scopes)+o.entering > 1 || now.Before(o.lateUntil) {
		o.lease = max(o.lease, lease)
		return false, nil
	}
	o.lease = lease
	if d := deadlineAfter(now, lease); o.deadline.remaining(o.client.start, now) > d.Sub(now) {
		o.deadline.set(o.client.start, d)
	}
	return true, nil
}

// setTTL sets the TTL, up or down, of a lock that is had for as long as left. A send of
// it that is not answered may land at any time, and cut a TTL that was raised since:
// from then on no more than this lease is believed.
func (o *owner) setTTL(ctx context.Context, left, lease time.Duration, s span) error {
	before := o.lastUnanswered()
	falls := o.client.lines.expectFall(o.key, left, lease)
	change, sent, err := insist(ctx, o, s, func() redisstore.Call[redisstore.Change] {
		return o.client.store.Refresh(time.Now(), o.claim(), lease)
	})
	if o.lastUnanswered() != before {
		o.believeAtMost(lease)
	}
	if err != nil {
		return err
	}
	if falls {
		o.client.lines.fell(o.key, change.Fell)
	}
	if err := o.confirmed(change.Mine); err != nil {
		return err
	}
	o.acknowledge(sent, lease)
	o.client.watchdog.update(o)
	return nil
}

// believeAtMost caps the leases that replies are taken to confirm.
func (o *owner) believeAtMost(lease time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.capped == 0 || lease < o.capped {
		o.capped = lease
	}
}
