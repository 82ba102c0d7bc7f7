package aspect

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
)

// What a wait leaves over of the caller's time, for the handler or for an answer:
// a tenth, and at least [MinReserve].
const (
	// MinReserve is the least of the caller's time that a wait leaves over.
	MinReserve = 50 * time.Millisecond

	reserveShare = 10
)

// waitUnder is how long to wait under the caller's deadline; limited says whether
// that is less than the rule's wait time.
func (c *compiled) waitUnder(ctx context.Context, now time.Time) (wait time.Duration, limited bool) {
	deadline, ok := ctx.Deadline()
	if !ok || c.wait == 0 {
		return c.wait, false
	}
	left := deadline.Sub(now)
	usable := left - max(left/reserveShare, MinReserve)
	if c.wait != ruleset.WaitForever && usable >= c.wait {
		return c.wait, false
	}
	if usable < time.Millisecond {
		return 0, true
	}
	return usable, true
}
