package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// Release ends the hold. Its context ends first, with the cause [ErrReleased], so
// that work under it does not outlive the lock. The last hold of an acquisition
// frees the lock, or gives it to the next waiter of this client: it hands the lock off by a
// script, or passes it on in memory (see Runs in the package comment). An inner hold only
// lowers the count.
//
// It is attempted even when ctx has ended, until Redis has said nothing for the backend
// timeout, or has refused everything for as long, or is so slow that it takes eight of them;
// the time in which it waits behind another
// operation of this holder counts. nil means
// that this holder will never appear in Redis again; if it has passed the lock on,
// its field stands for the next holder. Passing on asks Redis nothing, and does not find out that
// the lock was deleted or forced away. [ErrLost] says that the lock
// had ended before; [ErrNotHeld] that this hold was released already, or is nil:
// nobody else's lock is touched. [ErrUnavailable] says that Redis did not confirm:
// the release goes on in the background until the lease is over. [ErrClosed] says
// that the client was closed under the hold: the key ends with its lease.
func (h *Hold) Release(ctx context.Context) error {
	if h == nil {
		return ErrNotHeld
	}
	now := time.Now()
	h.checkClock(now)
	s := h.scope
	s.cancel(ErrReleased)
	if !s.ended.CompareAndSwap(false, true) {
		return ErrNotHeld
	}
	h.unwatch()
	s.stopRenewal()
	left := s.left(now)
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	handed, err := s.release(ctx, now)
	s.finished(HoldResult{HandedOff: handed, Remaining: left, Err: err})
	return err
}

// release takes the hold away from its owners.
func (s *scope) release(ctx context.Context, now time.Time) (handed bool, err error) {
	defer func() { s.overOnRelease(err) }()
	if len(s.owners) == 1 { // the usual release, which need not pay for what follows
		return s.owners[0].release(ctx, s, now)
	}
	var handovers atomic.Int32
	err = s.each(func(o *ownership) error {
		handed, err := o.release(ctx, s, now)
		if handed {
			handovers.Add(1)
		}
		return err
	})
	return handovers.Load() > 0, err
}

// each does something that ends the hold for all its keys. That some leases are lost which
// it does not need is no error: there is nothing left to end.
func (s *scope) each(do func(o *ownership) error) error {
	errs := eachOwnership(s.owners, do)
	spare := len(errs) - s.needs
	left := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return errors.Is(err, ErrLost) })
	if len(errs)-len(left) <= spare {
		errs = left
	}
	return joined(errs)
}

// eachOwnership does something for all keys of a lock at once, so that together they take no
// longer than one.
func eachOwnership(owners []*ownership, do func(o *ownership) error) []error {
	errs := make([]error, len(owners))
	if len(owners) == 1 {
		errs[0] = do(owners[0])
		return errs
	}
	var all sync.WaitGroup
	for i, o := range owners {
		all.Go(func() { errs[i] = do(o) })
	}
	all.Wait()
	return errs
}

// joined joins what became of the keys of one lock, and leaves a single error as it is.
// The whole has one outcome: that a part of it has ended comes first, and then what came
// in the way of the others is only mentioned.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	for _, outcome := range []error{ErrLost, ErrNotHeld, ErrClosed} {
		if slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, outcome) }) {
			return errors.Join(mentionedBeside(outcome, errs)...)
		}
	}
	return errors.Join(errs...)
}

// mentionedBeside makes all errors that do not match outcome ones that are only mentioned.
func mentionedBeside(outcome error, errs []error) []error {
	mentioned := slices.Clone(errs)
	for i, err := range mentioned {
		if !errors.Is(err, outcome) {
			mentioned[i] = onlyMentioned(err)
		}
	}
	return mentioned
}

