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
