package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// health is what is known about whether one node answers, whichever command asks. A slow node is not silent: a
// call may need several round trips, for example for a connection, or behind another call.
//
//	calm   -> silent  no command was answered for the timeout, and one of these is true: an attempt to connect
//	                  has failed, it had no answer for the timeout either, or an operation has given up
//	silent -> calm    the node has answered, or is closed
//
// Type lines calls the methods conclude and returns; see [lines.advance]. Each silence begins once at most, and ends with a
// report if it has begun.
type health struct {
	node    string
	timeout time.Duration
	reports Reports
	rouse   func() // makes lines look after the node

	began  time.Time    // on the monotonic clock; asked counts from there
	asked  atomic.Int64 // nanoseconds to the first command since the last answer; 0: none
	slow   atomic.Int64 // commands that have waited for a moment
	silent atomic.Pointer[silence]

	trouble trouble
}

// silence is the state of a node as waiting callers see it: its context ends when the node falls
// silent. After that, and only then, there is a new one.
type silence struct {
	ctx   context.Context //nolint:containedctx // see above
	begin context.CancelCauseFunc
	once  sync.Once
}

// Reports are called when a node falls silent, and when it answers again or is not used any more.
// They must not wait.
type Reports struct {
	Silent  func(node string, cause error)
	Answers func(node string)
}

func newHealth(node string, timeout time.Duration, reports Reports) *health {
	h := &health{node: node, timeout: timeout, reports: reports, rouse: func() {}}
	h.began = time.Now().Add(-1) // so that no reading is 0, which stands for none
	h.renew()
	return h
}

func (h *health) renew() {
	s := &silence{}
	s.ctx, s.begin = context.WithCancelCause(context.Background()) //nolint:forbidigo // ends with the node's silence
	h.silent.Store(s)
}

// err returns why calls fail at once; nil when they do not.
func (h *health) err() error {
	if s := h.silent.Load(); s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return nil
}

// sent notes that a command is about to be sent.
func (h *health) sent(now time.Time) {
	if h.asked.Load() == 0 {
		h.asked.CompareAndSwap(0, int64(now.Sub(h.began)))
	}
}

// answered notes that Redis has answered anything.
func (h *health) answered() {
	if h != nil && h.asked.Load() != 0 {
		h.asked.Store(0)
	}
}

// connected notes that there is a connection on which Redis has answered.
func (h *health) connected() {
	if h != nil {
		h.trouble.note(nil)
		h.answered()
	}
}

// skipSleep removes from the time without an answer the time in which this process did not run:
// stopped, or on a busy machine. It reads only now what Redis has sent in that time.
func (h *health) skipSleep(d time.Duration) {
	for asked := h.asked.Load(); asked != 0; asked = h.asked.Load() {
		if h.asked.CompareAndSwap(asked, min(asked+int64(d), int64(time.Since(h.began)))) {
			return
		}
	}
}

// startWaiting notes a command that has had no answer for a moment. The command calls done when it
// waits no more. The context ends when the node falls silent.
func (h *health) startWaiting() (speaks context.Context, done func()) {
	h.slow.Add(1)
	h.rouse()
	return h.silent.Load().ctx, func() { h.slow.Add(-1) }
}

// unanswered reports whether nothing was heard for d after a command was sent.
func (h *health) unanswered(d time.Duration) bool {
	asked := h.asked.Load()
	return asked != 0 && time.Since(h.began)-time.Duration(asked) >= d
}

// doubtful reports whether a command waits for a sign of life.
func (h *health) doubtful() bool { return h.slow.Load() > 0 || h.unanswered(2*moment) }

// gaveUp notes an operation that was tried for the timeout without success.
func (h *health) gaveUp(err error) {
	h.conclude(err)
	h.rouse()
}

// conclude makes the node silent if it has answered nothing for the timeout. err is the error of an
// attempt to connect, or of the operation.
func (h *health) conclude(err error) {
	s := h.silent.Load() // first: the node may return at this moment, and its next silence must not begin because of earlier events
	if !h.unanswered(h.timeout) {
		return
	}
	s.once.Do(func() {
		cause := fmt.Errorf("%w for %s: %w", ErrSilent, h.timeout, err)
		if h.reports.Silent != nil {
			h.reports.Silent(h.node, cause)
		}
		s.begin(cause)
	})
}

// returns ends the silence.
func (h *health) returns() {
	h.trouble.note(nil)
	h.answered()
	h.renew()
	if h.reports.Answers != nil {
		h.reports.Answers(h.node)
	}
}

// close ends the silence of a node that is not looked after any more, and prevents another.
func (h *health) close() {
	for {
		last := h.silent.Load()
		last.once.Do(func() {})
		if last.ctx.Err() == nil {
			return
		}
		h.returns()
	}
}

// explain adds to the error of a call why the node cannot be reached, as far as is known.
func (h *health) explain(err error) error { return h.trouble.explain(err) }

// trouble is why a node could not be reached when a connection was last made.
type trouble struct{ last atomic.Pointer[error] }

// note keeps the error of an attempt. An attempt without an answer explains nothing.
func (t *trouble) note(err error) {
	switch {
	case err == nil:
		t.last.Store(nil)
	case !errors.Is(err, errNoAnswer) && !errors.Is(err, errMute) && !errors.Is(err, errPipelineClosed) && !errors.Is(err, errManyDials):
		t.last.Store(&err)
	}
}

// explain adds the trouble to an error that means only that there was no answer.
func (t *trouble) explain(err error) error {
	if err == nil || FateOf(err) == Answered {
		return err
	}
	why := t.last.Load()
	if why == nil || errors.Is(err, *why) || strings.Contains(err.Error(), (*why).Error()) {
		return err
	}
	return &explainedError{err, ": ", *why}
}
