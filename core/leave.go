package core

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// Leave stops owning the lock without freeing it: the key stays for d, as a marker
// that nobody holds, and then expires. The marker has a holder field of its own, so
// that no command of the holder that is still on its way can prolong it. Who waits, in
// whatever process, is notified when that is earlier than the end of the lease. Only the last
// hold of an acquisition can leave; an inner one gets [ErrInvalid] and goes on.
//
// Otherwise the hold and its context end as with [Hold.Release], whatever Redis says, and
// also when ctx has ended. nil means that the marker was set; d counts from the moment at which
// Redis executes the command. Leave has the errors of Release, but does nothing in the
// background: after [ErrUnavailable] the key ends with the lease, or d after
// Redis has executed the command, which may come late.
func (h *Hold) Leave(ctx context.Context, d time.Duration) error {
	if h == nil || h.scope.ended.Load() {
		return ErrNotHeld
	}
	if err := checkLease("Leave", d); err != nil {
		return err
	}
	now := time.Now()
	h.checkClock(now)
	s := h.scope
	left := s.left(now) // before close ends the leases
	if err := s.close(); err != nil {
		return err
	}
	s.cancel(ErrReleased)
	h.unwatch()
	s.stopRenewal()
	ctx = context.WithoutCancel(ctx)
	err := s.each(func(o *ownership) error {
		return o.leaveFor(ctx, d.Truncate(time.Millisecond), now)
	})
	s.overOnRelease(err)
	s.finished(HoldResult{Left: true, Remaining: left, Err: err})
	return err
}

// close takes the hold away from all its owners, in one step: a re-entry is there
// before it, or is refused.
func (s *scope) close() error {
	for _, o := range inOrder(s.owners) {
		o.mu.Lock()
	}
	defer func() {
		for _, o := range s.owners {
			o.mu.Unlock()
		}
	}()
	if s.ended.Load() {
		return ErrNotHeld // the next caller may have the lock by now
	}
	for _, o := range s.owners {
		if o.count() > 1 {
			return invalidf("Leave of an inner hold: the outer one still needs the lock %q", o.lease.Key)
		}
	}
	if !s.ended.CompareAndSwap(false, true) {
		return ErrNotHeld
	}
	for _, o := range s.owners {
		o.drop(s)
		_ = o.lease.BeginRelease() //nolint:errcheck // a loss is found by the one who leaves it
	}
	return nil
}

// inOrder are ownerships in the order in which their mutexes are taken, so that two who take
// those of several do not block each other.
func inOrder(owners []*ownership) []*ownership {
	return slices.SortedFunc(slices.Values(owners), func(a, b *ownership) int {
		return cmp.Or(cmp.Compare(a.client.id, b.client.id), cmp.Compare(a.lease.Key, b.lease.Key))
	})
}

// leaveFor puts a marker in the place of the holder.
func (o *ownership) leaveFor(ctx context.Context, d time.Duration, now time.Time) error {
	if err := o.lease.Loss(); err != nil {
		return err
	}
	defer o.lease.End()
	defer o.leaves(queue.NoMessage)
	now, has, err := o.begin(ctx, now)
	if err != nil {
		return err
	}
	defer o.operations.end()
	o.expectFall(o.lease.Left(now), d) // leaves, which follows, ends this
	left, err := o.mark(ctx, d, has)
	switch now := time.Now(); {
	case err != nil:
		return err
	case left.answer.Mine:
		return nil
	case !left.doubt || !lease.Expired(left.first, d, now):
		return errNotMine // a marker would still be there
	case o.lease.Expired(now):
		return unavailable(errUnconfirmed)
	default:
		return nil // the holder would still be there: it became a marker, which has expired
	}
}

// errUnconfirmed says that the first answer came when neither the holder nor its marker could be there.
var errUnconfirmed = errors.New("the lease and the marker had expired before redis answered")

// mark makes a marker of the holder: by a field of its own, or of the old one where Redis
// takes no new field, being out of memory, say.
func (o *ownership) mark(ctx context.Context, d time.Duration, s span) (result[redisstore.Change], error) {
	store, marker := o.client.store, o.client.nextField(o.lease.Kind)
	passed, err := insist(ctx, o, s, passedLate, func(now time.Time) redisstore.Call[redisstore.Change] {
		return store.HandOff(now, o.lease.Claim, marker, redisstore.Terms{Lease: d})
	})
	if !wire.Rejects(err) {
		return passed, err
	}
	kept, err := insist(ctx, o, s, anyLate, func(now time.Time) redisstore.Call[redisstore.Change] {
		return store.Refresh(now, o.lease.Claim, d)
	})
	if passed.doubt {
		kept.doubt, kept.first = true, passed.first
	}
	return kept, err
}
