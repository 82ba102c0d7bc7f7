package core

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// reenter adds a hold to an ownership that the caller's context carries. It does
// not queue: who holds the lock is first in line. The hold counts from here on; the
// caller makes it a live one, or gives it back by undoEntry.
func (c *Client) reenter(ctx context.Context, o *owner, req *request) error {
	if err := o.begin(ctx); err != nil {
		return &NotAcquiredError{Key: o.key, Cause: contextCause(ctx)}
	}
	defer o.end()
	count, err := o.entry()
	if err != nil {
		return &NotAcquiredError{Key: o.key, Cause: err}
	}
	until := time.Now().Add(c.cfg.backendTimeout)
	if !req.forever && req.wait > 0 {
		until = minTime(until, time.Now().Add(req.wait))
	}
	sent, err := o.setCount(ctx, count, req.lease, until)
	if err != nil {
		c.spawn(func(ctx context.Context) { c.undoEntry(ctx, o, false) })
		return o.entryError(ctx, err)
	}
	o.acknowledge(sent, req.lease)
	c.watchdog.add(o, req.watchdog, time.Now())
	return nil
}

// entry announces one more hold and gives the new count.
func (o *owner) entry() (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase != held {
		return 0, o.endCause()
	}
	o.entering++
	return len(o.scopes) + o.entering, nil
}

// entryError says why a re-entry failed.
func (o *owner) entryError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, ErrLost):
		return &NotAcquiredError{Key: o.key, Cause: err}
	case ctx.Err() != nil:
		return &NotAcquiredError{Key: o.key, Cause: contextCause(ctx)}
	default:
		return err
	}
}

// undoEntry takes back an entry that did not become a hold, and writes the count
// that is right.
func (c *Client) undoEntry(ctx context.Context, o *owner, renewed bool) {
	ctx = context.WithoutCancel(ctx)
	if err := o.begin(ctx); err != nil {
		return
	}
	defer o.end()
	o.mu.Lock()
	o.entering--
	if renewed {
		o.watchdogs--
	}
	count, live := len(o.scopes)+o.entering, o.phase == held
	o.mu.Unlock()
	now := time.Now()
	switch {
	case live && count > 0:
		_, _ = o.setCount(ctx, count, 0, now.Add(c.cfg.backendTimeout)) //nolint:errcheck // the next entry or release writes it again
	case live:
		_, _ = o.freeLast(ctx, now) //nolint:errcheck // the outer hold was released meanwhile; it leaves the rest to the resolver
	}
}

func (o *owner) holds() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.scopes) + o.entering
}

func (o *owner) longestLease() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lease
}

// setCount writes the hold count, resending it while there is no answer. It never
// creates the lock; a lock that is gone is a loss.
func (o *owner) setCount(ctx context.Context, count int, lease time.Duration, until time.Time) (time.Time, error) {
	reply, sent, err := o.insist(ctx, until, func() redisstore.Call {
		return o.client.store.SetHold(time.Now(), o.key, o.field, count, lease)
	})
	if err != nil {
		return sent, err
	}
	return sent, o.mine(reply)
}

// mine reads the reply of a script that needs the holder's field. The answer that
// it is not there is the end of the ownership.
func (o *owner) mine(reply any) error {
	mine, err := redisstore.Mine(reply)
	if err != nil {
		return unavailable(err)
	}
	if !mine {
		o.lose(errNotMine)
		return errNotMine
	}
	return nil
}

// insist sends a harmless script again and again until it is answered, ctx ends,
// or until is over. sent is when the answered call was sent.
func (o *owner) insist(ctx context.Context, until time.Time, send func() redisstore.Call) (reply any, sent time.Time, err error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		call := send()
		reply, fate, err := call.Wait(ctx, until)
		if err == nil {
			return reply, call.Sent, nil
		}
		if fate == redisstore.Unknown {
			o.unanswered()
		}
		switch {
		case ctx.Err() != nil:
			return nil, call.Sent, unavailable(contextCause(ctx))
		case !redisstore.Transient(err), time.Now().Add(pause).After(until):
			return nil, call.Sent, unavailable(err)
		}
		if err := o.client.sleep(ctx, pause); err != nil {
			return nil, call.Sent, unavailable(err)
		}
	}
}

// unanswered remembers that a command of this holder may still land.
func (o *owner) unanswered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lateUntil = time.Now().Add(settleTime)
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
