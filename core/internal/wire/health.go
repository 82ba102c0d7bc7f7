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

// health records whether one node answers any command. A slow node is not silent, because a single call
// may take longer than the timeout: it may need several round trips, for example to connect, or may wait
// for another call.
//
//	calm   -> silent  the node has sent nothing for the timeout, although a command was sent, and one of these is
//	                  true: an attempt to connect failed, an attempt to connect has had no answer for the timeout,
//	                  or an operation gave up
//	silent -> calm    the node answered, or is closed
//
// [lines] calls conclude and returns; see [lines.advance]. For each silence, Reports.Silent is called once, and at its
// end Reports.Answers.
type health struct {
	node    string
	timeout time.Duration
	reports Reports
	rouse   func() // makes lines watch the node

	began   time.Time    // asked counts from here, on the monotonic clock
	asked   atomic.Int64 // nanoseconds to the first command since the last answer; 0: none
	slow    atomic.Int64 // number of commands that have waited for a moment
	contact atomic.Pointer[contact]

	trouble trouble
}

// contact is a period in which a node counts as calm. Its context is canceled when the node falls silent. The next
// contact begins when the node answers.
type contact struct {
	ctx  context.Context //nolint:containedctx // see above
	end  context.CancelCauseFunc
	once sync.Once // guards the end
}

// Reports holds the functions that are called when a node falls silent, and when the node answers again
// or is no longer used. They must not block.
type Reports struct {
	Silent  func(node string, cause error)
	Answers func(node string)
}

func newHealth(node string, timeout time.Duration, reports Reports) *health {
	h := &health{node: node, timeout: timeout, reports: reports, rouse: func() {}}
	h.began = time.Now().Add(-1) // so that no reading is 0, which stands for none
	h.beginContact()
	return h
}

func (h *health) beginContact() {
	c := &contact{}
	c.ctx, c.end = context.WithCancelCause(context.Background()) //nolint:forbidigo // ends when the node falls silent
	h.contact.Store(c)
}

// err returns the error with which calls fail at once; nil if the node is not silent.
func (h *health) err() error {
	if c := h.contact.Load(); c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	return nil
}

// recordSending records that a command is about to be sent.
func (h *health) recordSending(now time.Time) {
	if h.asked.Load() == 0 {
		h.asked.CompareAndSwap(0, int64(now.Sub(h.began)))
	}
}

// recordAnswer records that Redis answered, whatever the answer is.
func (h *health) recordAnswer() {
	if h != nil && h.asked.Load() != 0 {
		h.asked.Store(0)
	}
}

// recordConnection records that there is a connection on which Redis answered.
func (h *health) recordConnection() {
	if h != nil {
		h.trouble.note(nil)
		h.recordAnswer()
	}
}

// skipSleep subtracts the time in which this process did not run from the time without an answer. In
// that time, the process was stopped or the machine was busy, and replies that arrived were not read.
func (h *health) skipSleep(d time.Duration) {
	for asked := h.asked.Load(); asked != 0; asked = h.asked.Load() {
		if h.asked.CompareAndSwap(asked, min(asked+int64(d), int64(time.Since(h.began)))) {
			return
		}
	}
}

// startWaiting records a command that has waited for its answer for a moment. The command calls done when
// it stops waiting. The context is canceled when the node falls silent.
func (h *health) startWaiting() (speaks context.Context, done func()) {
	h.slow.Add(1)
	h.rouse()
	return h.contact.Load().ctx, func() { h.slow.Add(-1) }
}

// unanswered reports whether the node sent nothing for d after a command was sent.
func (h *health) unanswered(d time.Duration) bool {
	asked := h.asked.Load()
	return asked != 0 && time.Since(h.began)-time.Duration(asked) >= d
}

// doubtful reports whether a command waits for a sign of life.
func (h *health) doubtful() bool { return h.slow.Load() > 0 || h.unanswered(2*moment) }

// recordTimeout records an operation that failed for the whole timeout.
func (h *health) recordTimeout(err error) {
	h.conclude(err)
	h.rouse()
}

// conclude marks the node as silent if it answered nothing for the timeout. err is the error of an
// attempt to connect, or of the operation.
func (h *health) conclude(err error) {
	c := h.contact.Load() // loaded first: if the node answers at this moment, earlier events must not end the next contact
	if !h.unanswered(h.timeout) {
		return
	}
	c.once.Do(func() {
		cause := fmt.Errorf("%w for %s: %w", ErrSilent, h.timeout, err)
		if h.reports.Silent != nil {
			h.reports.Silent(h.node, cause)
		}
		c.end(cause)
	})
}

// returns ends the silence.
func (h *health) returns() {
	h.trouble.note(nil)
	h.recordAnswer()
	h.beginContact()
	if h.reports.Answers != nil {
		h.reports.Answers(h.node)
	}
}

// close ends the silence of a node that is no longer watched, and prevents another.
func (h *health) close() {
	for {
		last := h.contact.Load()
		last.once.Do(func() {})
		if last.ctx.Err() == nil {
			return
		}
		h.returns()
	}
}

// explain adds the last trouble of the node, if any, to the error of a call.
func (h *health) explain(err error) error { return h.trouble.explain(err) }

// trouble is the error of the last attempt to connect to a node.
type trouble struct{ last atomic.Pointer[error] }

// note records the error of an attempt. A missing answer explains nothing and is not recorded.
func (t *trouble) note(err error) {
	switch {
	case err == nil:
		t.last.Store(nil)
	case !errors.Is(err, errNoAnswer) && !errors.Is(err, errMute) && !errors.Is(err, errMuteTLS) && !errors.Is(err, errPipelineClosed) && !errors.Is(err, errManyDials):
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
