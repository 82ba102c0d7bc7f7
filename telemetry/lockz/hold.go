package lockz

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
)

// hold is a hold of this process that is not over.
type hold struct {
	lock
	field     string
	acquired  time.Time
	lease     time.Duration
	token     int64
	trace     trace.TraceID
	renewed   atomic.Int64 // Unix nanoseconds of the last renewal; 0: none yet
	lostAt    atomic.Int64 // Unix nanoseconds; 0: it is not lost
	done      atomic.Bool
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

// waiter is an acquisition that found its lock taken and is not over. What its end looks at comes
// first, in one line of the processor's cache, which has seen thousands of other waiters meanwhile.
type waiter struct {
	entry   *entry  // where it waits
	at      int     // its place in the entry
	carries []*hold // what its context holds meanwhile
	done    atomic.Bool

	lock
	endWatch  func()    // stops the goroutine that watches the ring that it has closed; nil: none
	start     time.Time // when it came
	trace     trace.TraceID
	blockedBy string // field of the holder that was in the way first
}

// lock is what a waiter waits for, or a hold has.
type lock struct {
	rule   rule
	key    string
	keys   int      // how many, of which key is the first
	all    []string // of several keys
	client string   // whose Redis it is in
}

func ruleOf(a *core.Acquisition) rule { return rule{cmp.Or(a.Label, ruleNone), a.Kind} }

func lockOf(a *core.Acquisition) lock {
	l := lock{rule: ruleOf(a), key: a.Key, keys: 1, client: a.ClientID}
	if a.Keys > 1 {
		l.all = a.AllKeys()
		l.keys = len(l.all)
	}
	return l
}

// name is one of the keys.
func (l *lock) name(i int) string {
	if l.all == nil {
		return l.key
	}
	return l.all[i]
}

// exclusive reports whether any one holder of the lock is enough to keep w waiting. A permit
// may come from any holder, and a latch has none.
func (w *waiter) exclusive() bool {
	switch w.rule.kind {
	case core.KindSemaphore, core.KindPlainSemaphore, core.KindLatch:
		return false
	default:
		return true
	}
}

// waitsFor reports whether h keeps w waiting: readers do not wait for readers.
func (w *waiter) waitsFor(h *hold) bool {
	return w.rule.kind != core.KindRead || h.rule.kind != core.KindRead
}

// acquireContext leads the observers of an acquisition that waits to its waiter.
type acquireContext struct {
	context.Context

	page   *Page
	waiter atomic.Pointer[waiter]
}

// Value is that of the context, and the acquisition.
func (c *acquireContext) Value(key any) any {
	if key == any(&c.page.acquireMark) {
		return c
	}
	return c.Context.Value(key)
}

// acquisitionOf finds what observeAcquireStart made; nil where it was not asked.
func (p *Page) acquisitionOf(ctx context.Context) *acquireContext {
	c, ok := ctx.Value(&p.acquireMark).(*acquireContext)
	if !ok {
		return nil
	}
	return c
}
