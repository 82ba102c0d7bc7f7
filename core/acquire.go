package core

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// pollInterval is how long a waiter sleeps at most. Messages are a hint, the poll
// is the guarantee.
const pollInterval = time.Second

// jittered spreads polls over the last quarter of the interval.
func jittered(d time.Duration) time.Duration {
	return d - rand.N(d/4+1) //nolint:gosec // spreading, not secrecy
}

// nextField makes a holder field that was never used: a command of an earlier
// acquisition that lands late cannot be taken for one of this.
func (c *Client) nextField() string {
	var buf [64]byte
	field := append(append(buf[:0], c.id...), ':')
	return string(strconv.AppendInt(field, c.fields.Add(1), 10))
}

// attempt is one acquisition of one key under way.
type attempt struct {
	client *Client
	key    string
	req    *request
	start  time.Time
	until  time.Time // end of the wait time; zero: none
	now    time.Time // last look at the clock
	cut    bool      // the wait time ends before the backend timeout
	report *AcquireResult
	w      waiter
	notify func(*redisstore.Refusal) // told of the first refusal; may be nil

	refusal *redisstore.Refusal // the last one
	seen    time.Time           // when it came
	earlier error               // of the last send that failed and was repeated
	ghosts  []string            // fields of attempts without an answer, left to the resolver
}

// limit is the moment up to which one command may take: the backend timeout,
// but not past the wait time.
func (a *attempt) limit() time.Time {
	limit := a.now.Add(a.client.cfg.backendTimeout)
	if a.cut = !a.until.IsZero() && a.req.wait > 0 && a.until.Before(limit); a.cut {
		return a.until
	}
	return limit
}

// run takes the key, waiting for it if the request says so.
func (a *attempt) run(ctx context.Context) (*owner, error) {
	if err := a.client.gate.check(ctx, a.key); err != nil {
		return nil, err
	}
	if !a.req.forever && a.req.wait == 0 {
		return a.once(ctx)
	}
	for {
		w := &a.w
		*w = waiter{req: a.req, since: a.start}
		if err := a.client.lines.join(a.key, w); err != nil {
			return nil, err
		}
		o, err := a.queued(ctx, w)
		if err != nil {
			if grant := a.client.lines.leave(w); grant != nil {
				a.client.passOn(grant)
			}
			return nil, err
		}
		if !o.deadline.passed(a.client.start, a.now) {
			return o, nil
		}
		a.client.passOn(o) // handed over too late
	}
}

// once is a single attempt beside the queue.
func (a *attempt) once(ctx context.Context) (*owner, error) {
	o, err := a.try(ctx)
	switch {
	case err != nil:
		return nil, err
	case o == nil:
		return nil, a.busy(nil)
	}
	a.client.lines.took(a.key, nil, o, a.now)
	return o, nil
}

// queued is the life of a waiter. It returns with an owner that is registered, or
// with an error and the waiter still in the queue.
func (a *attempt) queued(ctx context.Context, w *waiter) (*owner, error) {
	lines := a.client.lines
	var timer *time.Timer
	for {
		todo := lines.next(w, a.now)
		switch {
		case todo.grant != nil && ctx.Err() == nil:
			return a.accept(w, todo.grant)
		case todo.grant != nil:
			return nil, a.busy(contextCause(ctx)) // leaving the queue passes it on
		case todo.attempt:
			if err := a.client.gate.check(ctx, a.key); err != nil {
				return nil, err
			}
			o, err := a.try(ctx)
			if err != nil {
				return nil, err
			}
			if o != nil {
				lines.took(a.key, w, o, a.now)
				return o, nil
			}
			lines.subscribe(ctx, w)
			continue // a grant may have come meanwhile
		}
		if timer == nil {
			a.queuedBehind(todo.behind)
			timer = time.NewTimer(a.sleep(todo.sleep))
			defer timer.Stop()
		} else {
			timer.Reset(a.sleep(todo.sleep))
		}
		select {
		case <-w.signal:
			a.now = time.Now()
		case <-timer.C:
			if a.now = time.Now(); a.over() {
				return a.lastChance(ctx, w)
			}
			lines.poll(w)
		case <-ctx.Done():
			return nil, a.busy(contextCause(ctx))
		case <-a.client.closing:
			return nil, ErrClosed
		}
	}
}

// accept takes what a hand-off has brought.
func (a *attempt) accept(w *waiter, o *owner) (*owner, error) {
	a.client.lines.accepted(w)
	a.report.HandedOff, a.report.BlockedBy = true, w.behind
	return o, nil
}

// lastChance ends the wait. A grant that came in the last instant is kept.
func (a *attempt) lastChance(ctx context.Context, w *waiter) (*owner, error) {
	if todo := a.client.lines.next(w, a.now); todo.grant != nil && ctx.Err() == nil {
		return a.accept(w, todo.grant)
	}
	if err := a.client.gate.check(ctx, a.key); err != nil {
		return nil, err // nobody knows whether it is taken
	}
	return nil, a.busy(nil)
}

// over says whether the wait time is.
func (a *attempt) over() bool {
	return !a.until.IsZero() && !a.now.Before(a.until)
}

// timeUp says whether the end of the wait time has cut the last command short.
func (a *attempt) timeUp() bool { return a.cut && a.over() }

