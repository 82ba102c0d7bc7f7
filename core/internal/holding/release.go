package holding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/resend"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// Release cancels the context of the hold and then ends the hold in Redis. If it is the last hold of its holder, Release
// gives the lock to a waiter of this client or frees the lock. If the hold lasted for longer than its limit, Release does
// the same and returns [failure.HeldTooLong]. If the hold has ended before, Release returns [failure.NotHeld].
// [resend.Span] lists the time limits.
func (h *Hold) Release(ctx context.Context) error {
	now := time.Now()
	h.CheckClock(now)
	h.cancel(failure.Released)
	if !h.ended.CompareAndSwap(false, true) {
		return failure.NotHeld
	}
	h.unwatch()
	h.stopRenewal()
	left := h.remainingToReport(now)
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	handed, err := h.release(ctx, now)
	h.loseOnRelease(err)
	return h.finish(End{HandedOff: handed, Remaining: left, Err: err})
}

// release removes the hold from its holders. handed reports whether a waiter of this client got the lock.
func (h *Hold) release(ctx context.Context, now time.Time) (handed bool, err error) {
	if len(h.holders) == 1 { // saves the usual release the work for several holders
		return h.holders[0].release(ctx, h, now)
	}
	var handOffs atomic.Int32
	err = h.endEach(func(o *Holder) error {
		handed, err := o.release(ctx, h, now)
		if handed {
			handOffs.Add(1)
		}
		return err
	})
	return handOffs.Load() > 0, err
}

// endEach calls do, which removes the hold from a holder, for each holder. A Redlock needs only a majority of its
// holders, so endEach ignores losses while a majority is left.
func (h *Hold) endEach(do func(o *Holder) error) error {
	errs := forEach(h.holders, do)
	spare := len(errs) - h.needs
	left := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return errors.Is(err, failure.Lost) })
	if len(errs)-len(left) <= spare {
		errs = left
	}
	return failure.Join(errs)
}

// forEach calls do for all holders concurrently and returns the errors in the order of the holders.
func forEach(holders []*Holder, do func(o *Holder) error) []error {
	errs := make([]error, len(holders))
	if len(holders) == 1 {
		errs[0] = do(holders[0])
		return errs
	}
	var all sync.WaitGroup
	for i, o := range holders {
		all.Go(func() { errs[i] = do(o) })
	}
	all.Wait()
	return errs
}

// release removes a hold from the holder. If it was the last hold, release gives the lock to a waiter or frees it.
// handed reports whether a waiter got the lock.
func (o *Holder) release(ctx context.Context, h *Hold, now time.Time) (handed bool, err error) {
	now, span, err := o.beginOperation(ctx, now)
	if err != nil {
		o.amendAfter(func() { o.drop(h) })
		return false, err
	}
	defer o.operations.end()
	o.in.underWay.begin()
	defer o.in.underWay.end()
	o.checkClock(now)
	if left := o.remove(h); left > 0 {
		return false, o.releaseInner(ctx, left, span)
	}
	for {
		next := o.takeNext(now)
		if next == nil || !o.passTo(h, next, now) {
			return o.releaseLast(ctx, next, now, span)
		}
		if o.in.Queues.CompletePass(next, o, now) {
			return true, nil
		}
	}
}

// releaseInner writes the lower count of holds to Redis.
func (o *Holder) releaseInner(ctx context.Context, left int, s resend.Span) error {
	if err := o.lease.Loss(); err != nil {
		return err
	}
	_, err := o.writeCount(ctx, left, 0, s)
	if errors.Is(err, failure.Unavailable) {
		o.amendAfter(func() {})
	}
	return err
}

// takeNext takes the waiter that gets the lock next out of the queue. It returns nil if the lock has to be freed.
func (o *Holder) takeNext(now time.Time) *queue.Waiter {
	if o.in.Acks {
		return nil // replicas have to acknowledge the acquire of the next holder
	}
	return o.in.Queues.TakeNext(o.lease.Key, o, now)
}

// passTo passes the lease of the holder to w in memory, after the last hold h, and reports whether it did. If not, a
// script has to hand the lock off. Runs in the comment of package core describes both ways.
func (o *Holder) passTo(h *Hold, w *queue.Waiter, now time.Time) bool {
	several := len(h.holders) > 1 // keys, or servers
	if !o.lease.Kind.Passes() || several || o.token != 0 || w.Token {
		return false
	}
	o.mu.Lock()
	amending := o.amending
	o.mu.Unlock()
	return !amending && o.lease.Pass(now, w.Lease, w.Renewed)
}

