package core

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// newAttempt prepares the acquisition of one key. now is the time: of a caller that has
// just come that of its report.
func (c *Client) newAttempt(ctx context.Context, key string, req *request, report *AcquireResult, now time.Time) attempt {
	a := attempt{client: c, key: key, req: req, start: report.Start, now: now, report: report}
	if !req.forever {
		a.until = report.Start.Add(req.wait)
	}
	if len(c.cfg.observers.contention) > 0 {
		a.notify = func(r *redisstore.Refusal) {
			told := Contention{Acquisition: report.Acquisition, BlockedBy: report.BlockedBy}
			if r != nil {
				told.TTL = r.TTL
			}
			c.cfg.observers.observeContention(ctx, told)
		}
	}
	return a
}

// sleep is how long to wait for a signal: a poll interval, or until the head's
// stand-back is over, or the lease in its way, or the wait time.
func (a *attempt) sleep(todo step) time.Duration {
	d := jittered(a.interval(todo))
	if todo.sleep > 0 {
		d = min(d, todo.sleep)
	}
	if todo.head && a.refusal != nil && a.refusal.TTL >= 0 {
		d = min(d, max(a.seen.Add(a.refusal.TTL+time.Millisecond).Sub(a.now), time.Millisecond))
	}
	for _, end := range [...]time.Time{a.until, a.giveUp} {
		if !end.IsZero() {
			d = min(d, end.Sub(a.now))
		}
	}
	return d
}

// interval is how long a waiter sleeps when nothing wakes it. Where a lock has no messages it
// spins: it attempts again soon, and then less and less often.
func (a *attempt) interval(todo step) time.Duration {
	switch {
	case a.req.kind.Spins() && todo.head:
		a.spins++
		return min(spinPause<<min(a.spins-1, 10), silentPoll)
	case todo.silent:
		return silentPoll
	default:
		return pollInterval
	}
}

// spinPause is the first pause of one who spins; the next ones are twice as long each, up to
// silentPoll, so that also beside a busy process there is a turn now and then.
const spinPause = time.Millisecond
