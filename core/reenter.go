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
func (c *Client) reenter(ctx context.Context, o *owner, req *request, report *AcquireResult) error {
	a := c.newAttempt(ctx, o.key, req, report, time.Now())
	if err := c.gate.check(ctx, o.key); err != nil {
		return err
	}
	until := a.limit()
	if err := o.beginBy(ctx, until); err != nil {
		return a.notEntered(ctx, err)
	}
	defer o.end()
	if err := c.gate.check(ctx, o.key); err != nil {
		return err // who had the turn before has found out
	}
	count, err := o.entry()
	if err != nil {
		return a.busy(err)
	}
	reply, sent, err := o.sendCount(ctx, count, req.lease, until)
	if a.heard = err == nil; a.heard {
		err = o.mine(reply)
	}
	if err != nil {
		c.undoEntry(o, false)
		return a.notEntered(ctx, err)
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

// notEntered is the error of a re-entry that failed. Nobody else has the lock, so it
// is never taken: when the wait time cuts the re-entry short, Redis was too slow.
func (a *attempt) notEntered(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, ErrLost):
		return a.busy(err)
	case ctx.Err() != nil:
		return a.busy(contextCause(ctx))
	case errors.Is(err, errNoTurn), !redisstore.Transient(err):
		return unavailable(err)
	default:
		return a.unavailable(ctx, err)
	}
}

// undoEntry takes back an entry that did not become a hold. That is done at once;
// the count in Redis, which may be too high now, is put right in the background, by
// one writer per owner.
func (c *Client) undoEntry(o *owner, renewed bool) {
	o.mu.Lock()
	o.entering--
	if renewed {
		o.watchdogs--
	}
	first := !o.amending
	o.amending = true
	o.mu.Unlock()
	if first {
		c.spawn(o.amend)
	}
}

// amend writes the hold count until Redis has confirmed the one that is right, or the
// ownership is over.
func (o *owner) amend(ctx context.Context) {
	for pause := firstPause; !o.amended(ctx); pause = min(2*pause, longestPause) {
		if o.client.sleep(ctx, pause) != nil {
			return
		}
	}
}

// amended tries once, and says whether there is nothing left to do. The others come
// first: while one of them waits for the turn, nothing is written, and one that comes
// later ends the wait for the answer.
func (o *owner) amended(ctx context.Context) bool {
	if o.begin(ctx) != nil {
		return true // the client was closed
	}
	defer o.end()
	silent := o.client.gate.check(ctx, o.key) != nil
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	o.mu.Lock()
	count, live := len(o.scopes)+o.entering, o.phase == held
	send := live && count > 0 && !silent && len(o.turns) == 0
	if send {
		o.yield = cancel
	}
	o.mu.Unlock()
	switch {
	case send:
		return o.writeCount(bounded, count)
	case live && count == 0:
		_, _ = o.freeLast(context.WithoutCancel(ctx), time.Now()) //nolint:errcheck // the outer hold was released meanwhile; it leaves the rest to the resolver
		return true
	default:
		return !live
	}
}

// writeCount sends the count once. It raises no lease, so it does no harm that it may
// land late.
func (o *owner) writeCount(ctx context.Context, count int) (done bool) {
	now := time.Now()
	call := o.client.store.SetHold(now, o.key, o.field, count, 0)
	reply, _, err := call.Wait(ctx, now.Add(o.client.cfg.backendTimeout))
	if err == nil {
		_ = o.mine(reply) //nolint:errcheck // a loss is told to the holders
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.yield = nil
	done = (err == nil || !redisstore.Transient(err)) && count == len(o.scopes)+o.entering
	o.amending = !done
	return done
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
	reply, sent, err := o.sendCount(ctx, count, lease, until)
	if err != nil {
		return sent, err
	}
	return sent, o.mine(reply)
}

func (o *owner) sendCount(ctx context.Context, count int, lease time.Duration, until time.Time) (reply any, sent time.Time, err error) {
	return o.insist(ctx, until, func() redisstore.Call {
		return o.client.store.SetHold(time.Now(), o.key, o.field, count, lease)
	})
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