// releaseLastNow gives the lock to the next waiter or frees it. Its caller has the turn, or does not need one.
func (o *Holder) releaseLastNow(ctx context.Context) error {
	now := time.Now()
	_, err := o.releaseLast(ctx, o.takeNext(now), now, o.in.Sender.Operation(now))
	return err
}

// releaseLast ends the holder after its last hold. It hands the lock off to w, or frees the lock if w is nil. If the
// lease is lost, releaseLast puts w back into the queue and returns the loss.
func (o *Holder) releaseLast(ctx context.Context, w *queue.Waiter, now time.Time, s resend.Span) (handed bool, err error) {
	if err := o.lease.BeginRelease(); err != nil {
		if w != nil {
			o.in.Queues.CancelHandOff(w, now)
		}
		return false, err
	}
	defer o.lease.End() // only then, because Close waits for the release; deferred, because a hook may end the goroutine
	if w == nil {
		return false, o.free(ctx, s)
	}
	return o.handTo(ctx, w, now, s)
}

// handTo hands the lock off to w by a script and reports whether w got it. If the script fails, handTo puts w back into
// the queue. If Redis refused the script, handTo then frees the lock.
func (o *Holder) handTo(ctx context.Context, w *queue.Waiter, now time.Time, s resend.Span) (handed bool, err error) {
	next, err := o.handOff(ctx, w, now, s)
	if err != nil {
		o.in.Queues.CancelHandOff(w, time.Now())
		if errors.Is(err, errHandOffRefused) {
			return false, o.free(ctx, s)
		}
		o.leaveQueue(queue.NoMessage)
		if errors.Is(err, errNextExpired) {
			return false, nil
		}
		return false, err
	}
	if o.in.Queues.CompleteHandOff(w, o, next, time.Now()) {
		return true, nil
	}
	// The waiter left during the hand-off, so the new holder is released, too. The error of that second release is not
	// an error of the release that the caller asked for.
	_ = next.releaseLastNow(ctx) //nolint:errcheck // see above; releaseLastNow leaves unanswered commands to the reaper
	return false, nil
}

// handOff replaces the field of the holder in Redis by a new field and returns the holder of that field for w. If the
// lease of w is fixed, handOff asks Redis for a longer lease, so that later releases can pass the lock on.
func (o *Holder) handOff(ctx context.Context, w *queue.Waiter, now time.Time, s resend.Span) (*Holder, error) {
	field, ttl := o.in.NextField(o.lease.Kind), w.Lease
	if !w.Renewed && !w.Token && o.lease.Kind.Passes() {
		ttl += lease.Reserve(ttl)
	}
	falls := o.expectEcho(o.lease.Left(now), ttl)
	got, err := resend.Insist(ctx, o.in.Sender, resend.Operation[redisstore.Change]{
		Key: o.lease.Key, Span: s, Subject: o, AcceptLate: acceptLateChange,
	}, func(now time.Time) redisstore.Call[redisstore.Change] {
		return o.in.Redis.HandOff(now, o.lease.Claim, field, redisstore.Terms{Lease: ttl, Token: w.Token})
	})
	switch {
	case wire.Rejects(err) && !got.Doubt:
		return nil, fmt.Errorf("%w: %w", errHandOffRefused, err)
	case err != nil:
		o.relinquish()
		o.in.Reaper.Abandon(o.lease.Kind, []string{o.lease.Key}, field, nil, ttl)
		return nil, err
	}
	if falls {
		o.resolveEcho(got.Answer)
	}
	switch {
	case !got.Answer.Mine && got.Doubt && !o.lease.Expired(time.Now()):
		return nil, errNextExpired
	case !got.Answer.Mine:
		return nil, failure.NotMine
	}
	claim := redisstore.Claim{Kind: o.lease.Kind, Key: o.lease.Key, Field: field}
	next := o.in.Open(claim, got.Answer.Token, got.First, ttl)
	next.lease.Pass(got.First, w.Lease, w.Renewed) // sets the reserve apart
	return next, nil
}

