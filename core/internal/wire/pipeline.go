package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// pipeline is one connection to a node. It has many commands under way at the same time, in order. No command
// waits for the reply to another.
//
//	connecting -> open    there is a connection: the submitted commands are written
//	connecting -> broken  the attempt to connect failed
//	open       -> broken  it was closed, received something that is not a reply, or is no longer needed
//
// run and breakOff change the state. The number of commands under way decides which goroutine writes. With a
// few, the caller writes its command. With several, the caller first lets other callers add theirs. With many,
// the writer goroutine collects the commands of all goroutines that can run. The reader goroutine reads the
// replies. But if each of the last commands was alone on the pipeline, a caller also reads its own reply,
// which saves switches between goroutines.
type pipeline struct {
	life
	net.Conn

	connect  dialFunc
	progress progress // while it connects
	health   *health  // the health of the node
	born     time.Time
	era      atomic.Int64 // see origin.old
	named    atomic.Bool  // the connection leads to the master that the Sentinels name
	watch    func()       // makes the shared deadline watch the queue until the queue is empty
	flow     flow

	// Guarded by the mutex.
	state pipelineState
	why   error // the cause of a broken pipeline
	queue queue // submitted commands without a reply
	bound int   // limit of the queue

	sending   sending
	receiving receiving
}

type pipelineState uint8

const (
	pipelineConnecting pipelineState = iota
	pipelineOpen
	pipelineBroken
)

// start begins to connect.
func (p *pipeline) start() {
	p.begin()
	p.born = time.Now()
	p.sending.wake, p.receiving.wake = make(chan struct{}, 1), make(chan struct{}, 1)
	p.sending.busy = true // until there is a connection
	p.workers.Go(p.run)
}

// run connects the pipeline and serves it until it breaks.
func (p *pipeline) run() {
	conn, err := p.connect(p.ctx)
	if err != nil {
		p.fail(err)
		return
	}
	p.mu.Lock()
	if p.state == pipelineBroken {
		p.mu.Unlock()
		_ = conn.Close() //nolint:errcheck // it carries no commands
		return
	}
	p.Conn, p.state = conn, pipelineOpen
	p.health.recordConnection()
	p.flow.start()
	p.mu.Unlock()
	p.workers.Go(p.writeLoop)
	p.sending.wake <- struct{}{}
	p.readLoop()
}

// submit sends a command, now or as soon as there is a connection. The command is completed with its
// outcome, which may happen before submit returns.
func (p *pipeline) submit(c *command) error {
	p.mu.Lock()
	if err := p.refusal(); err != nil {
		p.mu.Unlock()
		return err
	}
	writer, reads := p.enter(c)
	switch {
	case writer == byItself && c.then != nil: // an internal command must not wait
		writer = byWriter
	case writer == byItself && p.queue.len() >= gathersFrom:
		writer = p.gather()
	}
	if writer != byItself {
		p.mu.Unlock()
		if writer == byWriter {
			wake(p.sending.wake)
		}
		return nil
	}
	out := p.takeOut()
	p.mu.Unlock()
	if p.write(out) {
		wake(p.sending.wake)
	}
	if reads {
		p.readFor(c)
	}
	return nil
}

// enter queues a command. It decides which goroutine writes the command and whether its caller reads the
// reply. The mutex is held.
func (p *pipeline) enter(c *command) (writer sender, reads bool) {
	before := len(p.sending.buf)
	if c.asking {
		p.sending.buf = append(p.sending.buf, "*1\r\n$6\r\nASKING\r\n"...)
		p.queue.push(internal(func() {}))
		p.flow.enter(p.queue.len())
	}
	p.sending.buf = appendCommand(p.sending.buf, c.given)
	c.size = int32(len(p.sending.buf) - before) // Redis refuses a larger command
	p.queue.push(c)
	p.flow.enter(p.queue.len())
	alone := p.queue.len() == 1
	if alone {
		p.receiving.alone++
	} else {
		p.receiving.alone = 0
	}
	p.watch() // now, because a write may block
	writer = p.takeSending()
	return writer, p.takeReading(writer == byItself && alone && c.then == nil && !c.batched)
}

// isOpen reports whether there is a connection.
func (p *pipeline) isOpen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == pipelineOpen
}

