package holding

import (
	"cmp"
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/resend"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// Entry is a re-entry: another hold of a holder.
type Entry struct {
	Span    resend.Span
	Lease   time.Duration
	Renewed bool
	Valid   func() bool // reports whether the context of the caller still carries the holder
}

// Reenter adds a hold that has not begun. It does not wait in the queue of the key, because the holder has the
// lock. The caller begins the hold, or gives it back by Undo. On an error, final reports whether the error is the outcome
// of the re-entry: the node is silent, or the holder had ended before.
func (o *Holder) Reenter(ctx context.Context, e Entry) (final bool, err error) {
	if err := o.in.FailFast(ctx, o.lease.Key); err != nil {
		return true, err
	}
	span, err := o.operations.beginBy(ctx, e.Span, o.in.Sender.Timeout)
	if err != nil {
		return false, err
	}
	defer o.operations.end()
	if err := o.in.FailFast(ctx, o.lease.Key); err != nil {
		return true, err // the operation that had the turn before has found out
	}
	o.checkClock(time.Now())
	if !e.Valid() {
		return true, o.endCause() // released before this turn: the next caller may have the lock
	}
	count, err := o.announce()
	if err != nil {
		return true, err
	}
	o.lease.Ask(e.Lease)
	sent, err := o.writeCount(ctx, count, e.Lease, span)
	o.raised(sent, e.Lease, err)
	if err = cmp.Or(err, o.lease.Loss()); err != nil {
		o.Undo(false)
		return false, err
	}
	o.Watch(e.Renewed, time.Now())
	return false, nil
}

// announce counts one more hold, which has not begun, and returns the new count.
func (o *Holder) announce() (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.lease.Held() {
		return 0, o.endCause()
	}
	o.entering++
	return o.count(), nil
}

// Undo takes back a re-entry whose hold did not begin. It returns at once; the count in Redis is corrected in the
// background.
func (o *Holder) Undo(renewed bool) {
	if renewed {
		o.lease.StopRenewal()
	}
	o.amendAfter(func() { o.entering-- })
}

// amendAfter makes a change to the holds under the mutex. Then it has the count in Redis, which may be
// too high now, corrected in the background, by one writer per holder. The writer frees a lock that
// has no holds any more. Both are one step, so that no release passes such a lock to a waiter first.
func (o *Holder) amendAfter(change func()) {
	o.mu.Lock()
	change()
	first := !o.amending
	o.amending = true
	o.mu.Unlock()
	if first {
		o.in.Spawn(o.amend)
	}
}

// amend writes the count until Redis has confirmed the right one, or the holder has ended.
func (o *Holder) amend(ctx context.Context) {
	for pause := resend.FirstPause; !o.tryAmend(ctx); pause = resend.NextPause(pause) {
		if jitter.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// tryAmend tries once, and reports whether nothing is left to do. Other operations go first: while one waits for
// the turn, tryAmend writes nothing, and an operation that comes later ends the wait for the answer.
func (o *Holder) tryAmend(ctx context.Context) bool {
	if o.operations.begin(ctx) != nil {
		return true // the client was closed
	}
	defer o.operations.end()
	silent := o.in.FailFast(ctx, o.lease.Key) != nil
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	o.mu.Lock()
	count, live := o.count(), o.lease.Held()
	o.mu.Unlock()
	switch {
	case live && count > 0 && !silent && o.operations.yieldTo(cancel):
		return o.amendOnce(bounded, count)
	case live && count == 0:
		_ = o.freeNow(context.WithoutCancel(ctx)) //nolint:errcheck // the outer hold was released; it leaves the rest to the reaper
		return true
	default:
		return !live
	}
}

// amendOnce sends the count once. It raises no lease, so it does no harm if it is executed late.
func (o *Holder) amendOnce(ctx context.Context, count int) (done bool) {
	now := time.Now()
	call := o.in.Redis.Hold(now, o.lease.Claim, count, 0)
	mine, _, err := call.Wait(ctx, o.in.Sender.CallLimit(now))
	if err == nil {
		_ = o.confirm(mine) //nolint:errcheck // a loss is notified to the holds
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	done = (err == nil || !wire.Transient(err)) && count == o.count()
	o.amending = !done
	return done
}

// writeCount writes the count, and sends it again until Redis answers. It never creates the lock. If the lock
// does not exist any more, it is lost.
func (o *Holder) writeCount(ctx context.Context, count int, ttl time.Duration, s resend.Span) (sent time.Time, err error) {
	got, err := resend.Insist(ctx, o.in.Sender, resend.Operation[bool]{
		Key: o.lease.Key, Span: s, Subject: o,
	}, func(now time.Time) redisstore.Call[bool] {
		return o.in.Redis.Hold(now, o.lease.Claim, count, ttl)
	})
	if err != nil {
		return got.Sent, err
	}
	return got.Sent, o.confirm(got.Answer)
}

// Extend gives holders, of which each has one hold that has not begun, their whole lease again.
func Extend(ctx context.Context, holders []*Holder, ttl time.Duration, s resend.Span) []error {
	return each(holders, func(o *Holder) error {
		o.lease.Ask(ttl)
		sent, err := o.writeCount(ctx, 1, ttl, s)
		o.raised(sent, ttl, err)
		return cmp.Or(err, o.lease.Loss())
	})
}

// beginOperation takes the turn of an operation without a wait time that was asked for at asked. It returns when the
// operation begins and its time: the rest of the backend timeout, or a whole one if the operations before it were
// answered.
func (o *Holder) beginOperation(ctx context.Context, asked time.Time) (now time.Time, s resend.Span, err error) {
	sender := o.in.Sender
	s, err = o.operations.beginBy(ctx, sender.Operation(asked), sender.Timeout)
	if err != nil {
		return asked, s, failure.BecauseOf(err)
	}
	now = time.Now()
	if s.End.IsZero() {
		s = sender.Operation(now)
	}
	return now, s, nil
}
