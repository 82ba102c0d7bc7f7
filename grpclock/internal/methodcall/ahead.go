package methodcall

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// The most bytes of messages that a stream, and all streams of a guard together, hold while they wait.
const (
	maxWaitingStream  = 1 << 20
	maxWaitingStreams = 64 << 20
)

var (
	errTooLargeToWait = fmt.Errorf("the messages of the stream have more than %d MiB and would occupy the connection during the wait", maxWaitingStream>>20)
	errNoRoom         = fmt.Errorf("%w: the messages of waiting streams have %d MiB", core.ErrTooManyWaiters, maxWaitingStreams>>20)
)

// aheadStream is a stream whose messages a goroutine receives while the call waits for a lock. Unreceived messages
// would occupy the window of the HTTP/2 connection, and another call of the connection, which may have the lock,
// could not send its own. A stream that sends more than the limits does not wait: the end of its call gives the
// window back.
type aheadStream struct {
	Messages
	method    *methodrules.Method
	methods   *methodrules.Methods
	translate func(error) error
	done      chan struct{} // closed when the goroutine returns; nil before it starts

	mu       sync.Mutex
	received []proto.Message
	last     receiveResult // the receive that failed
	size     int64
	held     int64              // the part of size that counts for the guard
	stopped  bool               // the handler receives the rest
	refused  error              // why the wait ended, nil if it did not
	end      func(reason error) // ends the current wait; nil if there is none
}

// start begins to receive.
func (s *aheadStream) start() {
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		for s.receiveOne() {
		}
	}()
}

// receiveOne receives a message. It reports whether to go on.
func (s *aheadStream) receiveOne() bool {
	m := s.method.NewRequest()
	result := make(chan receiveResult, 1)
	receive(s.Messages, m, result)
	r := <-result
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.err != nil || r.panicked {
		s.last = r
		return false
	}
	s.received = append(s.received, m)
	if s.stopped {
		return false
	}
	n := int64(proto.Size(m))
	s.size += n
	s.held += n
	switch {
	case s.methods.Waiting.Add(n) > maxWaitingStreams:
		s.refuse(errNoRoom)
	case s.size > maxWaitingStream:
		s.refuse(errTooLargeToWait)
	}
	return s.refused == nil
}

// refuse ends the wait.
func (s *aheadStream) refuse(reason error) {
	if s.refused = reason; s.end != nil {
		s.end(reason)
	}
}

// stop makes the goroutine return after its current receive.
func (s *aheadStream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.methods.Waiting.Add(-s.held)
	s.held = 0
}

// Receive returns first the messages that were received during the wait, and after that the following messages.
func (s *aheadStream) Receive(m any) error {
	if s.done == nil {
		return s.Messages.Receive(m)
	}
	s.stop()
	if ahead := s.take(); ahead != nil {
		return s.translate(copyMessage(m, ahead))
	}
	<-s.done // the last receive of the goroutine
	if ahead := s.take(); ahead != nil {
		return s.translate(copyMessage(m, ahead))
	}
	switch {
	case s.last.panicked:
		panic(s.last.value)
	case s.last.err != nil:
		return s.last.err
	default:
		return s.Messages.Receive(m)
	}
}

// take returns the next message that was received during the wait, nil if there is none.
func (s *aheadStream) take() (m proto.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.received) > 0 {
		m, s.received[0] = s.received[0], nil
		s.received = s.received[1:]
	}
	return m
}

// BeforeWait implements an optional method of [aspect.Call].
func (c *stream) BeforeWait() (prepare func(ctx context.Context) error) {
	if c.ahead == nil {
		return nil
	}
	return func(context.Context) error {
		c.ahead.start()
		return nil
	}
}

// EndWait implements an optional method of [aspect.Call].
func (c *stream) EndWait(end func(reason error)) bool {
	if c.ahead == nil {
		return false
	}
	c.ahead.mu.Lock()
	defer c.ahead.mu.Unlock()
	if c.ahead.end = end; c.ahead.refused != nil {
		end(c.ahead.refused)
	}
	return true
}

// AnswerBy implements an optional method of [aspect.Call]. A stream that has sent too much has no time to wait.
func (c *stream) AnswerBy() (by time.Time) {
	if c.ahead == nil {
		return by
	}
	c.ahead.mu.Lock()
	defer c.ahead.mu.Unlock()
	if c.ahead.refused != nil {
		by = time.Now()
	}
	return by
}
