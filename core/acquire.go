package core

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// pollInterval is how long a waiter sleeps at most. Messages are a hint, the poll
// is the guarantee.
const pollInterval = time.Second

// jittered spreads polls over the last quarter of the interval.
func jittered(d time.Duration) time.Duration { return jitter.Of(d) }

// attempt is one acquisition under way, of one key or of several by one script.
type attempt struct {
	client *Client
	key    string   // of several keys the one that is in the way, in whose line it waits
	keys   []string // all of several, key first, a slice of its own; nil for one
	req    *request
	start  time.Time
	until  time.Time // end of the wait time; zero: none
	giveUp time.Time // end of the patience, when other keys are held meanwhile; zero: none
	now    time.Time // last look at the clock
	cut    bool      // the wait time ends before the time that a command has
	report *AcquireResult
	w      waiter
	timer  *time.Timer               // of a waiter that has slept
	spins  int                       // how often it has slept without messages
	notify func(*redisstore.Refusal) // told of the first refusal; may be nil

	refusal *redisstore.Refusal // the last one
	seen    time.Time           // when it came
	earlier error               // of a send that failed and was repeated
	ghosts  []string            // fields of attempts without an answer, left to the resolver
	haunted time.Time           // when the last of them was left

	admitted   bool                  // as of waiter
	patience   time.Duration         // begins anew when another holder is in the way than before
	lastGiveUp time.Time             // but ends then
	beside     []*owner              // of several keys what the script brought beside key
	passedOver func(passed int) bool // of several keys: whether to wait in another way
}

// limit is the moment up to which one command may take, from a Redis that answers:
// longer than any does, but not past the wait time.
func (a *attempt) limit() time.Time {
	limit := a.client.callLimit(a.now)
	if a.cut = !a.until.IsZero() && a.req.wait > 0 && a.until.Before(limit); a.cut {
		return a.until
	}
	return limit
}

// run takes the key, waiting for it if the request says so.
func (a *attempt) run(ctx context.Context) (*owner, error) {
	if err := a.client.failFast(ctx, a.key); err != nil {
		return nil, err
	}
	if !a.req.forever && a.req.wait == 0 {
		return a.once(ctx)
	}
	for {
		w := &a.w
		*w = waiter{req: a.req, since: a.start, until: a.end(ctx), many: a.keys != nil, admitted: a.admitted}
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
		if !o.lease.Expired(a.now) {
			return o, nil
		}
		a.client.passOn(o) // handed over too late
	}
}

// once is a single attempt beside the queue.
func (a *attempt) once(ctx context.Context) (*owner, error) {
	g, err := a.try(ctx)
	switch {
	case err != nil:
		return nil, err
	case g.refused():
		return nil, a.busy(nil)
	}
	return a.own(nil, g), nil
}

// own registers what a grant has brought to w, or to a caller that does not wait.
func (a *attempt) own(w *waiter, g grant) *owner {
	o := a.client.newOwner(a.claim(g.field), g.token, g.sent, a.req.lease)
	a.client.lines.took(a.key, w, o, a.now)
	for i, key := range a.keys {
		if i > 0 {
			other := a.client.newOwner(redisstore.Claim{Kind: a.req.kind, Key: key, Field: g.field}, 0, g.sent, a.req.lease)
			a.client.lines.took(key, nil, other, a.now)
			a.beside = append(a.beside, other)
		}
	}
	return o
}

// queued is the life of a waiter. It returns with an owner that is registered, or
// with an error and the waiter still in the queue.
func (a *attempt) queued(ctx context.Context, w *waiter) (*owner, error) {
	defer a.stopTimer()
	for {
		todo := a.client.lines.next(w, a.now)
		o, err := a.act(ctx, w, todo)
		if o != nil || err != nil {
			return o, err
		}
		if todo.attempt {
			continue // a grant may have come meanwhile
		}
		over, err := a.rest(ctx, w, todo)
		switch {
		case err != nil:
			return nil, err
		case over:
			return a.lastChance(ctx, w)
		}
	}
}

// act takes what was handed over, or tries.
func (a *attempt) act(ctx context.Context, w *waiter, todo step) (*owner, error) {
	switch {
	case todo.grant != nil && ctx.Err() != nil:
		return nil, a.busy(contextCause(ctx)) // leaving the queue passes it on
	case todo.grant != nil:
		return a.accept(w, todo.grant)
	case !todo.attempt:
		return nil, nil //nolint:nilnil // there is nothing to do but wait
	}
	if err := a.client.failFast(ctx, a.key); err != nil {
		return nil, err
	}
	g, err := a.try(ctx)
	switch {
	case err != nil:
		return nil, err
	case g.refused():
		return nil, a.stay(ctx, w)
	}
	return a.own(w, g), nil
}

// stay goes on waiting after a refusal, in the line of the key that is in the way.
func (a *attempt) stay(ctx context.Context, w *waiter) error {
	if w.line.key != a.key {
		a.client.lines.move(w, a.key)
	}
	passed := a.client.lines.refused(w, a.refusal, a.now)
	if a.passedOver != nil && a.passedOver(passed) {
		return errPassedOver
	}
	if !a.req.kind.Spins() {
		a.client.lines.subscribe(ctx, w)
	}
	return nil
}

// rest waits until there may be something to do. over says that the wait time is.
func (a *attempt) rest(ctx context.Context, w *waiter, todo step) (over bool, err error) {
	if a.timer == nil {
		a.queuedBehind(todo.behind)
		a.timer = time.NewTimer(a.sleep(todo))
	} else {
		a.timer.Reset(a.sleep(todo))
	}
	select {
	case <-w.signal:
		a.now = time.Now()
	case <-a.timer.C:
		if a.now = time.Now(); a.over() || a.gaveUp() {
			return true, nil
		}
		a.client.lines.poll(w)
	case <-ctx.Done():
		return false, a.busy(contextCause(ctx))
	case <-a.client.closing:
		return false, ErrClosed
	}
	return false, nil
}

