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

// pipeline is one connection to a node, on which many commands travel at the same time, in order: none waits for
// the reply of another.
//
//	connecting -> open    the connection is there: what was submitted is written
//	connecting -> broken  there is none
//	open       -> broken  it has ended, sent something that is not a reply, or is not wanted any more
//
// run and breakOff change it. How many commands are under way decides which goroutine writes and which one reads.
// A few: the caller writes, and reads its own reply when it was alone for a while, which spares changes of
// goroutine. Several: the caller first lets others add theirs. Many: the writer collects the commands of all
// goroutines that can run. The reader takes the replies.
type pipeline struct {
	life
	net.Conn

	connect  dialFunc
	progress progress // of the connecting
	health   *health  // of the node
	born     time.Time
	era      atomic.Int64 // see node.old
	named    atomic.Bool  // it leads to the master that the Sentinels have named
	watch    func()       // has the shared deadline look at the queue until it is empty
	flow     flow

	// Guarded by the mutex.
	state pipelineState
	why   error // of a broken one
	queue queue // what was submitted and has no reply
	bound int   // of the queue

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

// run is the life of the pipeline.
func (p *pipeline) run() {
	conn, err := p.connect(p.ctx)
	if err != nil {
		p.fail(err)
		return
	}
	p.mu.Lock()
	if p.state == pipelineBroken {
		p.mu.Unlock()
		_ = conn.Close() //nolint:errcheck // nothing was entrusted to it
		return
	}
	p.Conn, p.state = conn, pipelineOpen
	p.health.connected()
	p.flow.begins()
	p.mu.Unlock()
	p.workers.Go(p.writes)
	p.sending.wake <- struct{}{}
	p.reads()
}

// submit sends a command, now or as soon as there is a connection. The command is notified of what becomes of
// it, which may be before submit returns.
func (p *pipeline) submit(c *command) error {
	p.mu.Lock()
	if err := p.refusal(); err != nil {
		p.mu.Unlock()
		return err
	}
	writer, reads := p.enter(c)
	switch {
	case writer == byItself && c.then != nil: // it must not wait
		writer = byWriter
	case writer == byItself && p.queue.len() >= gathersFrom:
		writer = p.gathers()
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

// enter queues a command, and decides which goroutine writes it, and whether its caller reads the reply. The
// mutex is held.
func (p *pipeline) enter(c *command) (writer sender, reads bool) {
	before := len(p.sending.buf)
	if c.asking {
		p.sending.buf = append(p.sending.buf, "*1\r\n$6\r\nASKING\r\n"...)
		p.queue.push(internal(func() {}))
		p.flow.enters(p.queue.len())
	}
	p.sending.buf = appendCommand(p.sending.buf, c.given)
	c.size = int32(len(p.sending.buf) - before) // what is larger Redis refuses
	p.queue.push(c)
	p.flow.enters(p.queue.len())
	alone := p.queue.len() == 1
	if alone {
		p.receiving.alone++
	} else {
		p.receiving.alone = 0
	}
	p.watch() // before it may be kept by a write
	writer = p.takeSending()
	return writer, p.takeReading(writer == byItself && alone && c.then == nil && !c.company)
}

// opened reports whether there is a connection.
func (p *pipeline) opened() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == pipelineOpen
}

// reason is why the pipeline has ended.
func (p *pipeline) reason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

// refusal is why the pipeline takes nothing; nil when it does. The mutex is held.
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

// fail ends the pipeline at once, and completes the commands that wait for it. The connection is closed in the
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

// recall takes back the commands of a pipeline that is being connected, which goes on. It ends an open one.
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
		c.complete(nil, unsent(err))
	}
}

// prepares reports whether the pipeline is being connected, and what the caller has given, such as OnConnect, takes
// the time: no answer of Redis is awaited.
func (p *pipeline) prepares() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == pipelineConnecting && p.progress.until.Load() == nil
}

// retire has the pipeline take nothing more, and reports whether it may be closed: not while
// there are commands without an answer.
func (p *pipeline) retire() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.len() > 0 {
		return false
	}
	_, _ = p.breakOff(errPipelineClosed) //nolint:errcheck // no command waits for it
	return true
}

// breakOff breaks the pipeline; left are to be notified of why. The mutex is held.
func (p *pipeline) breakOff(err error) (left []*command, why error) {
	if p.state == pipelineBroken {
		return nil, p.why
	}
	if p.state == pipelineConnecting {
		err = unsent(err)
	} else {
		err = lost(err)
		p.workers.Go(func() { _ = p.Conn.Close() }) //nolint:errcheck // TLS sends a last record, which may take long
	}
	p.state, p.why = pipelineBroken, err
	p.flow.ended.Store(true)
	p.sending.buf = nil // the connection may be open for a while
	return p.queue.pop(nil, p.queue.len()), err
}

// drop ends the pipeline for a reason, and waits for its goroutines.
func (p *pipeline) drop(why error) {
	p.fail(why)
	p.workers.Wait()
}

// sending is what is to be written, and whether a goroutine does. Guarded by the pipeline's
// mutex.
type sending struct {
	buf, spare []byte
	busy       bool
	wake       chan struct{} // of the writer
}

// sender says which goroutine writes a command.
type sender uint8

const (
	byAnother sender = iota // the one that writes already, or the writer after it
	byWriter                // the writer; it is to be woken
	byItself                // its caller
)