// release takes one hold away from the ownership.
func (o *ownership) release(ctx context.Context, s *scope, now time.Time) (handed bool, err error) {
	now, has, err := o.begin(ctx, now)
	if err != nil {
		o.amendAfter(func() { o.drop(s) })
		return false, err
	}
	defer o.operations.end()
	o.checkClock(now)
	if left := o.leave(s); left > 0 {
		return false, o.leaveInner(ctx, left, has)
	}
	for {
		next := o.next(now)
		if next == nil || !o.passes(s, next, now) {
			return o.freeLast(ctx, next, now, has)
		}
		if o.client.queues.Passed(next, o, now) {
			return true, nil
		}
	}
}

// next takes the waiter that gets the lock out of the queue. It returns nil if the lock is to be freed.
func (o *ownership) next(now time.Time) *queue.Waiter {
	if o.client.cfg.replication.Acks != wire.NoAcks {
		return nil // the next holder has the replicas acknowledge its own acquire
	}
	return o.client.queues.Choose(o.lease.Key, o, now)
}

// passes reports whether the ownership is passed on to the waiter, after its last hold s. If so, its lease
// belongs to the waiter when passes returns. If not, the lock is handed off by a script: see Runs in the
// package comment.
func (o *ownership) passes(s *scope, w *queue.Waiter, now time.Time) bool {
	several := len(s.owners) > 1 // keys, or servers
	if !o.lease.Kind.Passes() || several || o.token != 0 || w.Token {
		return false
	}
	o.mu.Lock()
	amending := o.amending
	o.mu.Unlock()
	return !amending && o.lease.Pass(now, w.Lease, w.Renewed)
}

// leaveInner notes in Redis that one hold less is left.
func (o *ownership) leaveInner(ctx context.Context, left int, s span) error {
	if err := o.lease.Loss(); err != nil {
		return err
	}
	_, err := o.setCount(ctx, left, 0, s)
	if errors.Is(err, ErrUnavailable) {
		o.amendAfter(func() {})
	}
	return err
}

// freeNow is freeLast for one that has no turn to wait for.
func (o *ownership) freeNow(ctx context.Context) error {
	now := time.Now()
	_, err := o.freeLast(ctx, o.next(now), now, o.client.operation(now))
	return err
}

// freeLast ends the ownership after its last hold. The lock goes to a waiter, or to everybody.
func (o *ownership) freeLast(ctx context.Context, w *queue.Waiter, now time.Time, s span) (handed bool, err error) {
	if err := o.lease.BeginRelease(); err != nil {
		if w != nil {
			o.client.queues.NotHanded(w, now)
		}
		return false, err
	}
	handed, err = o.free(ctx, w, now, s)
	o.lease.End() // now, so that Close has waited for the release
	return handed, err
}

// overOnRelease notifies the observers when the error of a release says that the hold was lost, or
// left to its lease by Close, and nobody has said so before.
func (s *scope) overOnRelease(err error) {
	if !errors.Is(err, ErrLost) && !errors.Is(err, ErrClosed) {
		return
	}
	if s.over.CompareAndSwap(notOver, overBy(err)) && s.observed != nil {
		s.observers().loss.Notify(s.observed, Loss{HoldInfo: s.info(), Cause: err})
	}
}

// free gives the lock to a waiter of this client, or to everybody.
func (o *ownership) free(ctx context.Context, w *queue.Waiter, now time.Time, s span) (handed bool, err error) {
	c := o.client
	if w == nil {
		return false, o.freeForAll(ctx, s)
	}
	next, err := o.handTo(ctx, w, now, s)
	if err != nil {
		c.queues.NotHanded(w, time.Now())
		if errors.Is(err, errHandoffRefused) {
			return false, o.freeForAll(ctx, s)
		}
		o.leaves(queue.NoMessage)
		if errors.Is(err, errHandedAndOver) {
			return false, nil
		}
		return false, err
	}
	if c.queues.Handed(w, o, next, time.Now()) {
		return true, nil
	}
	// The waiter left while the lock was on its way. It is this call's to pass on,
	// but what becomes of it is no error of the release that was asked for.
	_ = next.freeNow(ctx) //nolint:errcheck // see above; what is not answered goes to the reaper
	return false, nil
}

