package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// ErrSilent is in the error of a call to a node that has not answered anything for the
// backend timeout. Such a call ends at once, and others are not sent.
var ErrSilent = errors.New("no answer from redis")

// health is what is known about whether one node answers, whoever asks. Slow is not
// silent: a call may need several round trips, for a connection, say, or behind another
// one. So when a call has had no answer for a moment, a ping is sent beside it, which
// needs one.
//
//	calm     -> doubtful  a call is slow, or has failed
//	doubtful -> calm      no call is slow any more
//	doubtful -> silent    a ping has had no answer for the timeout, and nor has any call
//	silent   -> calm      a ping is answered, or the health is closed
//
// It is ask, the one goroutine while the node is not calm, that changes the state, except
// that an operation which has had no answer for the timeout makes the node silent itself:
// whoever comes after it is refused at once; and that close leaves it calm for good. Each
// silence begins once at most, and ends with a report if it has begun.
type health struct {
	node    string
	timeout time.Duration
	address address
	reports Reports
	asker

	began  time.Time    // on the clock that is never set; asked counts from there
	asked  atomic.Int64 // nanoseconds to the first call since the last answer; 0: none
	slow   atomic.Int64 // calls that wait, and have for a moment
	silent atomic.Pointer[silence]

	trouble *trouble
}

// asker is the life of the goroutine that asks: there is one while the node is not calm, and
// none when the health is closed.
type asker struct {
	life context.Context //nolint:containedctx // of the goroutine
	end  context.CancelFunc

	mu     sync.Mutex
	asking bool
	closed bool
	worker sync.WaitGroup
}

// silence is the state of a node as those who wait for it see it: its context ends when the
// node falls silent. After that, and only then, there is a new one.
type silence struct {
	ctx   context.Context //nolint:containedctx // see above
	begin context.CancelCauseFunc
	once  sync.Once
}

// Reports are called when a node falls silent, and when it answers again or is not
// used any more; the node is named as by [Store.NodeName]. They must not wait.
type Reports struct {
	Silent  func(node string, cause error)
	Answers func(node string)
}

func newHealth(node string, cfg Config, at address) *health {
	h := &health{node: node, timeout: cfg.Timeout, address: at, reports: cfg.Reports, trouble: &trouble{}}
	h.began = time.Now().Add(-1)                             // so that no reading is 0, which says that there is none
	h.life, h.end = context.WithCancel(context.Background()) //nolint:forbidigo // its own lifetime
	h.renew()
	return h
}

func (h *health) renew() {
	s := &silence{}
	s.ctx, s.begin = context.WithCancelCause(context.Background()) //nolint:forbidigo // ends with the node's silence
	h.silent.Store(s)
}

// err is why calls fail at once; nil when they do not.
func (h *health) err() error {
	if h == nil {
		return nil
	}
	if s := h.silent.Load(); s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return nil
}

// explain adds to the error of a call why the node cannot be reached, as far as is known.
func (h *health) explain(err error) error {
	if h == nil {
		return err
	}
	return h.trouble.explain(err)
}

// sent notes that a call is about to be sent.
func (h *health) sent(now time.Time) {
	if h != nil && h.asked.Load() == 0 {
		h.asked.CompareAndSwap(0, int64(now.Sub(h.began)))
	}
}

// answered notes that Redis has said something.
func (h *health) answered() {
	if h != nil && h.asked.Load() != 0 {
		h.asked.Store(0)
	}
}

// slept leaves out of the time without an answer what this process did not run, being stopped
// or on a machine that is busy: what Redis has said meanwhile is read only now.
func (h *health) slept(d time.Duration) {
	for asked := h.asked.Load(); asked != 0; asked = h.asked.Load() {
		if h.asked.CompareAndSwap(asked, min(asked+int64(d), int64(time.Since(h.began)))) {
			return
		}
	}
}

// waits notes a call that has had no answer for a moment; it calls done when it waits no
// more. The context that it gets ends when the node falls silent.
func (h *health) waits() (speaks context.Context, done func()) {
	if h == nil {
		return context.Background(), func() {} //nolint:forbidigo // nobody says that it is silent
	}
	h.slow.Add(1)
	h.doubt()
	return h.silent.Load().ctx, func() { h.slow.Add(-1) }
}

