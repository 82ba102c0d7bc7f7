package lockz

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
)

// hold is a hold of this process that is not over.
type hold struct {
	lock
	rule      *rule
	field     string
	acquired  time.Time
	lease     time.Duration
	token     int64
	trace     trace.TraceID
	renewed   atomic.Int64 // Unix nanoseconds of the last renewal; 0: none yet
	lostAt    atomic.Int64 // Unix nanoseconds; 0: it is not lost
	done      atomic.Bool
	tracked   bool // the limit of holds has let it in
	reentrant bool
	watchdog  bool
}

// lost reports whether the lock has ended under its holder.
func (h *hold) lost() bool { return h.lostAt.Load() != 0 }

// leaseLeft is how long the lease lasts, as far as the observations tell.
func (h *hold) leaseLeft(now time.Time) time.Duration {
	from := h.acquired
	if at := h.renewed.Load(); at != 0 {
		from = time.Unix(0, at)
	}
	if h.lost() {
		return 0
	}
	return max(from.Add(h.lease).Sub(now), 0)
}

// outer reports whether h is the hold that a reader wants to see of two with one field, of which h was
// noted later: the lock was passed on to h, or moved to it, or the other hold is a re-entry.
func (h *hold) outer(than *hold) bool {
	return !h.reentrant && (than.reentrant || !h.acquired.Before(than.acquired))
}

// holdContext leads the observers of a hold to what the page knows of it.
type holdContext struct {
	context.Context

	page *Page
	hold hold
}

// Value is that of the context, and the hold.
func (c *holdContext) Value(key any) any {
	if key == any(&c.page.holdMark) {
		return c
	}
	return c.Context.Value(key)
}

// holdOf finds the hold that an observation is about; nil where the page does not know it.
func (p *Page) holdOf(ctx context.Context, info *core.HoldInfo) *hold {
	c, ok := ctx.Value(&p.holdMark).(*holdContext)
	if !ok || c.hold.field != info.Field || c.hold.key != info.Key || !c.hold.acquired.Equal(info.Acquired) {
		return nil
	}
	return &c.hold
}

// traceOf is the trace that ctx belongs to, if any.
func traceOf(ctx context.Context) trace.TraceID { return trace.SpanContextFromContext(ctx).TraceID() }