// pause is d, but not past the wait time.
func (a *attempt) pause(d time.Duration) time.Duration {
	if a.until.IsZero() {
		return d
	}
	return min(d, a.until.Sub(a.now))
}

// sleep is how long to wait for a signal: a poll interval, or until the lease in
// the way ends, the stand-back is over, or the wait time is.
func (a *attempt) sleep(standBack time.Duration) time.Duration {
	d := jittered(pollInterval)
	if standBack > 0 {
		d = min(d, standBack)
	}
	if a.refusal != nil && a.refusal.TTL >= 0 {
		d = min(d, max(a.seen.Add(a.refusal.TTL+time.Millisecond).Sub(a.now), time.Millisecond))
	}
	return a.pause(d)
}

// try sends one attempt and resends it while Redis does not answer. It gives nil
// and no error when the lock is taken.
func (a *attempt) try(ctx context.Context) (*owner, error) {
	limit := a.limit()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		o, again, err := a.send(ctx, limit)
		if !again || err == nil {
			return o, err
		}
		if a.now.Add(pause).After(limit) {
			return nil, a.unavailable(ctx, err)
		}
		if err := a.client.sleepOpen(ctx, pause); err != nil {
			return nil, a.stopped(ctx, err)
		}
		a.now = time.Now()
	}
}

// The pauses between two sends of one operation.
const (
	firstPause   = 5 * time.Millisecond
	longestPause = 100 * time.Millisecond
)

// send sends one attempt with a new field. again says that another one may help.
func (a *attempt) send(ctx context.Context, limit time.Time) (o *owner, again bool, err error) {
	c := a.client
	field := c.nextField()
	call := c.store.Acquire(a.now, a.key, field, a.req.lease)
	a.report.Attempts++
	reply, fate, err := call.Wait(ctx, limit)
	a.now = time.Now()
	if err != nil {
		if fate == redisstore.Unknown {
			c.abandon(a.key, field, call, a.req.lease)
			a.ghosts = append(a.ghosts, field)
		}
		return a.failed(ctx, err, limit)
	}
	refusal, err := redisstore.Granted(reply)
	if err != nil {
		return nil, false, unavailable(err)
	}
	switch {
	case refusal == nil:
		return a.granted(ctx, call, field)
	case slices.Contains(a.ghosts, refusal.Holder):
		return nil, true, errGhost
	default:
		a.refused(refusal)
		return nil, false, nil
	}
}

// granted turns a positive reply into an owner, unless it came too late.
func (a *attempt) granted(ctx context.Context, call *redisstore.Call, field string) (*owner, bool, error) {
	c := a.client
	o := c.newOwner(a.key, field, call.Sent, a.req.lease)
	if o.deadline.passed(c.start, a.now) {
		c.relinquish(a.key, field, a.req.lease)
		return nil, true, errTooLate
	}
	if ctx.Err() != nil {
		c.relinquish(a.key, field, a.req.lease)
		return nil, false, a.stopped(ctx, contextCause(ctx))
	}
	a.report.RoundTrip = a.now.Sub(call.Sent)
	return o, false, nil
}

var (
	errTooLate = errors.New("the reply came after the end of the lease")
	errGhost   = errors.New("an attempt without an answer has the lock and is being cleared up")
)

// failed decides what an attempt without a reply means.
func (a *attempt) failed(ctx context.Context, err error, limit time.Time) (*owner, bool, error) {
	switch {
	case ctx.Err() != nil:
		return nil, false, a.stopped(ctx, contextCause(ctx))
	case a.refusal != nil && a.over():
		return nil, false, a.busy(nil) // Redis answered a moment ago
	case !a.now.Before(limit):
		return nil, false, a.unavailable(ctx, a.afterEarlier(err))
	case redisstore.Transient(err):
		a.earlier = err
		return nil, true, err
	default:
		return nil, false, unavailable(err)
	}
}

// afterEarlier adds what the send before was told, such as READONLY: that the last
// one got no answer in time says less.
func (a *attempt) afterEarlier(err error) error {
	if a.earlier == nil {
		return err
	}
	return fmt.Errorf("%w; before that: %w", err, a.earlier)
}

// unavailable is the answer when Redis has none. The others are spared the same
// wait, if this one was not cut short by the wait time, and Redis really is silent.
func (a *attempt) unavailable(ctx context.Context, err error) error {
	if answered := errors.Is(err, errTooLate) || errors.Is(err, errGhost); !a.cut && !answered {
		a.client.gate.trip(ctx, a.key, err)
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
func (a *attempt) refused(r *redisstore.Refusal) {
	a.refusal, a.seen = r, a.now
	a.report.BlockedBy = r.Holder
	a.contended(r)
}

// queuedBehind notes that callers of this client are in the way.
func (a *attempt) queuedBehind(field string) {
	if a.refusal == nil {
		a.report.BlockedBy = field
	}
	a.contended(nil)
}

// contended tells the observers, the first time.
func (a *attempt) contended(r *redisstore.Refusal) {
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
	e := &NotAcquiredError{Key: a.key, Waited: time.Since(a.start), Cause: cause}
	if a.refusal != nil {
		e.BlockedBy = a.refusal.Holder
		e.RetryAfter = max(a.refusal.TTL-time.Since(a.seen), 0)
	}
	return e
}

// contextCause is why a context ended, such that both its error and its cause
// match.
func contextCause(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return err
	}
	return errors.Join(err, cause)
}

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
