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

// Reenter adds a hold that has not begun. It does not wait in the queue of the key, because the holder already has the
// lock. The caller begins the hold or gives it back by Undo. On an error, final reports whether the error is the outcome
// of the re-entry: the node is silent, or the holder ended before.
func (o *Holder) Reenter(ctx context.Context, e Entry) (final bool, err error) {
	if err := o.in.FailFast(ctx, o.lease.Key); err != nil {
		return true, err
	}
	span, err := o.operations.beginWithin(ctx, e.Span, o.in.Sender.Timeout)
	if err != nil {
		return false, err
	}
	defer o.operations.end()
	if err := o.in.FailFast(ctx, o.lease.Key); err != nil {
		return true, err // the operation before this one found the node silent
	}
	o.checkClock(time.Now())
	if !e.Valid() {
		return true, o.endCause() // released before this turn: the next caller may have the lock
	}
	count, err := o.addEntering()
	if err != nil {
		return true, err
	}
	o.lease.Ask(e.Lease)
	sent, err := o.writeCount(ctx, count, e.Lease, span)
	o.recordLease(sent, e.Lease, err)
	if err = cmp.Or(err, o.lease.Loss()); err != nil {
		o.Undo(false)
		return false, err
	}
	o.Watch(e.Renewed, time.Now())
	return false, nil
}

// announce counts one more hold, which has not begun yet, and returns the new count.
func (o *Holder) addEntering() (int, error) {
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

// amendAfter changes the holds under the mutex. After the change the count in Redis may be too high, so amendAfter also
// starts a background writer that corrects it, at most one per holder. The writer frees a lock that has no holds any
// more. The mutex covers both steps, so no release can pass such a lock to a waiter in between.
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

// amend writes the count until Redis confirms the right one or the holder has ended.
func (o *Holder) amend(ctx context.Context) {
	for pause := resend.FirstPause; !o.tryAmend(ctx); pause = resend.NextPause(pause) {
		if jitter.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// tryAmend tries once and reports whether nothing is left to do. Other operations go first: tryAmend writes nothing
// while one waits for the turn, and an operation that comes later cancels its wait for the answer.
func (o *Holder) tryAmend(ctx context.Context) bool {
	if o.operations.begin(ctx) != nil {
		return true // the client was closed
	}
	defer o.operations.end()
	silent := o.in.FailFast(ctx, o.lease.Key) != nil
	amendCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	o.mu.Lock()
	count, live := o.count(), o.lease.Held()
	o.mu.Unlock()
	switch {
	case live && count > 0 && !silent && o.operations.yieldTo(cancel):
		return o.amendOnce(amendCtx, count)
	case live && count == 0:
		_ = o.releaseLastNow(context.WithoutCancel(ctx)) //nolint:errcheck // no hold is left to get the error; freeNow leaves the rest to the reaper
		return true
	default:
		return !live
	}
}

// amendOnce sends the count once. The command does not raise the lease, so it does no harm if Redis executes it late.
func (o *Holder) amendOnce(ctx context.Context, count int) (done bool) {
	now := time.Now()
	call := o.in.Redis.Hold(now, o.lease.Claim, count, 0)
	mine, _, err := call.Wait(ctx, o.in.Sender.CallLimit(now))
	if err == nil {
		_ = o.checkMine(mine) //nolint:errcheck // confirm reports a loss to the holds
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	done = (err == nil || !wire.Transient(err)) && count == o.count()
	o.amending = !done
	return done
}

// writeCount writes the count and sends it again until Redis answers. It never creates the lock. If the lock no longer
// exists, the holder has lost it.
func (o *Holder) writeCount(ctx context.Context, count int, ttl time.Duration, s resend.Span) (sent time.Time, err error) {
	got, err := resend.Insist(ctx, o.in.Sender, resend.Operation[bool]{
		Key: o.lease.Key, Span: s, Subject: o,
	}, func(now time.Time) redisstore.Call[bool] {
		return o.in.Redis.Hold(now, o.lease.Claim, count, ttl)
	})
	if err != nil {
		return got.Sent, err
	}
	return got.Sent, o.checkMine(got.Answer)
}

// Extend renews the whole lease of holders that each have one hold, which has not begun.
func Extend(ctx context.Context, holders []*Holder, ttl time.Duration, s resend.Span) []error {
	return forEach(holders, func(o *Holder) error {
		o.lease.Ask(ttl)
		sent, err := o.writeCount(ctx, 1, ttl, s)
		o.recordLease(sent, ttl, err)
		return cmp.Or(err, o.lease.Loss())
	})
}

// beginOperation waits for the turn of an operation without a wait time, which the caller requested at asked. It returns
// the start of the operation and its time limits: the rest of the backend timeout, or a whole one if the operations
// before it were answered.
func (o *Holder) beginOperation(ctx context.Context, asked time.Time) (now time.Time, s resend.Span, err error) {
	sender := o.in.Sender
	s, err = o.operations.beginWithin(ctx, sender.Operation(asked), sender.Timeout)
	if err != nil {
		return asked, s, cmp.Or(o.lease.Loss(), failure.BecauseOf(err)) // if the lock was lost in this time, that is the outcome
	}
	now = time.Now()
	if s.End.IsZero() {
		s = sender.Operation(now)
	}
	return now, s, nil
}
