package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// lastRefusal is that which an attempt got last, if any.
type lastRefusal struct {
	*queue.Refusal // nil: none

	at time.Time // when it came
}

// left is how long the lease in the way lasts.
func (r *lastRefusal) left(now time.Time) time.Duration { return r.at.Add(r.TTL).Sub(now) }

// knownTaken reports whether the lock is known to have been taken while this attempt, or
// another waiter of this client beside it, waited.
func (a *attempt) knownTaken() bool {
	if a.refusal.Refusal != nil {
		return true
	}
	r, at, taken := a.client.queues.TakenSince(a.wait.waiter)
	if r != nil {
		a.refusal = lastRefusal{r, at}
	}
	return taken
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
	if before := a.refusal.Refusal; before != nil && before.Holder != r.Holder {
		a.wait.patience.renew(a.now)
	}
	a.refusal = lastRefusal{r, a.now}
	if keys := a.several.keys; keys != nil {
		a.waitFor(min(max(r.Index, 0), len(keys)-1))
	}
	a.report.BlockedBy = r.Holder
	a.contended(r)
}

// waitFor makes one of several keys the one that is in the way. The script looks at it
// first: as long as it is taken, no other one is.
func (a *attempt) waitFor(index int) {
	keys := a.several.keys
	keys[0], keys[index] = keys[index], keys[0]
	a.key = keys[0]
}

// queuedBehind notes that callers of this client are in the way.
func (a *attempt) queuedBehind(field string) {
	if a.refusal.Refusal == nil {
		a.report.BlockedBy = field
	}
	a.contended(nil)
}

// contended notifies the observers, the first time.
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
	e := &NotAcquiredError{Key: a.key, Waited: time.Since(a.start), Cause: onlyMentioned(cause)}
	if a.refusal.Refusal != nil {
		e.BlockedBy = a.refusal.Holder
		e.RetryAfter = max(a.refusal.left(time.Now()), 0)
	}
	a.client.notesOwnHold(e, a.key)
	if a.withoutPermits() {
		e.Cause = errNoPermits
		if cause != nil {
			e.Cause = fmt.Errorf("%w: %w", errNoPermits, onlyMentioned(cause))
		}
	}
	return e
}

// notesOwnHold notes in the error of a refusal that a hold of this client has the lock. The client id in
// BlockedBy does not show that, because Leave and abandoned acquisitions leave fields of this client, too.
func (c *Client) notesOwnHold(e *NotAcquiredError, key string) {
	known := e.BlockedBy == "" || strings.HasPrefix(e.BlockedBy, c.id+":")
	for _, h := range c.queues.Holders(key) {
		if o := ownerOf(h); o.Lasts(time.Now()) && (known || o.lease.Kind.Shared()) {
			e.OwnHold, e.BlockedBy = true, o.Field()
			return
		}
	}
}

// withoutPermits reports whether Redis has refused a permit although none is out.
func (a *attempt) withoutPermits() bool {
	return a.req.demand == "0" && a.refusal.Refusal != nil && a.refusal.Holder == ""
}

var errNoPermits = errors.New("it has no permits: set their number by TrySetPermits, SetPermits or from Java, or give Semaphore one")

// contextCause is why a context ended, such that both its error and its cause
// match. That of a hold which was lost is only mentioned: it is another one's.
func contextCause(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, insideError{onlyMentioned(cause)})
}
