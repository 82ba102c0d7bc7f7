package lockz

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
)

// ruleNone names the rule of an acquisition without a label, as package telemetry does.
const ruleNone = "none"

// rule is the name of a rule and its kind of lock.
type rule struct {
	name string
	kind core.Kind
}

func ruleOf(a *core.Acquisition) rule { return rule{cmp.Or(a.Label, ruleNone), a.Kind} }

// lock identifies the lock of a hold or a waiter.
type lock struct {
	rule   rule
	key    string   // the first key
	keys   int      // the number of keys of the lock
	all    []string // all keys; nil if there is one
	client string   // id of the client, which uses one Redis
}

func lockOf(a *core.Acquisition) lock {
	l := lock{rule: ruleOf(a), key: a.Key, keys: 1, client: a.ClientID}
	if a.Keys > 1 {
		l.all = a.AllKeys()
		l.keys = len(l.all)
	}
	return l
}

// name returns key number i.
func (l *lock) name(i int) string {
	if l.all == nil {
		return l.key
	}
	return l.all[i]
}

// hold is a hold of this process that has not ended.
type hold struct {
	lock
	field     string // holder field in Redis
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

// lost reports whether the hold lost its lock.
func (h *hold) lost() bool { return h.lostAt.Load() != 0 }

// leaseLeft returns what remains of the lease, counted from the acquisition or the last renewal that
// was observed.
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

// supersedes reports whether the page shows h instead of other, which has the same field and was
// recorded before h. It does if the lock was passed on or handed over to h, or if other is a re-entry.
func (h *hold) supersedes(other *hold) bool {
	return !h.reentrant && (other.reentrant || !h.acquired.Before(other.acquired))
}

// waiter is an acquisition that found its lock taken and has not ended. The fields that its end reads
// come first and share one cache line, because thousands of other waiters may have been touched since
// it started.
type waiter struct {
	entry   *entry  // the entry of its key
	at      int     // its index in entry.waiters
	carries []*hold // the holds in the context of the waiter
	done    atomic.Bool

	lock
	endWatch  func()    // stops watching the ring that this waiter closed; nil: it closed none
	start     time.Time // start of the acquisition
	trace     trace.TraceID
	blockedBy string // field of the holder that refused it first
}

// exclusive reports whether a single holder of the lock is enough to keep w waiting. A semaphore gets
// permits from any holder, and a latch has no holder.
func (w *waiter) exclusive() bool {
	switch w.rule.kind {
	case core.KindSemaphore, core.KindPlainSemaphore, core.KindLatch:
		return false
	default:
		return true
	}
}

// waitsFor reports whether h keeps w waiting. Readers do not wait for readers.
func (w *waiter) waitsFor(h *hold) bool {
	return w.rule.kind != core.KindRead || h.rule.kind != core.KindRead
}

// entry holds the holds and the waiters of one key in this process.
type entry struct {
	key     string
	holds   []*hold
	waiters []*waiter

	oneHold   [1]*hold // room for the usual single hold
	oneWaiter [1]*waiter
}

// clientID returns the id of the client that a holder field belongs to.
func clientID(field string) string { return core.Holder{Field: field}.ClientID() }

// traceOf returns the id of the trace in ctx; it is invalid if there is none.
func traceOf(ctx context.Context) trace.TraceID { return trace.SpanContextFromContext(ctx).TraceID() }