// errNextExpired means that a hand-off was sent again before the old lease expired, and found neither the old holder nor
// the new one. So Redis has executed an earlier send, and the lease of the new holder has expired.
const errNextExpired = failure.Text("the lease of the next holder has expired")

// errHandOffRefused means that Redis refused a hand-off with an error, such as OOM, and that every send was answered. So
// the holder still has the lock, and the caller tries to free it.
const errHandOffRefused = failure.Text("hand-off refused")

// free frees the lock by a script that also publishes a message, and removes the holder from the queue of the key. If
// Redis does not answer, the reaper frees the lock.
func (o *Holder) free(ctx context.Context, s resend.Span) error {
	got, err := resend.Insist(ctx, o.in.Sender, resend.Operation[redisstore.Released]{
		Key: o.lease.Key, Span: s, Subject: o, AcceptLate: acceptLateRelease,
	}, func(now time.Time) redisstore.Call[redisstore.Released] {
		return o.in.Redis.Release(now, o.lease.Claim)
	})
	if err != nil {
		o.relinquish()
		if got.Doubt {
			o.leaveQueue(queue.Unanswered)
		} else {
			o.leaveQueue(queue.NoMessage)
		}
		return err
	}
	if got.Answer.Behind || got.Doubt && !got.Answer.Mine { // an earlier send may have left something
		o.relinquish()
	}
	switch {
	case got.Answer.Kept:
		o.leaveQueue(queue.Unpublished)
	case got.Doubt && !got.Answer.Mine:
		o.leaveQueue(queue.Unanswered)
	default:
		o.leaveQueue(o.in.othersNotified(o.lease.Key, got.Answer.Notified))
	}
	// Mine is also false if an earlier send has freed the lock. That is impossible if the lease expired before the send.
	if got.Answer.Mine || got.Doubt && !o.lease.Expired(got.First) {
		return nil
	}
	return failure.NotMine
}

// acceptLateChange and acceptLateRelease accept the late answer to a send only if that send found the holder. Otherwise
// another send of the same operation may have removed the holder.
func acceptLateChange(c redisstore.Change) bool    { return c.Mine }
func acceptLateRelease(r redisstore.Released) bool { return r.Mine }

// ReleaseInBackground releases, in the background, a holder whose waiter has left. The release of the lease begins
// before ReleaseInBackground returns. So Close waits for the release and does not leave the lock to its lease.
func (hs *Holdings) ReleaseInBackground(o *Holder) {
	_ = o.lease.BeginRelease() //nolint:errcheck // releaseLastNow finds a loss
	hs.Spawn(func(ctx context.Context) {
		_ = o.releaseLastNow(context.WithoutCancel(ctx)) //nolint:errcheck // no caller gets the error; releaseLastNow leaves the rest to the reaper
	})
}

// GiveBack concurrently releases holders that no caller has seen yet. It waits for the releases until ctx is done, for
// at most the longer of most and least. If ctx is already done, GiveBack waits for at most least. The releases continue
// in the background.
func GiveBack(ctx context.Context, got []*Holder, most, least time.Duration) {
	if len(got) == 0 {
		return
	}
	ended := ctx.Done()
	if ctx.Err() != nil {
		most, ended = 0, nil
	}
	limit := time.NewTimer(max(least, most))
	defer limit.Stop()
	gone := make(chan struct{}, len(got))
	for _, o := range got {
		o.in.Spawn(func(life context.Context) {
			defer func() { gone <- struct{}{} }()             // deferred, because a hook may end the goroutine
			_ = o.releaseLastNow(context.WithoutCancel(life)) //nolint:errcheck // the reaper goes on
		})
	}
	for range got {
		select {
		case <-gone:
		case <-limit.C:
			return
		case <-ended:
			return
		}
	}
}

// othersNotified returns the number of other processes that received a message, given the number that PUBLISH returned.
// In a Cluster with classic pub/sub PUBLISH counts only the subscribers of one node, so othersNotified returns
// [queue.Uncounted].
func (hs *Holdings) othersNotified(key string, notified int) int {
	if hs.Redis.CountsOneNode() {
		return queue.Uncounted
	}
	if notified > 0 && hs.Queues.Listens(key) {
		notified--
	}
	return max(notified, 0)
}
