package holding

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/resend"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// Leave ends the hold without freeing the lock. In Redis it leaves a marker, which no caller holds, for d in whole
// milliseconds. For an inner hold it returns an error.
func (h *Hold) Leave(ctx context.Context, d time.Duration) error {
	now := time.Now()
	h.CheckClock(now)
	left := h.remainingToReport(now) // read before endAll begins the release of the leases
	if err := h.endAll(); err != nil {
		return err
	}
	h.cancel(failure.Released)
	h.unwatch()
	h.stopRenewal()
	ctx = context.WithoutCancel(ctx)
	err := h.endEach(func(o *Holder) error { return o.leave(ctx, d, now) })
	h.loseOnRelease(err)
	return h.finish(End{Left: true, Remaining: left, Err: err})
}

// endAll removes the hold from all its holders in one step, so no re-entry comes in between. It returns an error if the
// hold has ended or is an inner hold.
func (h *Hold) endAll() error {
	for _, o := range sortForLocking(h.holders) {
		o.mu.Lock()
	}
	defer func() {
		for _, o := range h.holders {
			o.mu.Unlock()
		}
	}()
	if h.ended.Load() {
		return failure.NotHeld // the next caller may have the lock
	}
	for _, o := range h.holders {
		if o.count() > 1 {
			return failure.Invalidf("Leave of an inner hold: the outer one still needs the lock %q", o.lease.Key)
		}
	}
	if !h.ended.CompareAndSwap(false, true) {
		return failure.NotHeld
	}
	for _, o := range h.holders {
		o.drop(h)
		_ = o.lease.BeginRelease() //nolint:errcheck // leave finds a loss
	}
	return nil
}

// sortForLocking returns holders in the order in which their mutexes are locked, so that two goroutines that lock
// several of them do not deadlock.
func sortForLocking(holders []*Holder) []*Holder {
	return slices.SortedFunc(slices.Values(holders), func(a, b *Holder) int {
		return cmp.Or(cmp.Compare(a.in.ClientID, b.in.ClientID), cmp.Compare(a.lease.Key, b.lease.Key))
	})
}

// leave replaces the holder by a marker and removes the holder from the queue of the key.
func (o *Holder) leave(ctx context.Context, d time.Duration, now time.Time) error {
	if err := o.lease.Loss(); err != nil {
		return err
	}
	defer o.lease.End()
	defer o.leaveQueue(queue.NoMessage)
	now, span, err := o.beginOperation(ctx, now)
	if err != nil {
		return err
	}
	defer o.operations.end()
	o.in.underWay.begin()
	defer o.in.underWay.end()
	o.expectEcho(o.lease.Left(now), d) // the deferred leaveQueue completes this
	left, err := o.turnIntoMarker(ctx, d, span)
	switch now := time.Now(); {
	case err != nil:
		return err
	case left.Answer.Mine:
		return nil
	case !left.Doubt || !lease.Expired(left.First, d, now):
		return failure.NotMine // a marker would not have expired yet
	case o.lease.Expired(now):
		return failure.BecauseOf(errUnconfirmed)
	default:
		return nil // the holder became a marker, which has expired; otherwise Redis would still have the holder
	}
}

// errUnconfirmed means that the lease and the marker had expired when Redis first answered, so it is unknown whether
// the marker existed.
const errUnconfirmed = failure.Text("the lease and the marker had expired before redis answered")

// turnIntoMarker turns the holder into a marker with a new field, so that no command of the holder can prolong the
// marker. If Redis refuses the new field, for example because it is out of memory, the marker keeps the old field.
func (o *Holder) turnIntoMarker(ctx context.Context, d time.Duration, s resend.Span) (resend.Result[redisstore.Change], error) {
	marker := o.in.NextField(o.lease.Kind)
	passed, err := resend.Insist(ctx, o.in.Sender, resend.Operation[redisstore.Change]{
		Key: o.lease.Key, Span: s, Subject: o, AcceptLate: acceptLateChange,
	}, func(now time.Time) redisstore.Call[redisstore.Change] {
		return o.in.Redis.HandOff(now, o.lease.Claim, marker, redisstore.Terms{Lease: d})
	})
	if !wire.Rejects(err) {
		return passed, err
	}
	kept, err := resend.Insist(ctx, o.in.Sender, resend.Operation[redisstore.Change]{
		Key: o.lease.Key, Span: s, Subject: o,
	}, func(now time.Time) redisstore.Call[redisstore.Change] {
		return o.in.Redis.Refresh(now, o.lease.Claim, d)
	})
	if passed.Doubt {
		kept.Doubt, kept.First = true, passed.First
	}
	return kept, err
}
