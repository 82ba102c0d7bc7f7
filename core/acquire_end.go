package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// failed decides what an attempt without a reply means. again says that another one
// may help.
func (a *attempt) failed(ctx context.Context, err error, limit time.Time) (again bool, _ error) {
	switch {
	case ctx.Err() != nil:
		return false, a.stopped(ctx, contextCause(ctx))
	case a.over() && a.knownTaken():
		return false, a.busy(nil) // Redis answered a moment ago
	case a.timeUp() && a.client.queues.Held(a.key, a.now):
		return false, a.busy(nil) // that is known without Redis
	case !a.now.Before(limit), errors.Is(err, redisstore.ErrSilent):
		return false, a.client.concede(ctx, a.key, a.now, afterEarlier(a.earlier, err))
	case redisstore.Transient(err):
		if a.earlier == nil || redisstore.Passes(err) {
			a.earlier = err
		}
		return true, err
	default:
		return false, unavailable(err)
	}
}

// knownTaken says whether the lock is known to have been taken while this attempt, or
// another waiter of this client beside it, waited.
func (a *attempt) knownTaken() bool {
	if a.refusal != nil {
		return true
	}
	r, at, taken := a.client.queues.TakenSince(&a.w)
	if r != nil {
		a.refusal, a.seen = r, at
	}
	return taken
}

// afterEarlier adds what the send before was told, such as READONLY: that the last
// one got no answer in time says less.
func afterEarlier(earlier, err error) error {
	if earlier == nil || redisstore.Answer(err) {
		return err
	}
	return fmt.Errorf("%w; before that: %w", err, earlier)
}

// concede ends an operation that has tried up to last, when it is too late to try again
// before that. Others are spared the same if Redis has said nothing all that time.
func (c *Client) concede(ctx context.Context, key string, last time.Time, err error) error {
	if errors.Is(err, redisstore.ErrSilent) || redisstore.Answer(err) {
		return unavailable(err)
	}
	timer := time.NewTimer(time.Until(last))
	defer timer.Stop()
	select {
	case <-timer.C:
		c.store.GaveUp(key, err)
	case <-ctx.Done():
	case <-c.closing:
	}
	return unavailable(err)
}

// stopped is the answer when the caller or the client ended the acquisition.
func (a *attempt) stopped(ctx context.Context, cause error) error {
	if errors.Is(cause, ErrClosed) && ctx.Err() == nil {
		return ErrClosed
	}
	return a.busy(cause)
}

// refused notes who is in the way.
func (a *attempt) refused(r *queue.Refusal) {
	if !a.giveUp.IsZero() && a.refusal != nil && a.refusal.Holder != r.Holder {
		a.giveUp = minTime(a.now.Add(a.patience), a.lastGiveUp)
	}
	a.refusal, a.seen = r, a.now
	if a.keys != nil {
		a.waitFor(min(max(r.Index, 0), len(a.keys)-1))
	}
	a.report.BlockedBy = r.Holder
	a.contended(r)
}

// waitFor makes one of several keys the one that is in the way. The script looks at it
// first: as long as it is taken, no other one is.
func (a *attempt) waitFor(index int) {
	a.keys[0], a.keys[index] = a.keys[index], a.keys[0]
	a.key = a.keys[0]
}

// queuedBehind notes that callers of this client are in the way.
func (a *attempt) queuedBehind(field string) {
	if a.refusal == nil {
		a.report.BlockedBy = field
	}
	a.contended(nil)
}

// contended tells the observers, the first time.
func (a *attempt) contended(r *queue.Refusal) {
	if a.report.Contended {
		return
	}
	a.report.Contended = true
	if a.notify != nil {
		a.notify(r)
	}
}

// busy is the error of an acquisition that did not get the lock.
func (a *attempt) busy(cause error) error {
	e := &NotAcquiredError{Key: a.key, Waited: time.Since(a.start), Cause: onlyTold(cause)}
	if a.refusal != nil {
		e.BlockedBy = a.refusal.Holder
		e.RetryAfter = max(a.refusal.TTL-time.Since(a.seen), 0)
	}
	return e
}

// contextCause is why a context ended, such that both its error and its cause
// match. That of a hold which was lost is only told: it is another one's.
func contextCause(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return err
	}
	return errors.Join(err, onlyTold(cause))
}

// The pauses between two sends of one operation.
const (
	firstPause   = 5 * time.Millisecond
	longestPause = 250 * time.Millisecond
)

func nextPause(pause time.Duration) time.Duration { return min(2*pause, longestPause) }

// callLimit is the moment up to which a command that is sent now may take, from a Redis
// that answers: it may need a connection, with up to four round trips, and wait for a batch
// in front of it. That Redis does not answer is found out elsewhere, and ends it earlier.
func (c *Client) callLimit(now time.Time) time.Time {
	return now.Add(roundTrips * c.cfg.backendTimeout)
}

const roundTrips = 8

// sleep pauses between two sends.
func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(jittered(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return contextCause(ctx)
	}
}

// sleepOpen is sleep for callers that have nothing yet: it ends when the client is
// being closed.
func (c *Client) sleepOpen(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(jittered(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return contextCause(ctx)
	case <-c.closing:
		return ErrClosed
	}
}
