package methodcall

import (
	"context"
	"errors"
	"sync"

	"github.com/interlock-go/interlock/core"
)

// lockedStream is the stream of a handler that runs with a lock. It fails after the lock is lost. It
// continues to work after the handler has released the lock early.
type lockedStream struct {
	Messages
	ctx       context.Context //nolint:containedctx // the handler's: carries the lock and is canceled with it
	onLoss    func(cause error) error
	translate func(error) error

	mu   sync.Mutex
	loss error // the error of the first operation after the loss
}

// Send sends a message. It fails if the lock is lost.
func (s *lockedStream) Send(m any) error {
	if err := s.checkLoss(); err != nil {
		return err
	}
	return s.Messages.Send(m)
}

// Receive receives a message. It fails as soon as the lock is lost. It receives into a new message and
// copies it to m, because the receive may still be running after Receive has returned.
func (s *lockedStream) Receive(m any) error {
	if err := s.checkLoss(); err != nil {
		return err
	}
	fresh := newLike(m)
	if fresh == nil {
		return s.Messages.Receive(m)
	}
	done := make(chan receiveResult, 1)
	go receive(s.Messages, fresh, done)
	r, ok := s.await(done)
	if err := s.checkLoss(); err != nil {
		return err
	}
	if !ok {
		r = <-done // ctx is done for another reason than a loss: the receive determines the result
	}
	if r.panicked {
		panic(r.value)
	}
	if r.err != nil {
		return r.err
	}
	return s.translate(copyMessage(m, fresh))
}

// await waits until the message arrives or the context is done.
func (s *lockedStream) await(done <-chan receiveResult) (r receiveResult, ok bool) {
	select {
	case r = <-done:
		return r, true
	case <-s.ctx.Done():
		return receiveResult{}, false
	}
}

// checkLoss returns the error of the stream if the lock is lost, otherwise nil.
func (s *lockedStream) checkLoss() error {
	if s.ctx.Err() == nil { // before Cause, because Err also checks the time
		return nil
	}
	cause := context.Cause(s.ctx)
	if !errors.Is(cause, core.ErrLost) && !errors.Is(cause, core.ErrClosed) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loss == nil {
		s.loss = s.onLoss(cause)
	}
	return s.loss
}

// reportedLoss returns the error that an operation returned because of a loss, or nil.
func (s *lockedStream) reportedLoss() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loss
}

// receiveResult is the result of one receive.
type receiveResult struct {
	err      error
	panicked bool
	value    any // the value of the panic
}

// receive receives one message. It returns when the call ends, if not before. It passes a panic to the
// goroutine of the handler, which has the recovery.
func receive(stream Messages, m any, done chan<- receiveResult) {
	r := receiveResult{panicked: true}
	defer func() {
		if r.panicked {
			r.value = recover()
		}
		done <- r
	}()
	r.err = stream.Receive(m)
	r.panicked = false
}
