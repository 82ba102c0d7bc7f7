package core

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Leave stops owning the lock without freeing it: the key stays for d, as a marker
// that nobody holds, and then expires. The hold and its context end as with
// [Hold.Release], whose errors it returns. Only the last hold of an acquisition
// can leave; an inner one gets [ErrInvalid].
func (h *Hold) Leave(ctx context.Context, d time.Duration) error {
	if h == nil || h.scope.ended.Load() {
		return ErrNotHeld
	}
	if err := checkLease("Leave", d); err != nil {
		return err
	}
	for _, o := range h.scope.owners {
		if o.holds() > 1 {
			return invalidf("Leave of an inner hold: the outer one still needs the lock %q", o.key)
		}
	}
	h.checkClock(time.Now())
	s := h.scope
	s.cancel(ErrReleased)
	if !s.ended.CompareAndSwap(false, true) {
		return ErrNotHeld
	}
	h.unwatch()
	s.stopRenewal()
	ctx = context.WithoutCancel(ctx)
	err := eachOwner(s.owners, func(_ int, o *owner) error {
		return o.leaveFor(ctx, s, d.Truncate(time.Millisecond))
	})
	s.finished(HoldResult{Left: true, Err: err})
	return err
}

func (o *owner) leaveFor(ctx context.Context, s *scope, d time.Duration) error {
	if err := o.begin(ctx); err != nil {
		return unavailable(err)
	}
	defer o.end()
	if o.holds() > 1 {
		return invalidf("Leave of an inner hold: the outer one still needs the lock %q", o.key)
	}
	o.checkClock(time.Now())
	o.leave(s)
	if err := o.close(); err != nil {
		return err
	}
	settled := o.client.watchdog.settle(ctx, o)
	defer o.client.watchdog.remove(o)
	defer o.finish()
	defer o.client.lines.ownerEnded(o, false)
	if settled != nil {
		return unavailable(settled)
	}
	reply, _, err := o.insist(ctx, time.Now().Add(o.client.cfg.backendTimeout), func() redisstore.Call {
		return o.client.store.Refresh(time.Now(), o.key, o.field, d)
	})
	if err != nil {
		return err
	}
	mine, err := redisstore.Mine(reply)
	switch {
	case err != nil:
		return unavailable(err)
	case !mine:
		s.lostOnRelease(errNotMine)
		return errNotMine
	}
	return nil
}
