package core

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// attempt is one acquisition under way, of one key or of several by one script. One that
// does not wait sends once. Else this is its life, of which the queue knows the left side
// ([queue.Waiter]), wait the steps between, and sends what becomes of a command:
//
//	begun ─ joins ─▶ queued ─ is the head, and due ─▶ sent ─ granted ─▶ over: it has the lock
//	                 │ ▲ ▲ └──── given the lock ────────│──────────────▶ over, as above
//	                 │ │ └───────────── refused ────────┤
//	                 │ └─ given the lock too late       └─ an error ─▶ over
//	                 ├─ something to do before the wait ─▶ leaves, does it, and joins again
//	                 ├─ the wait time ends ─▶ a last look for a grant ─▶ over: busy, or has it
//	                 ├─ the patience ends ──▶ a last look for a grant ─▶ gave up, or has it
//	                 └─ the context or the client ends ─▶ over
type attempt struct {
	client  *Client
	key     string // of several keys the one that is in the way, in whose queue it waits
	several several
	req     *request
	report  *AcquireResult
	notify  func(*queue.Refusal) // called with the first refusal; may be nil
	start   time.Time
	until   time.Time // end of the wait time; zero: none
	answers time.Time // of one that does not wait: see span
	now     time.Time // last look at the clock
	refusal lastRefusal
	sends   sends
	wait    wait
}

// several is what an attempt needs that wants several keys by one script.
type several struct {
	keys       []string              // all, the key of the attempt first, a slice of its own; nil for one
	beside     []*ownership          // what the script brought beside that one
	passedOver func(passed int) bool // whether to wait in another way
}

// newAttempt prepares the acquisition of one key. now is the time: of a caller that has
// just come that of its report.
func (c *Client) newAttempt(ctx context.Context, key string, req *request, report *AcquireResult, now time.Time) attempt {
	a := attempt{client: c, key: key, req: req, start: report.Start, now: now, report: report}
	if !req.forever {
		a.until = report.Start.Add(req.wait)
	}
	if !req.mayWait() {
		a.answers = c.callLimit(now)
	}
	if req.member {
		a.wait.admitted = req.admitted
		a.several.passedOver = func(int) bool { return time.Since(now) >= pollInterval/2 }
	} else if c.cfg.observers.contention.Observed() {
		a.notify = func(r *queue.Refusal) {
			notice := Contention{Acquisition: report.Acquisition, BlockedBy: report.BlockedBy}
			if r != nil {
				notice.TTL = r.TTL
			}
			c.cfg.observers.contention.Notify(ctx, notice)
		}
	}
	return a
}

// run takes the key, waiting for it if the request says so.
func (a *attempt) run(ctx context.Context) (*ownership, error) {
	a.wait.of, a.wait.waiter, a.sends.of = a, &a.wait.first, a
	if a.req.kind.Waits == redisstore.InRedis {
		defer a.sends.leave()
	}
	if err := a.client.failFast(ctx, a.key); err != nil {
		return nil, err
	}
	switch {
	case !a.req.mayWait(), a.req.under != nil: // who has it already is behind nobody
		return a.once(ctx)
	case a.req.kind.Shares == redisstore.Limited && !a.client.queues.Waited(a.key): // several may get it at the same time
		if o, err := a.once(ctx); o != nil || a.refusal.Refusal == nil || a.over() {
			return o, err
		}
	}
	return a.wait.run(ctx)
}

// once is a single attempt beside the queue.
func (a *attempt) once(ctx context.Context) (*ownership, error) {
	if err := a.client.queues.Check(a.key, a.req.kind.Family); err != nil {
		return nil, notQueued(err, a.key, a.req.kind)
	}
	g, err := a.sends.try(ctx)
	switch {
	case err != nil:
		return nil, err
	case g.refused() && a.req.under != nil:
		return nil, a.notEntered(ctx, a.req.under.overtaken())
	case g.refused():
		return nil, a.busy(nil)
	}
	return a.own(nil, g), nil
}

// prepare calls the function of [BeforeWait], once.
func (a *attempt) prepare(ctx context.Context) error {
	prepare, until := a.req.beforeWait, a.until
	if prepare == nil {
		return nil
	}
	a.req.beforeWait = nil
	if until.IsZero() {
		until = a.now.Add(MaxDuration)
	}
	inTime, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	defer context.AfterFunc(a.client.service, cancel)()
	err := prepare(inTime)
	switch a.now = time.Now(); {
	case ctx.Err() != nil:
		return a.busy(contextCause(ctx))
	case err != nil:
		return err
	case a.client.isClosing():
		return ErrClosed
	case a.over():
		return a.busy(nil)
	default:
		return nil
	}
}

// own registers what a grant has brought to w, or to a caller that does not wait.
func (a *attempt) own(w *queue.Waiter, g grant) *ownership {
	o := a.client.newOwnership(a.claim(g.field), g.token, g.sent, a.req.lease)
	if a.req.kind.Holds == redisstore.Unheld {
		a.client.passed(o, w, a.now)
		return o
	}
	a.client.acquired(o, a.req.under, w, g, a.now)
	for i, key := range a.several.keys {
		if i > 0 {
			other := a.client.newOwnership(redisstore.Claim{Kind: a.req.kind, Key: key, Field: g.field}, 0, g.sent, a.req.lease)
			a.client.acquired(other, nil, nil, g, a.now)
			a.several.beside = append(a.several.beside, other)
		}
	}
	return o
}

func (a *attempt) claim(field string) redisstore.Claim {
	return redisstore.Claim{Kind: a.req.kind, Key: a.key, Field: field}
}

// command is the script that takes what is wanted.
func (a *attempt) command(field string) redisstore.Call[redisstore.Grant] {
	if a.several.keys != nil {
		return a.client.store.AcquireAll(a.now, a.req.kind, a.several.keys, field, a.req.lease)
	}
	return a.client.store.Acquire(a.now, a.claim(field), a.terms())
}

// terms are those of the next command.
func (a *attempt) terms() redisstore.Terms {
	t := a.req.terms()
	switch {
	case a.req.forever:
		t.Wait = MaxDuration
	case a.req.wait > 0:
		t.Wait = max(a.until.Sub(a.now), 0)
	}
	t.Ghosts = a.sends.ghosts
	if a.req.kind.Holds == redisstore.Unheld {
		t.Forget = a.client.settled.take(a.key)
	}
	return t
}

// wanted are all the keys, in a slice that may be kept.
func (a *attempt) wanted() []string {
	if a.several.keys != nil {
		return slices.Clone(a.several.keys)
	}
	return []string{a.key}
}

// limit is the moment up to which one command may take, from a Redis that answers:
// longer than any does, but not past the wait time.
func (a *attempt) limit() time.Time {
	limit := a.client.callLimit(a.now)
	if !a.answers.IsZero() {
		limit = minTime(limit, a.answers)
	}
	if a.sends.cut = !a.until.IsZero() && a.req.wait > 0 && a.until.Before(limit); a.sends.cut {
		return a.until
	}
	return limit
}

// over reports whether the wait time is.
func (a *attempt) over() bool {
	return !a.until.IsZero() && !a.now.Before(a.until)
}

// timeUp reports whether the end of the wait time has cut the last command short.
func (a *attempt) timeUp() bool { return a.sends.cut && a.over() }