// unanswered reports whether nothing was heard for as long as d after a call was sent.
func (h *health) unanswered(d time.Duration) bool {
	asked := h.asked.Load()
	return asked != 0 && time.Since(h.began)-time.Duration(asked) >= d
}

// verdict is when a ping that is sent now shows that the node is silent: when it is the
// timeout since the first call without an answer, but not before a slow node would have
// answered.
func (h *health) verdict(now time.Time) time.Time {
	limit := now.Add(h.timeout * 93 / 100)
	if asked := h.asked.Load(); asked != 0 {
		if end := h.began.Add(time.Duration(asked) + h.timeout); end.After(limit) {
			return end
		}
	}
	return limit
}

// doubt has the node asked beside a call that waits or has failed.
func (h *health) doubt() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asking || h.closed {
		return
	}
	h.asking = true
	h.worker.Go(h.ask)
}

// close ends the asking.
func (h *health) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end()
	h.worker.Wait()
	h.calmDown()
}

// calmDown ends the silence of a node that is not asked any more, and has none follow it:
// whoever gives up from now on changes nothing.
func (h *health) calmDown() {
	for {
		last := h.silent.Load()
		last.once.Do(func() {})
		if last.ctx.Err() == nil {
			return
		}
		h.returns()
	}
}

// The pace of asking: for how long the connection is kept when nobody doubts any more,
// and the pauses between two pings to a node that answers, refuses or is silent.
const (
	keepAsking = time.Second
	pingPause  = 100 * time.Millisecond
	redial     = 20 * time.Millisecond
	longestAsk = 500 * time.Millisecond
)

// ask is the life of the node while it is not calm.
func (h *health) ask() {
	p := &pinger{health: h}
	defer p.close()
	for last := time.Now(); h.pause(patience); {
		switch {
		case h.err() != nil:
			h.revive()
		case h.doubtful():
			last = time.Now()
			h.question(p)
		case time.Since(last) < keepAsking:
			h.pause(pingPause)
		case h.rest():
			return
		}
	}
}

// doubtful reports whether somebody waits for the answer of a ping.
func (h *health) doubtful() bool { return h.slow.Load() > 0 || h.unanswered(2*patience) }

// rest ends the asking, unless there is new doubt.
func (h *health) rest() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.doubtful() || h.err() != nil {
		return false
	}
	h.asking = false
	h.trouble.note(nil)
	return true
}

// question asks once, and draws the conclusion.
func (h *health) question(p *pinger) {
	err := p.ping(h.life)
	if h.life.Err() == nil {
		h.trouble.note(err)
	}
	switch {
	case err == nil:
		h.answered()
		h.pause(pingPause)
	case h.life.Err() != nil:
	case h.concludes(err):
	default:
		h.pause(redial)
	}
}

// gaveUp notes an operation that has tried for the timeout, in vain.
func (h *health) gaveUp(err error) {
	if h != nil && h.concludes(err) {
		h.doubt()
	}
}

// concludes makes the node silent if it has said nothing for the timeout. err is what became
// of the ping, or the operation.
func (h *health) concludes(err error) bool {
	s := h.silent.Load() // first: the node may return meanwhile, and what was seen before does not end the next one
	if !h.unanswered(h.timeout) {
		return false
	}
	s.once.Do(func() { h.fall(s, err) })
	return true
}

// fall ends what waits for the node.
func (h *health) fall(s *silence, err error) {
	cause := fmt.Errorf("%w for %s: %w", ErrSilent, h.timeout, err)
	if h.reports.Silent != nil {
		h.reports.Silent(h.node, cause)
	}
	s.begin(cause)
}

// revive asks until there is an answer, each time on a new connection.
func (h *health) revive() {
	for pause := redial; h.pause(pause); pause = min(2*pause, longestAsk) {
		if h.returned() {
			break
		}
	}
	h.returns()
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

// returned asks on a new connection.
func (h *health) returned() bool {
	p := &pinger{health: h}
	defer p.close()
	return p.ping(h.life) == nil
}

// pause waits, and is false when the asking ends.
func (h *health) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-h.life.Done():
		return false
	}
}