// reason returns the cause of a broken pipeline.
func (p *pipeline) reason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

// refusal returns an error if the pipeline accepts no commands, nil otherwise. The mutex is held.
func (p *pipeline) refusal() error {
	switch {
	case p.state != pipelineBroken && p.queue.len() < p.bound:
		return nil
	case p.state != pipelineBroken:
		return redis.ErrAutoPipelineQueueFull
	case FateOf(p.why) == Unknown:
		return &unsentError{p.why}
	}
	return p.why
}

// fail breaks the pipeline at once and completes its commands. The connection is closed in the
// background.
func (p *pipeline) fail(err error) {
	if errors.Is(err, io.EOF) {
		err = io.EOF
	}
	p.mu.Lock()
	left, err := p.breakOff(err)
	p.mu.Unlock()
	p.end()
	for _, c := range left {
		c.complete(nil, err)
	}
}

// recall takes the commands back from a pipeline that is being connected, which continues to connect.
// recall breaks an open pipeline.
func (p *pipeline) recall(err error) {
	p.mu.Lock()
	if p.state != pipelineConnecting {
		p.mu.Unlock()
		p.fail(err)
		return
	}
	left := p.queue.pop(nil, p.queue.len())
	p.sending.buf, p.flow.slow, p.flow.sample = nil, 0, sample{}
	p.mu.Unlock()
	for _, c := range left {
		c.complete(nil, markUnsent(err))
	}
}

// prepares reports whether the pipeline is being connected and waits for a function of the caller, such
// as OnConnect, and not for Redis.
func (p *pipeline) prepares() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == pipelineConnecting && p.progress.until.Load() == nil
}

// retire breaks the pipeline and returns true. If a command has no answer yet, retire does nothing and returns false.
func (p *pipeline) retire() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.len() > 0 {
		return false
	}
	_, _ = p.breakOff(errPipelineClosed) //nolint:errcheck // no command waits for it
	return true
}

// breakOff breaks the pipeline. The caller completes the commands in left with why. The mutex is
// held.
func (p *pipeline) breakOff(err error) (left []*command, why error) {
	if p.state == pipelineBroken {
		return nil, p.why
	}
	if p.state == pipelineConnecting {
		err = markUnsent(err)
	} else {
		err = markLost(err)
		p.workers.Go(func() { _ = p.Conn.Close() }) //nolint:errcheck // Close of TLS sends a last record, which may take long
	}
	p.state, p.why = pipelineBroken, err
	p.flow.ended.Store(true)
	p.sending.buf = nil // the connection may stay open for a while
	return p.queue.pop(nil, p.queue.len()), err
}

// drop breaks the pipeline for a reason and waits for its goroutines.
func (p *pipeline) drop(why error) {
	p.fail(why)
	p.workers.Wait()
}

// sending holds the bytes to write and whether a goroutine writes. The pipeline's mutex guards it.
type sending struct {
	buf, spare []byte
	busy       bool
	wake       chan struct{} // wakes the writer
}

// sender is the goroutine that writes a command.
type sender uint8

const (
	byAnother sender = iota // the goroutine that writes already, or the writer after it
	byWriter                // the writer, which has to be woken
	byItself                // its caller
)

// takeSending decides which goroutine writes a submitted command. The mutex is held.
func (p *pipeline) takeSending() sender {
	if p.sending.busy {
		return byAnother
	}
	p.sending.busy = true
	if p.queue.len() > writerAbove || p.queue.bytes > roomy {
		return byWriter
	}
	return byItself
}

// gather lets other goroutines run before the caller writes. Then it decides again which goroutine
// writes, because others may have added many bytes. The mutex is held, but gather releases it in between.
func (p *pipeline) gather() sender {
	p.mu.Unlock()
	runtime.Gosched()
	p.mu.Lock()
	if p.queue.bytes > roomy {
		return byWriter
	}
	return byItself
}

// takeOut removes and returns the bytes to write. The mutex is held.
func (p *pipeline) takeOut() []byte {
	out := p.sending.buf
	p.sending.buf, p.sending.spare = p.sending.spare[:0], nil
	return out
}