// passOn frees an ownership whose waiter has left, in the background. The release begins at once, so that
// Close waits for it and does not leave the lock to its lease.
func (c *Client) passOn(o *ownership) {
	_ = o.lease.BeginRelease() //nolint:errcheck // freeNow finds a loss
	c.spawn(func(ctx context.Context) {
		_ = o.freeNow(context.WithoutCancel(ctx)) //nolint:errcheck // no caller; it leaves the rest to the reaper
	})
}

// handTo moves the lock to a waiter's new field. For a fixed lease it asks Redis for a reserve, so that the
// next releases can pass the lock on.
func (o *ownership) handTo(ctx context.Context, w *queue.Waiter, now time.Time, s span) (*ownership, error) {
	c := o.client
	field, ttl := c.nextField(o.lease.Kind), w.Lease
	if !w.Renewed && !w.Token && o.lease.Kind.Passes() {
		ttl += lease.Reserve(ttl)
	}
	falls := o.expectFall(o.lease.Left(now), ttl)
	got, err := insist(ctx, o, s, passedLate, func(now time.Time) redisstore.Call[redisstore.Change] {
		return c.store.HandOff(now, o.lease.Claim, field, redisstore.Terms{Lease: ttl, Token: w.Token})
	})
	switch {
	case wire.Rejects(err) && !got.doubt:
		return nil, fmt.Errorf("%w: %w", errHandoffRefused, err)
	case err != nil:
		o.relinquish()
		c.abandon(o.lease.Kind, []string{o.lease.Key}, field, nil, ttl)
		return nil, err
	}
	if falls {
		o.fallen(got.answer)
	}
	switch {
	case !got.answer.Mine && got.doubt && !o.lease.Expired(time.Now()):
		return nil, errHandedAndOver
	case !got.answer.Mine:
		return nil, errNotMine
	}
	claim := redisstore.Claim{Kind: o.lease.Kind, Key: o.lease.Key, Field: field}
	next := c.newOwnership(claim, got.answer.Token, got.first, ttl)
	next.lease.Pass(got.first, w.Lease, w.Renewed) // keeps the reserve back
	return next, nil
}

// errHandedAndOver says that a hand-off was sent again and found neither holder within
// the lease of the old one: the first send was executed, and what it gave is over.
var errHandedAndOver = errors.New("the lease of the next holder is over")

// errHandoffRefused says that Redis refused a hand-off with an error, such as OOM, and
// that no send of it is without an answer: the lock is still there, and freeing it
// may work.
var errHandoffRefused = errors.New("hand-off refused")

// freeForAll deletes the lock and publishes it.
func (o *ownership) freeForAll(ctx context.Context, s span) error {
	c := o.client
	got, err := insist(ctx, o, s, freedLate, func(now time.Time) redisstore.Call[redisstore.Released] {
		return c.store.Release(now, o.lease.Claim)
	})
	if err != nil {
		o.relinquish()
		if got.doubt {
			o.leaves(queue.Unanswered)
		} else {
			o.leaves(queue.NoMessage)
		}
		return err
	}
	switch {
	case got.answer.Kept:
		o.leaves(queue.Unpublished)
	case got.doubt && !got.answer.Mine:
		o.leaves(queue.Unanswered)
	default:
		o.leaves(c.othersNotified(o.lease.Key, got.answer.Notified))
	}
	if got.answer.Mine || got.done(o) {
		return nil
	}
	return errNotMine
}

// othersNotified is how many subscribers beside this client a message has reached. In a
// Cluster with classic pub/sub the count is that of one node, which says nothing.
func (c *Client) othersNotified(key string, notified int) int {
	if c.store.CountsOneNode() {
		return queue.Uncounted
	}
	if notified > 0 && c.queues.Listens(key) {
		notified--
	}
	return max(notified, 0)
}
