package redisstore

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// pipeline is one connection to a node, on which many calls travel at the same time, in
// order: none waits for the reply of another.
//
//	connecting -> open    the connection is there: what was submitted is written
//	connecting -> broken  there is none
//	open       -> broken  it has ended, said what is no reply, or is not wanted any more
//
// run and breakOff change it. Who writes and who reads is decided by how many calls are under
// way. A few: the caller writes, and its own goroutine reads when it was alone for a while,
// which spares the changes of goroutine. Several: it first lets others add theirs. Many: the
// writer collects what all that can run have to say. The reader takes the replies.
type pipeline struct {
	connection
	sending   sending
	receiving receiving
	flow      flow

	mu     sync.Mutex
	state  pipelineState
	why    error // of a broken one
	queue  queue // what was submitted and has no reply
	bound  int   // of the queue
	worker sync.WaitGroup

	watch func() // has somebody look at the queue until it is empty
}

type pipelineState uint8

const (
	pipelineConnecting pipelineState = iota
	pipelineOpen
	pipelineBroken
)

// connection is how a pipeline gets its connection, and the connection.
type connection struct {
	net.Conn

	dial dialFunc
	born time.Time
	life context.Context //nolint:containedctx // of the pipeline's goroutines
	end  context.CancelFunc
}

// start begins its life.
func (p *pipeline) start() {
	p.born = time.Now()
	p.life, p.end = context.WithCancel(context.Background()) //nolint:forbidigo // its own lifetime
	p.sending.wake, p.receiving.wake = make(chan struct{}, 1), make(chan struct{}, 1)
	p.sending.busy = true // until there is a connection
	p.worker.Go(p.run)
}

// run is the life of the pipeline.
func (p *pipeline) run() {
	conn, err := p.dial(p.life)
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
	p.flow.begins()
	p.mu.Unlock()
	p.worker.Go(p.writes)
	p.sending.wake <- struct{}{}
	p.reads()
}

// unsent is the error of a call for which there is no connection. What Redis has answered
// to the introduction is an answer.
func unsent(err error) error {
	if fateOf(err) == Answered {
		return err
	}
	return &unsentError{err}
}

// submit sends a command, now or as soon as there is a connection. What becomes of it the
// command is notified of, which may be before submit returns.
func (p *pipeline) submit(c *command) error {
	p.mu.Lock()
	if err := p.refusal(); err != nil {
		p.mu.Unlock()
		return err
	}
	writer, reads := p.enter(c)
	if writer == byItself && p.queue.len() >= gathersFrom {
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

// enter queues a command, and decides who writes it, and whether its caller reads the reply.
// The mutex is held.
func (p *pipeline) enter(c *command) (writer sender, reads bool) {
	before := len(p.sending.buf)
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
	return writer, p.takeReading(writer == byItself && alone)
}

// opened reports whether there is a connection.
func (p *pipeline) opened() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == pipelineOpen
}

// refusal is why the pipeline takes nothing; nil when it does. The mutex is held.
func (p *pipeline) refusal() error {
	switch {
	case p.state != pipelineBroken && p.queue.len() < p.bound:
		return nil
	case p.state != pipelineBroken:
		return redis.ErrAutoPipelineQueueFull
	case fateOf(p.why) == Unknown:
		return &unsentError{p.why}
	}
	return p.why
}

// fail ends the pipeline, and all that wait for it: at once, while the connection is closed in
// the background.
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

// retire has the pipeline take nothing more, and reports whether it may be closed: not while
// there are calls without an answer.
func (p *pipeline) retire() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.len() > 0 {
		return false
	}
	_, _ = p.breakOff(errPipelineClosed) //nolint:errcheck // nobody waits for it
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
		p.worker.Go(p.hangUp) // run goes on until it is broken
	}
	p.state, p.why = pipelineBroken, err
	p.flow.ended.Store(true)
	p.sending.buf = nil // the connection may be open for a while
	return p.queue.pop(nil, p.queue.len()), err
}

// hangUp closes the connection, which may take long: TLS has a last word to say.
func (p *pipeline) hangUp() { _ = p.Conn.Close() } //nolint:errcheck // it is of no use any more

// close ends the pipeline, for a reason, and waits for its goroutines.
func (p *pipeline) close(why error) {
	p.fail(why)
	p.worker.Wait()
}

// errPipelineClosed ends what has no answer when a pipeline is closed.
var errPipelineClosed = errors.New("the connection was closed before the answer")
