package methodcall

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// lockedStream is the stream of a handler that runs with a lock. When the lock is
// lost it fails; when the handler released it early, it works on.
type lockedStream struct {
	Messages
	ctx    context.Context //nolint:containedctx // of the handler: carries the lock and ends with it
	fail   func(cause error) error
	worded func(error) error

	mu      sync.Mutex
	failure error // what an operation failed with after the loss
}

// Send sends, unless the lock is lost.
func (s *lockedStream) Send(m any) error {
	if err := s.lost(); err != nil {
		return err
	}
	return s.Messages.Send(m)
}

// Receive receives until the lock is lost. The message is received into a twin of m,
// because a receive that is left behind may still end later.
func (s *lockedStream) Receive(m any) error {
	if err := s.lost(); err != nil {
		return err
	}
	fresh := twin(m)
	if fresh == nil {
		return s.Messages.Receive(m)
	}
	done := make(chan received, 1)
	go receive(s.Messages, fresh, done)
	r, ok := s.await(done)
	if err := s.lost(); err != nil {
		return err
	}
	if !ok {
		r = <-done // the lock was released, or the caller is gone: the stream decides
	}
	if r.panicked {
		panic(r.value)
	}
	if r.err != nil {
		return r.err
	}
	return s.worded(assign(m, fresh))
}

// await waits for the message or the end of the context.
func (s *lockedStream) await(done <-chan received) (r received, ok bool) {
	select {
	case r = <-done:
		return r, true
	case <-s.ctx.Done():
		return received{}, false
	}
}

// lost is the failure of a stream whose lock is lost, else nil.
func (s *lockedStream) lost() error {
	if s.ctx.Err() == nil { // first: it looks at the clock
		return nil
	}
	cause := context.Cause(s.ctx)
	if !errors.Is(cause, core.ErrLost) && !errors.Is(cause, core.ErrClosed) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = s.fail(cause)
	}
	return s.failure
}

// failed is what an operation has failed with, nil if none has.
func (s *lockedStream) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// received is how one receive ended.
type received struct {
	err      error
	panicked bool
	value    any // of the panic
}

// receive receives one message. It ends with the call at the latest. A panic is
// carried over to the handler's goroutine, where the recovery is.
func receive(stream Messages, m any, done chan<- received) {
	r := received{panicked: true}
	defer func() {
		if r.panicked {
			r.value = recover()
		}
		done <- r
	}()
	r.err = stream.Receive(m)
	r.panicked = false
}

// lossOf describes a loss while the handler still runs. With several rules it is
// the loss of the last one with a lock; the answer to the caller is exact.
func lossOf(point *aspect.Point, cause error) *aspect.RefusedError {
	rule := lastInForce(point.Rules())
	lost := aspect.Outcome{
		Verdict: aspect.VerdictLost, Cause: failpolicy.Lost, Rule: rule, Status: rule.Status.Status(failpolicy.Lost), Reason: cause,
	}
	return lost.Refusal()
}

// lastInForce is the last rule that takes a lock; without one the last of all.
func lastInForce(rules []*ruleset.Resolved) *ruleset.Resolved {
	for _, r := range slices.Backward(rules) {
		if !r.Disabled && !r.DryRun {
			return r
		}
	}
	return rules[len(rules)-1]
}
