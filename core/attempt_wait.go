package core

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wakeup"
)

// pollInterval is how long a waiter sleeps at most. Messages are a hint, the poll
// is the guarantee.
const pollInterval = time.Second

// wait is the part of an attempt that stands in a queue.
type wait struct {
	of       *attempt
	waiter   *queue.Waiter // the waiter in the queue, or the last one
	first    queue.Waiter  // room for the usual single one
	timer    *time.Timer   // nil until the waiter sleeps
	spins    int           // how often it has slept without messages
	admitted bool          // the limits of waiters have let it in before
	heard    string        // the field whose messages it subscribes to; "": the messages of the lock
	sure     bool          // the messages of its place arrive, and it has planned one look since then
	patience patience
}

// run waits in the queue until it has the lock, or is over.
func (w *wait) run(ctx context.Context) (*ownership, error) {
	a := w.of
	for ; ; w.waiter = new(queue.Waiter) { // a hand-off on its way may know the last one
		w.waiter.Wish = w.wish(ctx)
		if err := a.client.queues.Join(a.key, w.waiter, a.now); err != nil {
			return nil, notQueued(err, a.key, a.req.kind)
		}
		w.admitted = true
		o, err := w.queued(ctx)
		if err != nil {
			if grant := a.client.queues.Leave(w.waiter, time.Now()); grant != nil {
				a.client.passOn(ownerOf(grant))
			}
			if errors.Is(err, errUnprepared) {
				w.admitted, err = false, a.prepare(ctx)
			}
			if err != nil {
				return nil, err
			}
			continue
		}
		if o.lease.Alive(a.now) {
			return o, nil
		}
		a.client.passOn(o) // given too late, or lost on the way
	}
}

func (w *wait) wish(ctx context.Context) queue.Wish {
	a := w.of
	until := a.until
	if deadline, ok := ctx.Deadline(); ok && (until.IsZero() || deadline.Before(until)) {
		until = deadline
	}
	return queue.Wish{
		Kind: a.req.kind.Family, Shared: a.req.kind.Shared(), Lane: a.inLane(),
		Together: a.req.kind.Shares == redisstore.Unlimited, Many: a.req.kind.Shares == redisstore.Limited,
		Announces: a.req.kind.Waits == redisstore.Announced,
		Since:     a.start, Until: until, Lease: a.req.lease, Renewed: a.req.watchdog, Token: a.req.token,
		MaxWaiters: a.req.maxWaiters, Several: a.several.keys != nil, Admitted: w.admitted,
	}
}

// queued is the life of a waiter. It returns with an ownership that is registered, or
// with an error and the waiter still in the queue.
func (w *wait) queued(ctx context.Context) (*ownership, error) {
	defer w.stopTimer()
	for {
		todo := w.of.client.queues.Next(w.waiter, w.of.now)
		o, err := w.act(ctx, todo)
		if o != nil || err != nil {
			return o, err
		}
		if w.of.req.beforeWait != nil && w.patience.end.IsZero() { // with other keys in hand it waits for a moment only
			w.of.queuedBehind(todo.Behind)
			return nil, errUnprepared
		}
		if todo.Deaf {
			w.listen(ctx)
		}
		if todo.Attempt {
			continue // a grant may have come meanwhile
		}
		over, err := w.rest(ctx, todo)
		switch {
		case err != nil:
			return nil, err
		case over:
			return w.lastLook(ctx)
		}
	}
}

// act takes what was given, or tries.
func (w *wait) act(ctx context.Context, todo queue.Step) (*ownership, error) {
	a := w.of
	switch {
	case todo.Grant != nil && ctx.Err() != nil:
		return nil, a.busy(contextCause(ctx)) // leaving the queue passes it on
	case todo.Grant != nil:
		return w.accept(todo.Grant, todo.Behind), nil
	case todo.Err != nil:
		return nil, notQueued(todo.Err, a.key, a.req.kind)
	case !todo.Attempt:
		return nil, nil //nolint:nilnil // there is nothing to do but wait
	}
	if err := a.client.failFast(ctx, a.key); err != nil {
		return nil, err
	}
	g, err := a.sends.try(ctx)
	switch {
	case err != nil:
		return nil, err
	case g.refused():
		return nil, w.stay(ctx)
	}
	return a.own(w.waiter, g), nil
}

// stay goes on waiting after a refusal, in the queue of the key that is in the way.
func (w *wait) stay(ctx context.Context) error {
	a, queues := w.of, w.of.client.queues
	if w.waiter.Key() != a.key {
		if err := queues.Move(w.waiter, a.key, a.now); err != nil {
			return notQueued(err, a.key, a.req.kind)
		}
	}
	passed := queues.Refused(w.waiter, *a.refusal.Refusal, rivalOf(a.refusal.Holder), a.now)
	if passedOver := a.several.passedOver; passedOver != nil && passedOver(passed) {
		return errPassedOver
	}
	w.listen(ctx)
	return nil
}

// listen subscribes to the messages of the lock, if that has some and nobody here does yet.
func (w *wait) listen(ctx context.Context) {
	a, queues := w.of, w.of.client.queues
	place := &a.sends.place
	if w.heard != place.taken {
		w.heard = place.taken
		queues.Unsubscribe(w.waiter)
	}
	if a.req.kind.Waits != redisstore.Spinning && queues.NeedsSubscription(w.waiter) {
		topic := wakeup.Topic{Key: a.key, Lane: place.lane}
		queues.Subscribe(w.waiter, a.client.wakeups.Subscribe(ctx, topic, a.req.kind.WaiterChannel(a.key, place.taken)))
	}
}

