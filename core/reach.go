package core

import (
	"context"
	"time"
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

// detectLimit is the moment up to which reaching a Cluster for the first time may take: several
// connections and commands, one after the other.
func (c *Client) detectLimit(now time.Time) time.Time {
	return now.Add(4 * roundTrips * c.cfg.backendTimeout)
}
