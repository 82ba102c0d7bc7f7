package core

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// reenter adds a hold to an ownership that the caller's context carries. It does
// not queue: who holds the lock is first in line. The hold counts from here on; the
// caller makes it a live one, or gives it back by undoEntry.
func (c *Client) reenter(ctx context.Context, o *ownership, req *request, report *AcquireResult) error {
	a := c.newAttempt(ctx, o.lease.Key, req, report, time.Now())
	if err := c.failFast(ctx, o.lease.Key); err != nil {
		return err
	}
	has, err := o.operations.beginBy(ctx, a.span(), c.cfg.backendTimeout)
	if err != nil {
		return a.notEntered(ctx, err)
	}
	defer o.operations.end()
	if err := c.failFast(ctx, o.lease.Key); err != nil {
		return err // who had the turn before has found out
	}
	o.checkClock(time.Now())
	if c.owned(ctx, o.lease.Key, req.kind) != o {
		return o.endCause() // released before this turn: the next caller may have the lock
	}
	count, err := o.entry()
	if err != nil {
		return err
	}
	o.lease.Ask(req.lease)
	sent, err := o.setCount(ctx, count, req.lease, has)
	o.raised(sent, req.lease, err)
	if err = cmp.Or(err, o.lease.Loss()); err != nil {
		c.undoEntry(o, false)
		return a.notEntered(ctx, err)
	}
	o.watch(req.watchdog, time.Now())
	return nil
}

// raised takes in the end of a command, sent at sent, that gives the lock a lease of length ttl.
func (o *ownership) raised(sent time.Time, ttl time.Duration, err error) {
	if err == nil {
		o.lease.Acknowledge(sent, ttl)
	}
	o.checkClock(time.Now())
}

// entry announces one more hold and gives the new count.
func (o *ownership) entry() (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.lease.Held() {
		return 0, o.endCause()
	}
	o.entering++
	return o.count(), nil
}

// notEntered is the error of a re-entry that failed. Nobody else has the lock, so it
// is never taken: when the wait time cuts the re-entry short, Redis was too slow.
func (a *attempt) notEntered(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, ErrLost):
		return a.busy(err)
	case ctx.Err() != nil:
		return a.busy(contextCause(ctx))
	default:
		return unavailable(err)
	}
}

// overtaken takes in that Redis has refused the lock to one who has it as o, and says how that one has
// ended: it was released meanwhile, or is lost.
func (o *ownership) overtaken() error {
	_ = o.confirmed(false) //nolint:errcheck // the cause says more
	return o.endCause()
}

// span is the time of an operation on a lock that is held already: the wait time.
func (a *attempt) span() span {
	switch {
	case a.req.forever:
		return span{}
	case a.req.wait == 0:
		return span{passing: a.now, answers: a.answers}
	default:
		return span{end: a.until, passing: a.until}
	}
}

// undoEntry takes back an entry that did not become a hold. That is done at once;
// the count in Redis is put right in the background.
func (c *Client) undoEntry(o *ownership, renewed bool) {
	if renewed {
		o.lease.StopRenewal()
	}
	o.amendAfter(func() { o.entering-- })
}

// amendAfter makes a change to the holds under the mutex. Then it has the count in Redis, which may be
// too high now, put right in the background, by one writer per ownership. The writer frees a lock that
// has no holds any more. Both are one step, so that no release passes such a lock to a waiter first.
func (o *ownership) amendAfter(change func()) {
	o.mu.Lock()
	change()
	first := !o.amending
	o.amending = true
	o.mu.Unlock()
	if first {
		o.client.spawn(o.amend)
	}
}

// amend writes the hold count until Redis has confirmed the one that is right, or the
// ownership is over.
func (o *ownership) amend(ctx context.Context) {
	for pause := firstPause; !o.amended(ctx); pause = nextPause(pause) {
		if jitter.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// amended tries once, and reports whether there is nothing left to do. The others come
// first: while one of them waits for the turn, nothing is written, and one that comes
// later ends the wait for the answer.
func (o *ownership) amended(ctx context.Context) bool {
	if o.operations.begin(ctx) != nil {
		return true // the client was closed
	}
	defer o.operations.end()
	silent := o.client.failFast(ctx, o.lease.Key) != nil
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	o.mu.Lock()
	count, live := o.count(), o.lease.Held()
	o.mu.Unlock()
	switch {
	case live && count > 0 && !silent && o.operations.yieldTo(cancel):
		return o.writeCount(bounded, count)
	case live && count == 0:
		_ = o.freeNow(context.WithoutCancel(ctx)) //nolint:errcheck // the outer hold was released meanwhile; it leaves the rest to the reaper
		return true
	default:
		return !live
	}
}

// writeCount sends the count once. It raises no lease, so it does no harm that it may
// land late.
func (o *ownership) writeCount(ctx context.Context, count int) (done bool) {
	now := time.Now()
	call := o.client.store.Hold(now, o.lease.Claim, count, 0)
	mine, _, err := call.Wait(ctx, o.client.callLimit(now))
	if err == nil {
		_ = o.confirmed(mine) //nolint:errcheck // a loss is notified to the holders
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	done = (err == nil || !wire.Transient(err)) && count == o.count()
	o.amending = !done
	return done
}

// setCount writes the hold count, resending it while there is no answer. It never
// creates the lock; a lock that is gone is a loss.
func (o *ownership) setCount(ctx context.Context, count int, lease time.Duration, s span) (time.Time, error) {
	got, err := insist(ctx, o, s, anyLate, func(now time.Time) redisstore.Call[bool] {
		return o.client.store.Hold(now, o.lease.Claim, count, lease)
	})
	if err != nil {
		return got.sent, err
	}
	return got.sent, o.confirmed(got.answer)
}

// confirmed takes in whether a script has found the holder's field. That it is not there is
// the end of the ownership.
func (o *ownership) confirmed(mine bool) error {
	if !mine {
		o.lease.Lose(errNotMine)
		return errNotMine
	}
	return nil
}