func (a *attempt) stopTimer() {
	if a.timer != nil {
		a.timer.Stop()
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
	if !a.over() {
		return nil, errGaveUp
	}
	if err := a.client.failFast(ctx, a.key); err != nil {
		return nil, err // nobody knows whether it is taken
	}
	if !a.knownTaken() && a.client.lines.silent(w) {
		return nil, unavailable(errSilent)
	}
	return nil, a.busy(nil)
}

// over says whether the wait time is.
func (a *attempt) over() bool {
	return !a.until.IsZero() && !a.now.Before(a.until)
}

// gaveUp says whether the patience is over.
func (a *attempt) gaveUp() bool {
	return !a.giveUp.IsZero() && !a.now.Before(a.giveUp)
}

// timeUp says whether the end of the wait time has cut the last command short.
func (a *attempt) timeUp() bool { return a.cut && a.over() }

// end is when the wait ends, by the wait time or the deadline of ctx; zero: never.
func (a *attempt) end(ctx context.Context) time.Time {
	deadline, ok := ctx.Deadline()
	if ok && (a.until.IsZero() || deadline.Before(a.until)) {
		return deadline
	}
	return a.until
}

// grant says that Redis has given the lock to a field.
type grant struct {
	field string
	token int64     // fencing token; 0 where the kind has none
	sent  time.Time // when the command was sent
}

// refused says that there is no grant: the lock is taken.
func (g grant) refused() bool { return g.field == "" }

// try sends one attempt and resends it while that may help.
func (a *attempt) try(ctx context.Context) (grant, error) {
	start, there := a.now, false
	for pause := firstPause; ; pause = nextPause(pause) {
		if there {
			start = a.now
		}
		g, again, err := a.send(ctx, a.limit())
		if !again || err == nil {
			return g, err
		}
		there = redisstore.Passes(err)
		if last, ends := a.lastTry(start, err); ends && a.now.Add(pause).After(last) {
			return grant{}, a.client.concede(ctx, a.key, last, afterEarlier(a.earlier, err))
		}
		if err := a.client.sleepOpen(ctx, pause); err != nil {
			return grant{}, a.stopped(ctx, err)
		}
		a.now = time.Now()
	}
}

// lastTry is until when an attempt that began at start is made again after an error: one
// that passes is waited out within the wait time, others have the backend timeout, in
// which an orphan of an earlier attempt is cleared up.
func (a *attempt) lastTry(start time.Time, err error) (last time.Time, ends bool) {
	silence := start.Add(a.client.cfg.backendTimeout)
	if errors.Is(err, errGhost) {
		silence = maxTime(silence, a.haunted.Add(clearingUp*a.client.cfg.backendTimeout))
	}
	return a.span().last(err, silence)
}

// clearingUp is how many round trips it takes until an attempt without an answer is
// cleared up and another one has the lock.
const clearingUp = 3

// send sends one attempt with a new field. again says that another one may help.
func (a *attempt) send(ctx context.Context, limit time.Time) (g grant, again bool, err error) {
	field := a.client.nextField()
	call := a.command(field)
	a.report.Attempts++
	answer, fate, err := call.Wait(ctx, limit)
	a.now = time.Now()
	if err != nil {
		if fate == redisstore.Unknown {
			late := call
			a.client.abandon(a.req.kind, a.wanted(), field, &late, a.req.lease)
			a.ghosts, a.haunted = append(a.ghosts, field), a.now
		}
		again, err = a.failed(ctx, err, limit)
		return grant{}, again, err
	}
	switch refusal := answer.Refusal; {
	case refusal == nil:
		return a.granted(ctx, grant{field, answer.Token, call.Sent})
	case slices.Contains(a.ghosts, refusal.Holder):
		return grant{}, true, errGhost
	default:
		a.refused(refusal)
		return grant{}, false, nil
	}
}

// command is the script that takes what is wanted.
func (a *attempt) command(field string) redisstore.Call[redisstore.Grant] {
	if a.keys != nil {
		return a.client.store.AcquireAll(a.now, a.req.kind, a.keys, field, a.req.lease)
	}
	return a.client.store.Acquire(a.now, a.claim(field), a.req.lease)
}

func (a *attempt) claim(field string) redisstore.Claim {
	return redisstore.Claim{Kind: a.req.kind, Key: a.key, Field: field}
}

// wanted are all the keys, in a slice that may be kept.
func (a *attempt) wanted() []string {
	if a.keys != nil {
		return slices.Clone(a.keys)
	}
	return []string{a.key}
}

// granted judges a positive reply, which may have come too late.
func (a *attempt) granted(ctx context.Context, g grant) (_ grant, again bool, err error) {
	if lease.Expired(g.sent, a.req.lease, a.now) {
		a.client.relinquish(a.req.kind, a.wanted(), g.field, a.req.lease)
		return grant{}, true, errTooLate
	}
	if ctx.Err() != nil {
		a.client.relinquish(a.req.kind, a.wanted(), g.field, a.req.lease)
		return grant{}, false, a.stopped(ctx, contextCause(ctx))
	}
	a.report.RoundTrip = a.now.Sub(g.sent)
	return g, false, nil
}

var (
	errTooLate = errors.New("the reply came after the end of the lease")
	errSilent  = errors.New("no answer from redis within the wait time")
	errGaveUp  = errors.New("the patience is over")
	errGhost   = errors.New("an attempt without an answer has the lock and is being cleared up")
)