// write writes out, if out is not empty, and reports whether there is more to write.
func (p *pipeline) write(out []byte) (more bool) {
	if len(out) > 0 {
		if _, err := p.Conn.Write(out); err != nil {
			p.fail(err)
			return false
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if cap(out) <= largeBuffer {
		p.sending.spare = out[:0]
	}
	p.sending.busy = len(p.sending.buf) > 0
	return p.sending.busy
}

// largeBuffer is the size from which a buffer is not kept.
const largeBuffer = 1 << 20

// writeLoop runs the writer. It first lets other goroutines add their commands.
func (p *pipeline) writeLoop() {
	for {
		select {
		case <-p.sending.wake:
		case <-p.ctx.Done():
			return
		}
		for more := true; more; {
			runtime.Gosched()
			p.mu.Lock()
			out := p.takeOut()
			p.mu.Unlock()
			more = p.write(out)
		}
	}
}

// isTimeout reports whether an error comes from a deadline.
func isTimeout(err error) bool {
	timeout, is := errors.AsType[net.Error](err)
	return is && timeout.Timeout()
}

// receiving records which goroutine reads, guarded by the pipeline's mutex. It also holds the bytes that were
// read, which belong to the goroutine that reads.
//
//	none -> caller    a command is alone on the pipeline, as were the commands before it
//	caller -> none    the caller has its reply
//	caller -> reader  other commands are under way, or the reply takes long
//	none -> reader    a command is not alone, or there was none for a moment
//	reader -> none    commands were alone for a while
type receiving struct {
	by    receiver
	alone int           // how many commands in a row were alone
	wake  chan struct{} // wakes the reader
	limit time.Time     // read deadline of the caller that reads, as set on the connection

	in     []byte // from the first byte that the parser needs
	parser parser
}

type receiver uint8

const (
	byReader receiver = iota
	byCaller
	byNone
)

// takeReading decides which goroutine reads when none does: the caller if its command is alone and
// Redis is near, otherwise the reader. The mutex is held.
func (p *pipeline) takeReading(alone bool) (caller bool) {
	if p.receiving.by != byNone {
		return false
	}
	if alone && p.flow.near() {
		p.receiving.by = byCaller
		return true
	}
	p.receiving.by = byReader
	wake(p.receiving.wake)
	return false
}

// readFor reads until c has its reply, but only for about a moment. After that the reader reads.
func (p *pipeline) readFor(c *command) {
	now := time.Now()
	if p.receiving.limit.Sub(now) < moment {
		p.receiving.limit = now.Add(2 * moment)
		if err := p.Conn.SetReadDeadline(p.receiving.limit); err != nil {
			p.fail(err)
			return
		}
	}
	for !c.over() {
		if err := p.read(); err != nil {
			if !isTimeout(err) {
				p.fail(err)
				return
			}
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.len() > 0 {
		p.receiving.by = byReader
		wake(p.receiving.wake)
		return
	}
	p.receiving.by = byNone
}

// readLoop runs the reader.
func (p *pipeline) readLoop() {
	for {
		err := p.read()
		if err != nil {
			p.fail(err)
			return
		}
		for p.leaveReading() {
			if !p.rest() {
				return
			}
		}
	}
}

// leaveReading reports whether the reader left the reading to callers that are alone.
func (p *pipeline) leaveReading() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.len() == 0 && p.receiving.alone >= readsAfter {
		p.receiving.by, p.receiving.alone = byNone, 0
		return true
	}
	return false
}

// rest waits until the reader has to read again. It returns false when the pipeline breaks.
func (p *pipeline) rest() bool {
	timer := time.NewTimer(unread)
	defer timer.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return false
		case <-p.receiving.wake:
		case <-timer.C:
			if !p.resume() {
				timer.Reset(unread)
				continue
			}
		}
		p.receiving.limit = time.Time{}
		if err := p.Conn.SetReadDeadline(time.Time{}); err != nil {
			p.fail(err)
			return false
		}
		return true
	}
}

// resume makes the reader read again if there was no command for a moment. It reports whether it did.
func (p *pipeline) resume() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.receiving.by != byNone || p.receiving.alone > 0 {
		p.receiving.alone = 0
		return false
	}
	p.receiving.by = byReader
	return true
}

