// Package resend sends the command of one operation, and sends it again while that may help: until Redis answers,
// the time of the operation has ended, or another send cannot change anything.
//
// It knows commands, their fates and time limits. It knows nothing of locks: what a command does, and whether a
// second execution does harm, its caller knows. Packages acquire, holding and core send through it.
package resend

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// Sender is what the operations of one client share.
type Sender struct {
	Timeout time.Duration               // the backend timeout: for so long Redis may say nothing at all
	Closing <-chan struct{}             // closed when the client is being closed
	GaveUp  func(key string, err error) // is called when Redis has said nothing until an operation ended
}

// The pauses between two sends of one operation: the first one, doubled each time up to the longest.
const (
	FirstPause   = 5 * time.Millisecond
	longestPause = 250 * time.Millisecond
)

// NextPause returns the pause after a pause.
func NextPause(pause time.Duration) time.Duration { return min(2*pause, longestPause) }

// ErrRefused marks an error that is an answer of a Redis that is there: it has refused the lock, and is asked
// again. Such an error sets the backend timeout back.
const ErrRefused = failure.Text("an acquire of another call without an answer has the lock and is being cleared up")

// Loop sends the command of one operation, and sends it again. A Loop is for one operation, and for one goroutine.
type Loop struct {
	Sender *Sender
	Key    string
	Span   Span
	Pauser Pauser

	Earlier error     // the result of an earlier send; nil: there was none, or it was answered
	AtLeast time.Time // silence does not end the loop before this time; send may set it

	silence time.Time // the end of the backend timeout since Redis last answered; zero: it has just answered
}

// Pauser pauses before the next send. Its error ends the loop.
type Pauser interface {
	Pause(ctx context.Context, pause time.Duration) error
}

// Run calls send until it returns no error, or an error that another send does not help against, or until the
// time has ended. send returns when it has sent, and whether it may be called again.
func (l *Loop) Run(ctx context.Context, send func() (sent time.Time, again bool, err error)) error {
	for pause := FirstPause; ; pause = NextPause(pause) {
		sent, again, err := send()
		if !again {
			return err
		}
		if l.silence.IsZero() {
			l.silence = sent.Add(l.Sender.Timeout)
		}
		last, ends := l.Span.last(err, Latest(l.silence, l.AtLeast))
		if ends && time.Now().Add(pause).After(last) {
			return l.Sender.Concede(ctx, l.Key, last, l.Cause(err))
		}
		l.note(err)
		if err := l.Pauser.Pause(ctx, pause); err != nil {
			return err
		}
	}
}

// note remembers why a command is sent again.
func (l *Loop) note(err error) {
	switch {
	case wire.Passes(err), errors.Is(err, ErrRefused):
		l.silence, l.Earlier = time.Time{}, err
	case l.Earlier == nil:
		l.Earlier = err
	}
}

// Cause adds the answer to an earlier send, such as READONLY, to the error of the last send. That the last one
// got no answer in time says less.
func (l *Loop) Cause(err error) error {
	if l.Earlier == nil || wire.Answer(err) || !saysMore(l.Earlier, err.Error()) {
		return err
	}
	return wire.AfterEarlier(err, l.Earlier)
}

// saysMore reports whether a cause at the bottom of err is missing in the text.
func saysMore(err error, text string) bool {
	switch e := err.(type) { //nolint:errorlint // it walks through all
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), func(cause error) bool { return saysMore(cause, text) })
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			return saysMore(cause, text)
		}
	}
	return !strings.Contains(text, err.Error())
}

// Concede ends an operation that was tried up to last, because it is too late for another try. If Redis has said
// nothing at all, it reports the node, so that other operations do not try in turn.
func (s *Sender) Concede(ctx context.Context, key string, last time.Time, err error) error {
	if errors.Is(err, wire.ErrSilent) || wire.Answer(err) {
		return failure.BecauseOf(err)
	}
	timer := time.NewTimer(time.Until(last))
	defer timer.Stop()
	select {
	case <-timer.C:
		s.GaveUp(key, err)
	case <-ctx.Done():
	case <-s.Closing:
	}
	return failure.BecauseOf(err)
}

// Sleeper is a Pauser that sleeps until the pause or the context ends. It returns the error of the context.
type Sleeper struct{}

// Pause sleeps.
func (Sleeper) Pause(ctx context.Context, pause time.Duration) error { return jitter.Sleep(ctx, pause) }

// holderSleeper is a Sleeper that returns the outcome of an operation on a lock that is held.
type holderSleeper struct{}

func (holderSleeper) Pause(ctx context.Context, pause time.Duration) error {
	if jitter.Sleep(ctx, pause) != nil {
		return failure.BecauseOf(failure.Ended(ctx))
	}
	return nil
}