// rest waits until there may be something to do. over says that the wait time is, or the
// patience.
func (w *wait) rest(ctx context.Context, todo queue.Step) (over bool, err error) {
	a := w.of
	if w.timer == nil {
		a.queuedBehind(todo.Behind)
		w.timer = time.NewTimer(w.sleep(todo))
	} else {
		w.timer.Reset(w.sleep(todo))
	}
	select {
	case <-w.waiter.Signal():
		a.now = time.Now()
	case <-w.timer.C:
		if a.now = time.Now(); a.over() || w.patience.over(a.now) {
			return true, nil
		}
		a.client.queues.Poll(w.waiter)
	case <-ctx.Done():
		return false, a.busy(contextCause(ctx))
	case <-a.client.closing:
		return false, ErrClosed
	}
	return false, nil
}

func (w *wait) stopTimer() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// accept takes what a hand-off or a pass has brought.
func (w *wait) accept(grant queue.Holder, from string) *ownership {
	w.of.client.queues.Accept(w.waiter)
	w.of.report.HandedOff, w.of.report.BlockedBy = true, from
	return ownerOf(grant)
}

// lastLook ends the wait. A grant that came in the last instant is kept.
func (w *wait) lastLook(ctx context.Context) (*ownership, error) {
	a := w.of
	if grant, from := a.client.queues.Granted(w.waiter); grant != nil && ctx.Err() == nil {
		return w.accept(grant, from), nil
	}
	if !a.over() {
		return nil, errGaveUp
	}
	if err := a.client.failFast(ctx, a.key); err != nil {
		return nil, err // nobody knows whether it is taken
	}
	if !a.knownTaken() && a.client.queues.Unanswered(w.waiter) {
		return nil, unavailable(errSilent)
	}
	return nil, a.busy(nil)
}

// sleep is how long to wait for a signal: a poll interval, or until the head's
// stand-back is over, or the lease in its way, or the wait time.
func (w *wait) sleep(todo queue.Step) time.Duration {
	a := w.of
	hears := !todo.Silent
	if w.others() > 0 {
		todo.Silent, todo.Sleep = false, 0 // there is no hurry
	}
	d := jittered(w.interval(todo))
	if a.sends.place.lane != "" {
		d = min(d, w.untilSure(hears))
	}
	if todo.Sleep > 0 {
		d = min(d, todo.Sleep)
	}
	if r := &a.refusal; todo.Head && r.Refusal != nil && r.TTL >= 0 {
		d = min(d, max(r.left(a.now)+time.Millisecond, time.Millisecond))
	}
	for _, end := range [...]time.Time{a.until, w.patience.end} {
		if !end.IsZero() {
			d = min(d, end.Sub(a.now))
		}
	}
	return d
}

// others is how many are before it in a queue in Redis, as far as it knows.
func (w *wait) others() int {
	if a := w.of; a.sends.place.lane != "" && a.refusal.Refusal != nil {
		return a.refusal.Index
	}
	return 0
}

// untilSure is how long one with a place in Redis sleeps at most: when its messages begin to
// arrive, it may have missed the one that it is its turn. Mostly that one is still to come where
// many are before it, and saves it the look.
func (w *wait) untilSure(hears bool) time.Duration {
	first := hears && !w.sure
	w.sure = hears
	switch {
	case !first:
		return farPoll
	case w.others() < fewOthers:
		return 0
	default:
		return sureAfter
	}
}

// interval is how long a waiter sleeps when nothing wakes it. Where a lock has no messages it
// spins: it attempts again soon, and then less and less often.
func (w *wait) interval(todo queue.Step) time.Duration {
	switch {
	case w.of.req.kind.Waits == redisstore.Spinning && todo.Head:
		w.spins++
		return min(spinPause<<min(w.spins-1, 10), queue.SilentPoll)
	case todo.Silent:
		return queue.SilentPoll
	case w.of.req.kind.Waits == redisstore.Announced:
		return announceInterval
	case w.others() >= manyOthers:
		return farPoll
	case w.of.sends.place.lane != "":
		return placePoll
	default:
		return pollInterval
	}
}

// announceInterval is how long one sleeps at most whose attempts announce that it waits: what
// they leave in Redis is there up to the next one, and not for long after the last one.
const (
	announceInterval = pollInterval / 2
	// placePoll is that of one who has a place in a queue in Redis. Others take one who has not looked
	// for half as long again, though the lock is free, for dead: see fair_acquire.lua.
	placePoll = 500 * time.Millisecond
	// farPoll is that of one behind manyOthers, of whom there may be thousands.
	farPoll    = 1250 * time.Millisecond
	manyOthers = 300
	// sureAfter is when one looks whose messages have begun to arrive, behind at least fewOthers.
	sureAfter = 100 * time.Millisecond
	fewOthers = 8
)

// spinPause is the first pause of one who spins; the next ones are twice as long each, up to
// [queue.SilentPoll], so that also beside a busy process there is a turn now and then.
const spinPause = time.Millisecond

// patience is how long one waits that holds other keys meanwhile.
type patience struct {
	one  time.Duration // for one holder in the way; begins anew with another one
	end  time.Time     // zero: it has no end
	last time.Time     // but it ends then, whoever is in the way
}

// over reports whether the patience is.
func (p *patience) over(now time.Time) bool { return !p.end.IsZero() && !now.Before(p.end) }

// renew begins it anew.
func (p *patience) renew(now time.Time) {
	if !p.end.IsZero() {
		p.end = minTime(now.Add(p.one), p.last)
	}
}

var (
	errSilent     = errors.New("no answer from redis within the wait time")
	errGaveUp     = errors.New("the patience is over")
	errUnprepared = errors.New("something is to be done before the wait")
)
