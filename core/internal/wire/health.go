package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
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
	life // its mutex guards asking

	node    string
	timeout time.Duration
	dialer  *dialer
	entry   bool // the dialer lacks what an introduction needs
	shy     bool // the node hangs up on connections that have not said who they are; of the goroutine that asks
	reports Reports
	asking  bool // a goroutine asks

	began  time.Time    // on the clock that is never set; asked counts from there
	asked  atomic.Int64 // nanoseconds to the first call since the last answer; 0: none
	slow   atomic.Int64 // calls that wait, and have for a moment
	silent atomic.Pointer[silence]

	trouble *trouble
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

func newHealth(node string, d *dialer, reports Reports) *health {
	h := &health{node: node, timeout: d.timeout, dialer: d, reports: reports, trouble: &trouble{}}
	h.began = time.Now().Add(-1) // so that no reading is 0, which says that there is none
	h.begin()
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
	h.workers.Go(h.ask)
}

// close ends the asking.
func (h *health) close() {
	h.life.close()
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
	err := p.ping(h.ctx)
	if h.ctx.Err() == nil {
		h.trouble.note(err)
	}
	switch {
	case err == nil:
		h.answered()
		h.pause(pingPause)
	case h.ctx.Err() != nil:
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
	return p.ping(h.ctx) == nil
}

// pause waits, and is false when the asking ends.
func (h *health) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-h.ctx.Done():
		return false
	}
}

// pinger asks a node whether it is there, on a connection of its own, beside those of
// the pool: it needs one round trip when the others are still being made, and is not
// behind anything. It introduces itself to nobody: that it may not ask is an answer, too.
type pinger struct {
	health *health
	conn   net.Conn
}

// pingCommand is PING as a client sends it.
const pingCommand = "*1\r\n$4\r\nPING\r\n"

// ping asks once. Each of its steps has a time limit: to connect, and to ask. Some proxies hang up on a client that
// has not introduced itself. They are asked by a connection with an introduction, which asks for an answer itself.
func (p *pinger) ping(ctx context.Context) error {
	h := p.health
	h.sent(time.Now())
	if h.shy {
		return p.introduce(ctx)
	}
	if p.conn == nil {
		if err := p.connect(ctx); err != nil {
			return err
		}
	}
	err := p.exchange(ctx)
	if err != nil {
		p.close()
	}
	if _, hungUp := errors.AsType[*hungUpError](err); hungUp && !h.entry {
		h.shy = true
		return p.introduce(ctx)
	}
	return err
}

// introduce asks by a connection that is introduced.
func (p *pinger) introduce(ctx context.Context) error {
	limit := p.health.verdict(time.Now()).Add(p.health.timeout) // it has several round trips
	ctx, cancel := context.WithDeadlineCause(ctx, limit, errNoPong)
	defer cancel()
	conn, err := p.health.dialer.connect(ctx)
	if err == nil {
		_ = conn.Close() //nolint:errcheck // it has done its work
	}
	return err
}

func (p *pinger) connect(ctx context.Context) error {
	limit := p.health.verdict(time.Now())
	if p.health.dialer.opts.TLSConfig != nil {
		limit = limit.Add(p.health.timeout) // it has two round trips
	}
	ctx, cancel := context.WithDeadlineCause(ctx, limit, errNoConnection)
	defer cancel()
	conn, err := p.health.dialer.bare(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errManyDials):
		return errNoConnection
	}
	p.conn = conn
	return err
}

// errNoPong says that a ping has no answer.
var errNoPong = errors.New("a ping has no answer")

// exchange sends the command and takes any line for the answer.
func (p *pinger) exchange(ctx context.Context) error {
	conn := p.conn
	limit := p.health.verdict(time.Now())
	if err := conn.SetDeadline(limit); err != nil {
		return &hungUpError{err}
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() //nolint:errcheck // nothing was entrusted to it
	_, err := io.WriteString(conn, pingCommand)
	if err == nil {
		err = awaitLine(conn, limit)
	}
	switch {
	case err == nil:
		return nil
	case timedOut(err), ctx.Err() != nil:
		return errNoPong
	default:
		return &hungUpError{err}
	}
}

// awaitLine waits for a line until the deadline of the connection, which is limit, and then
// looks once more: if this process was stopped meanwhile, the line came long ago.
func awaitLine(conn net.Conn, limit time.Time) error {
	in := bufio.NewReader(conn)
	_, err := in.ReadBytes('\n')
	if err == nil || !timedOut(err) {
		return err
	}
	more := settling
	if wokeAfter(limit) {
		more = waking
	}
	if err := conn.SetReadDeadline(time.Now().Add(more)); err != nil {
		return err
	}
	_, err = in.ReadBytes('\n')
	return err
}

// timedOut reports whether an error is that of a deadline.
func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// hungUpError says that a connection was made, and ended before the answer.
type hungUpError struct{ cause error }

func (e *hungUpError) Error() string { return "connection ended: " + e.cause.Error() }
func (e *hungUpError) Unwrap() error { return e.cause }

func (p *pinger) close() {
	if p.conn != nil {
		_ = p.conn.Close() //nolint:errcheck // nothing was entrusted to it
		p.conn = nil
	}
}

// trouble is why a node could not be reached when it was last asked beside its calls. A
// call whose time ends while go-redis is still trying to connect knows nothing of it:
// go-redis says so when it has given up, long after that.
type trouble struct{ last atomic.Pointer[error] }

// note keeps what became of a ping. That it had no answer explains nothing.
func (t *trouble) note(err error) {
	switch {
	case err == nil:
		t.last.Store(nil)
	case !errors.Is(err, errNoPong) && !errors.Is(err, errNoConnection):
		t.last.Store(&err)
	}
}

// explain adds why to an error that says only that there was no answer.
func (t *trouble) explain(err error) error {
	if err == nil || t == nil || FateOf(err) == Answered {
		return err
	}
	why := t.last.Load()
	if why == nil || errors.Is(err, *why) || strings.Contains(err.Error(), (*why).Error()) {
		return err
	}
	return &explainedError{err, ": ", *why}
}

// explainedError is an error of a call with the trouble of its node, or with the error of an
// earlier call. Only err says what became of the call and what its answer means.
type explainedError struct {
	err     error
	between string
	why     error
}

// AfterEarlier adds to an error the error of an earlier attempt at the same operation.
func AfterEarlier(err, earlier error) error {
	return &explainedError{err, "; before that: ", earlier}
}

func (e *explainedError) Error() string   { return e.err.Error() + e.between + e.why.Error() }
func (e *explainedError) Unwrap() []error { return []error{e.err, e.why} }
