package core

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Refresh gives the lock a new lease, counted from now: longer or shorter, but
// never shorter than other holds of the same acquisition need. A hold with a
// watchdog gets a fixed lease: its renewal stops. The lease is 1 ms to
// [MaxDuration]. Who waits, in whatever process, is notified of an end that is earlier.
//
// While a command of this holder without an answer may still land (two minutes), the
// lease is only made longer, never shorter; the call is no error then. With a Redis that
// does not answer it takes the backend timeout at most. On [ErrUnavailable] the hold keeps its old end, or has the
// new one if that is earlier, and a watchdog stays off. If the new lease has ended before the answer comes,
// Refresh returns nil, even if the lock was deleted or forced away before: the hold has ended either way.
func (h *Hold) Refresh(ctx context.Context, leaseTime time.Duration) error {
	if h == nil || h.scope.ended.Load() {
		return ErrNotHeld
	}
	if err := checkLease("Refresh", leaseTime); err != nil {
		return err
	}
	errs := eachOwnership(h.scope.owners, func(o *ownership) error {
		return o.refresh(ctx, h.scope, leaseTime.Truncate(time.Millisecond))
	})
	if beyond(len(errs)-h.scope.needs, errs) == nil {
		return nil
	}
	return joined(errs)
}

func (o *ownership) refresh(ctx context.Context, hold *scope, ttl time.Duration) error {
	_, s, err := o.begin(ctx, time.Now())
	if err != nil {
		hold.stopRenewal()
		return err
	}
	defer o.operations.end()
	if hold.ended.Load() {
		return o.endCause() // released before this turn: the next caller may have the lock
	}
	hold.stopRenewal()
	if err := o.settle(ctx, s.passing); err != nil {
		return unavailable(err)
	}
	o.checkClock(time.Now())
	left := o.lease.Left(time.Now())
	lower, err := o.planRefresh(ttl)
	if err != nil {
		return err
	}
	if lower {
		return o.setTTL(ctx, left, ttl, s)
	}
	sent, err := o.setCount(ctx, o.holds(), ttl, s)
	o.raised(sent, ttl, err)
	return err
}

// planRefresh reports whether the TTL may be lowered: only when no other hold counts
// on it, and no earlier command of this holder can still land and raise it again.
// When it may, the local deadline is lowered already. It has the turn, so that no hold comes.
func (o *ownership) planRefresh(ttl time.Duration) (lower bool, err error) {
	lower = o.holds() <= 1 && o.lease.Lower(time.Now(), ttl)
	if !lower {
		o.lease.Ask(ttl)
	}
	if !o.lease.Held() {
		return false, o.endCause()
	}
	return lower, nil
}

// settle waits until no renewal is on the wire, at most until limit.
func (o *ownership) settle(ctx context.Context, limit time.Time) error {
	done := o.lease.Renewing()
	if done == nil {
		return nil
	}
	timeout := time.NewTimer(time.Until(limit))
	defer timeout.Stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return contextCause(ctx)
	case <-timeout.C:
		return errRenewing
	case <-o.client.life.Done():
		return ErrClosed
	}
}

var errRenewing = errors.New("a renewal is on its way and not answered")

// setTTL sets the TTL, up or down, of a lock that is held for as long as left. A send of
// it that is not answered may land at any time, and cut a TTL that was raised since:
// from then on no more than this lease is believed.
func (o *ownership) setTTL(ctx context.Context, left, ttl time.Duration, s span) error {
	falls := o.expectFall(left, ttl)
	got, err := insist(ctx, o, s, anyLate, func(now time.Time) redisstore.Call[redisstore.Change] {
		return o.client.store.Refresh(now, o.lease.Claim, ttl)
	})
	if got.doubt {
		o.lease.BelieveAtMost(ttl)
	}
	if falls {
		o.fallen(got.answer)
	}
	if err == nil && !lease.Expired(got.sent, ttl, time.Now()) { // otherwise it has had its effect
		err = o.confirmed(got.answer.Mine)
	}
	o.raised(got.sent, ttl, err)
	return err
}
