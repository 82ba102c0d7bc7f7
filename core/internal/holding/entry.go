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

// Entry describes a re-entry, which adds a hold to a holder.
type Entry struct {
	Span    resend.Span
	Lease   time.Duration
	Renewed bool        // the watchdog renews the lease for the new hold
	Valid   func() bool // reports whether the context of the caller still carries the holder
}

// Reenter adds a hold that has not begun. It does not wait in the queue of the key, because the holder already has the
// lock. The caller then begins the hold, or calls [Holder.Undo]. If final is true, the caller returns the error as it is,
// because the node is silent or the holder has ended.
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
	entered := false
	defer func() {
		if !entered { // an error, or a hook that ended the goroutine
			o.Undo(false)
		}
	}()
	o.lease.Ask(e.Lease)
	sent, err := o.writeCount(ctx, count, e.Lease, span)
	o.recordLease(sent, e.Lease, err)
	if err := cmp.Or(err, o.lease.Loss()); err != nil {
		return false, err
	}
	o.Watch(e.Renewed, time.Now())
	entered = true
	return false, nil
}

// addEntering counts one more hold, which has not begun yet, and returns the new count. It returns an error if the lease
// has ended.
func (o *Holder) addEntering() (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.lease.Held() {
		return 0, o.endCause()
	}
	o.entering++
	return o.count(), nil
}

// Undo takes back a re-entry whose hold did not begin. It returns at once and corrects the count in Redis in the
// background. renewed means that the watchdog renews the lease for that hold.
func (o *Holder) Undo(renewed bool) {
	if renewed {
		o.lease.StopRenewal()
	}
	o.amendAfter(func() { o.entering-- })
}

// amendAfter calls change, which changes the holds, under the mutex. Because the count in Redis may then be too high,
// amendAfter also starts amend in the background, unless amend is already running. The mutex covers the change and the
// mark that the count is wrong, so no release can pass the lock on in between.
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

// amend writes the count of holds to Redis until Redis confirms it or the holder has ended. If the holder has no hold any
// more, amend frees the lock.
func (o *Holder) amend(ctx context.Context) {
	for pause := resend.FirstPause; !o.tryAmend(ctx); pause = resend.NextPause(pause) {
		if jitter.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// tryAmend writes the count once and reports whether nothing is left to do. Other operations have precedence: while one
// waits for the turn, tryAmend writes nothing, and an operation that comes later cancels tryAmend's wait for the
// answer.
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
		_ = o.releaseLastNow(context.WithoutCancel(ctx)) //nolint:errcheck // no hold is left to get the error; releaseLastNow leaves the rest to the reaper
		return true
	default:
		return !live
	}
}

// amendOnce sends the count once and reports whether Redis has confirmed the present count. The command does not raise
// the lease, so it does no harm if Redis executes it late.
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

// writeCount writes the count to Redis and raises the lease to ttl, if ttl is not 0. It sends the command again until
// Redis answers. The command never creates the lock. If Redis no longer has the holder, writeCount loses the lease and
// returns [failure.NotMine].
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

// Extend renews the whole lease of holders whose only hold has not begun. It returns the errors in the order of holders.
func Extend(ctx context.Context, holders []*Holder, ttl time.Duration, s resend.Span) []error {
	return forEach(holders, func(o *Holder) error {
		o.lease.Ask(ttl)
		sent, err := o.writeCount(ctx, 1, ttl, s)
		o.recordLease(sent, ttl, err)
		return cmp.Or(err, o.lease.Loss())
	})
}

// beginOperation waits for the turn of an operation without a wait time. asked is the time at which the caller requested
// the operation. beginOperation returns the start of the operation and its time limits. If an operation was answered
// during the wait, or if there was no wait, the limits count from the start. Otherwise the operation ends one backend
// timeout after the wait began.
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
