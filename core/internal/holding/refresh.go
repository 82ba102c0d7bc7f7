package holding

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/resend"
)

// Refresh gives the lock a new lease of ttl in whole milliseconds, counted from now. The lease becomes shorter only if no
// other hold has the same holder. If the watchdog renewed the lease for this hold, it does so no longer. If the hold
// lasted for longer than its limit, Refresh sends nothing and returns [failure.HeldTooLong].
func (h *Hold) Refresh(ctx context.Context, ttl time.Duration) error {
	if h.ended.Load() {
		return failure.NotHeld
	}
	if h.pastLimit() {
		return failure.HeldTooLong
	}
	errs := forEach(h.holders, func(o *Holder) error { return o.refresh(ctx, h, ttl) })
	if failure.JoinBeyond(len(errs)-h.needs, errs) == nil {
		return nil
	}
	return failure.Join(errs)
}

// refresh gives the lock of one holder a new lease for the hold h.
func (o *Holder) refresh(ctx context.Context, h *Hold, ttl time.Duration) error {
	_, span, err := o.beginOperation(ctx, time.Now())
	if err != nil {
		h.stopRenewal()
		return err
	}
	defer o.operations.end()
	o.in.underWay.begin()
	defer o.in.underWay.end()
	if h.ended.Load() {
		return o.endCause() // released before this turn: the next caller may have the lock
	}
	h.stopRenewal()
	if h.pastLimit() {
		return failure.HeldTooLong // the limit passed before this turn
	}
	if err := o.awaitRenewal(ctx, span.Passing); err != nil {
		return failure.BecauseOf(err)
	}
	o.checkClock(time.Now())
	left := o.lease.Left(time.Now())
	lower, err := o.planRefresh(ttl)
	if err != nil {
		return err
	}
	if lower {
		return o.setLease(ctx, left, ttl, span)
	}
	sent, err := o.writeCount(ctx, o.countHolds(), ttl, span)
	o.recordLease(sent, ttl, err)
	return err
}

// planRefresh reports whether the lease may become shorter. It may if the holder has no other hold, and if no earlier
// command of the holder can still be executed and raise the lease again. If so, planRefresh also lowers the local
// deadline. The caller has the turn, so no hold is added at the same time.
func (o *Holder) planRefresh(ttl time.Duration) (lower bool, err error) {
	lower = o.countHolds() <= 1 && o.lease.Lower(time.Now(), ttl)
	if !lower {
		o.lease.Ask(ttl)
	}
	if !o.lease.Held() {
		return false, o.endCause()
	}
	return lower, nil
}

// awaitRenewal waits until no renewal is on its way. It returns an error if limit has passed before, if ctx is done, or
// if the client is closed.
func (o *Holder) awaitRenewal(ctx context.Context, limit time.Time) error {
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
		return failure.Ended(ctx)
	case <-timeout.C:
		return errRenewing
	case <-o.in.Life.Done():
		return failure.Closed
	}
}

const errRenewing = failure.Text("a renewal is on its way and not answered")

// setLease sets the lease to ttl, up or down. left is the rest of the present lease. A send without an answer may be
// executed at any time and shorten a lease that was raised later. So after such a send, no later reply confirms a lease
// longer than ttl.
func (o *Holder) setLease(ctx context.Context, left, ttl time.Duration, s resend.Span) error {
	falls := o.expectEcho(left, ttl)
	got, err := resend.Insist(ctx, o.in.Sender, resend.Operation[redisstore.Change]{
		Key: o.lease.Key, Span: s, Subject: o,
	}, func(now time.Time) redisstore.Call[redisstore.Change] {
		return o.in.Redis.Refresh(now, o.lease.Claim, ttl)
	})
	if got.Doubt {
		o.lease.LimitTrust(ttl)
	}
	if falls {
		o.resolveEcho(got.Answer)
	}
	if err == nil && !lease.Expired(got.Sent, ttl, time.Now()) { // the field is missing, too, if the new lease has expired
		err = o.checkMine(got.Answer.Mine)
	}
	o.recordLease(got.Sent, ttl, err)
	return err
}