// read reads the bytes that arrived and completes the commands whose replies they contain.
func (p *pipeline) read() error {
	r := &p.receiving
	if cap(r.in)-len(r.in) < minRead {
		r.in = append(make([]byte, 0, 2*cap(r.in)+minRead), r.in...)
	}
	n, err := p.Conn.Read(r.in[len(r.in):cap(r.in)])
	r.in = r.in[:len(r.in)+n]
	if n > 0 {
		if err := p.take(); err != nil {
			return err
		}
	}
	return err
}

const minRead = 4 << 10

// take completes the commands whose replies have arrived.
func (p *pipeline) take() error {
	r := &p.receiving
	now := time.Now()
	rest := r.in
	var room [64]any
	for more := true; more; {
		replies, length, err := r.parser.replies(rest, room[:0])
		if err := p.answers(now, replies); err != nil {
			return err
		}
		if more = err == nil; !more && !errors.Is(err, errIncomplete) {
			return err
		}
		rest = rest[length:]
	}
	r.in = r.in[:copy(r.in, rest)]
	if len(r.in) == 0 && cap(r.in) > largeBuffer {
		r.in = nil
	}
	return nil
}

// answers delivers replies to the commands at the front of the queue.
func (p *pipeline) answers(now time.Time, replies []any) error {
	var room [64]*command
	p.mu.Lock()
	if len(replies) > p.queue.len() {
		p.mu.Unlock()
		return fmt.Errorf("%w: a reply to no command", errGarbled)
	}
	cmds := p.queue.pop(room[:0], len(replies))
	if len(cmds) > 0 {
		p.flow.hear(now, len(cmds))
		p.health.recordAnswer()
	}
	p.mu.Unlock()
	for i, c := range cmds {
		reply, err := outcome(replies[i])
		if MeaningOf(err) == MeansReplica {
			p.flow.old.Store(true)
		}
		c.complete(reply, err)
	}
	return nil
}

// look marks the commands that became slow. It reports whether any commands are under way, and returns
// how long nothing has arrived.
func (p *pipeline) look(now time.Time) (busy bool, quiet time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &p.flow
	patient := f.slowAfter()
	for ; f.slow < p.queue.len() && now.Sub(p.queue.at(f.slow).at) >= patient; f.slow++ {
		p.queue.at(f.slow).slow()
	}
	f.subtractStall(now)
	if busy = p.queue.len() > 0; busy {
		quiet = now.Sub(f.quiet)
	}
	return busy, quiet
}

// interruptHanging interrupts the callers that wait on a hanging connection, each once. Their [OnHang] decides what
// they do then, and their answers may still come. The caller of the first command is interrupted later, after a quarter
// of the timeout, because only its command may be slow instead of the connection.
func (p *pipeline) interruptHanging(quiet, timeout time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, stuck := 1, min(p.flow.interruptAfter(), timeout)
	if quiet < stuck {
		return
	}
	if quiet >= max(stuck, timeout/4) {
		from = 0
	}
	for i := from; i < p.queue.len(); i++ {
		p.queue.at(i).hangs()
	}
}

// queue holds the commands under way on a pipeline, in order, in a ring that grows.
type queue struct {
	ring  []*command
	first int
	n     int
	bytes int // total size of the commands on the wire
}

func (q *queue) len() int { return q.n }

// at returns the i-th command from the front.
func (q *queue) at(i int) *command { return q.ring[(q.first+i)&(len(q.ring)-1)] }

func (q *queue) push(c *command) {
	if q.n == len(q.ring) {
		larger := make([]*command, max(64, 2*q.n)) // a power of two
		for i := range q.n {
			larger[i] = q.at(i)
		}
		q.ring, q.first = larger, 0
	}
	q.ring[(q.first+q.n)&(len(q.ring)-1)] = c
	q.n++
	q.bytes += int(c.size)
}

// pop takes n commands from the front and appends them to into.
func (q *queue) pop(into []*command, n int) []*command {
	for range n {
		c := q.ring[q.first]
		into = append(into, c)
		q.bytes -= int(c.size)
		q.ring[q.first] = nil
		q.first = (q.first + 1) & (len(q.ring) - 1)
	}
	q.n -= n
	return into
}