// takeSending decides which goroutine writes what was submitted. The mutex is held.
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

// gathers has the caller that is to write let others go first, and decides again: they may
// have added much. The mutex is held, but not in between.
func (p *pipeline) gathers() sender {
	p.mu.Unlock()
	runtime.Gosched()
	p.mu.Lock()
	if p.queue.bytes > roomy {
		return byWriter
	}
	return byItself
}

// takeOut takes what is to be written. The mutex is held.
func (p *pipeline) takeOut() []byte {
	out := p.sending.buf
	p.sending.buf, p.sending.spare = p.sending.spare[:0], nil
	return out
}

// write writes, if there is anything, and reports whether there is more.
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

// largeBuffer is not kept.
const largeBuffer = 1 << 20

// writes is the writer. It first lets other goroutines add their commands.
func (p *pipeline) writes() {
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

// timedOut reports whether an error is that of a deadline.
func timedOut(err error) bool {
	timeout, is := errors.AsType[net.Error](err)
	return is && timeout.Timeout()
}

// receiving says which goroutine reads, guarded by the pipeline's mutex, and has what was read, which
// belongs to the goroutine that reads.
//
//	nobody -> caller  a command is alone, and so were those before it
//	caller -> nobody  it has its reply
//	caller -> reader  there are others, or the reply takes long
//	nobody -> reader  a command is not alone, or there was none for a moment
//	reader -> nobody  commands were alone for a while
type receiving struct {
	by    receiver
	alone int           // how many commands in a row were
	wake  chan struct{} // of the reader
	limit time.Time     // of the caller that reads, as the connection knows it

	in     []byte // from the first byte that the parser needs
	parser parser
}

type receiver uint8

const (
	byReader receiver = iota
	byCaller
	byNobody
)

// takeReading decides which goroutine reads when none does: the caller if its command is alone and Redis
// near, otherwise the reader. The mutex is held.
func (p *pipeline) takeReading(alone bool) (caller bool) {
	if p.receiving.by != byNobody {
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

// readFor reads until c has its reply, for a moment at most.
func (p *pipeline) readFor(c *command) {
	now := time.Now()
	if p.receiving.limit.Sub(now) < patience {
		p.receiving.limit = now.Add(2 * patience)
		if err := p.Conn.SetReadDeadline(p.receiving.limit); err != nil {
			p.fail(err)
			return
		}
	}
	for !c.over() {
		if err := p.read(); err != nil {
			if !timedOut(err) {
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
	p.receiving.by = byNobody
}

// reads is the reader.
func (p *pipeline) reads() {
	for {
		err := p.read()
		if err != nil {
			p.fail(err)
			return
		}
		for p.leavesReading() {
			if !p.rests() {
				return
			}
		}
	}
}

// leavesReading reports whether the reader has left the reading to callers that are alone.
func (p *pipeline) leavesReading() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.len() == 0 && p.receiving.alone >= readsAfter {
		p.receiving.by, p.receiving.alone = byNobody, 0
		return true
	}
	return false
}

// rests waits until the reader has to read again; false when the pipeline ends.
func (p *pipeline) rests() bool {
	timer := time.NewTimer(unread)
	defer timer.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return false
		case <-p.receiving.wake:
		case <-timer.C:
			if !p.resumes() {
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

// resumes has the reader read when there was no command for a moment.
func (p *pipeline) resumes() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.receiving.by != byNobody || p.receiving.alone > 0 {
		p.receiving.alone = 0
		return false
	}
	p.receiving.by = byReader
	return true
}

// read reads what has come, and completes the commands that it answers.
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

// take completes the commands whose replies are there.
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

// answers gives replies to the commands at the front of the queue.
func (p *pipeline) answers(now time.Time, replies []any) error {
	var room [64]*command
	p.mu.Lock()
	if len(replies) > p.queue.len() {
		p.mu.Unlock()
		return fmt.Errorf("%w: a reply to no command", errGarbled)
	}
	cmds := p.queue.pop(room[:0], len(replies))
	if len(cmds) > 0 {
		p.flow.heard(now, len(cmds))
		p.health.answered()
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

// look notifies the commands that have become slow, and reports whether any are under way, and
// for how long nothing has come.
func (p *pipeline) look(now time.Time) (busy bool, quiet time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &p.flow
	patient := f.patient()
	for ; f.slow < p.queue.len() && now.Sub(p.queue.at(f.slow).at) >= patient; f.slow++ {
		p.queue.at(f.slow).slow()
	}
	f.awake(now)
	if busy = p.queue.len() > 0; busy {
		quiet = now.Sub(f.quiet)
	}
	return busy, quiet
}

// sendElsewhere has the callers that wait on a connection that hangs send again, once. Their
// answers may come later nonetheless. The first one waits longer, for a quarter of the timeout:
// its command may be the one that takes long.
func (p *pipeline) sendElsewhere(quiet, timeout time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, stuck := 1, min(p.flow.stuck(), timeout)
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

// queue has what is under way on a pipeline, in order: a ring that grows.
type queue struct {
	ring  []*command
	first int
	n     int
	bytes int // of all of them, as they are sent
}

func (q *queue) len() int { return q.n }

// at is the i-th from the front.
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

// pop takes n from the front and appends them to into.
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
