package core

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// reach makes sure that a Cluster has answered once, which may take a while, and gives the
// time after that.
func (a *acquisition) reach(ctx context.Context) (now time.Time, err error) {
	c, start := a.client, a.report.Start
	if c.store.Reached() {
		return start, nil
	}
	limit := c.detectLimit(start)
	if !a.req.forever && a.req.wait > 0 {
		limit = minTime(limit, start.Add(a.req.wait))
	}
	err = c.store.Detect(ctx, limit)
	if err != nil && ctx.Err() != nil {
		return start, &NotAcquiredError{Key: a.keys[0], Waited: time.Since(start), Cause: contextCause(ctx)}
	}
	return time.Now(), unavailable(err)
}

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
