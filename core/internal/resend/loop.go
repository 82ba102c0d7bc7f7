// Package resend sends the command of one operation and sends it again while that may help: until Redis answers, the
// time limit of the operation has passed, or another send cannot change anything.
//
// It deals with commands, their fates and time limits. It does not depend on locks: its callers are responsible for the
// effect of a command and of a second execution. Packages acquire, counting, holding and core send through it.
package resend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// Sender contains what the operations of one client share.
type Sender struct {
	Timeout       time.Duration               // the backend timeout: how long Redis may be silent
	Closing       <-chan struct{}             // closed when the client begins to close
	Ended         <-chan struct{}             // closed when the client stops its work: nothing is sent again
	ReportSilence func(key string, err error) // called when an operation ends because Redis was silent
}

// The first pause between two sends of one operation, and the longest. Each pause is twice as long as the one before.
const (
	FirstPause   = 5 * time.Millisecond
	longestPause = 250 * time.Millisecond
)

// NextPause returns the pause that follows a pause.
func NextPause(pause time.Duration) time.Duration { return min(2*pause, longestPause) }

// ErrRefused means that Redis refused the lock, and that the operation asks again. The backend timeout starts again,
// because Redis answered.
const ErrRefused = failure.Text("an acquire of another call without an answer has the lock and is being cleared up")

// Loop sends the command of one operation, and sends it again if necessary. Each operation needs a new Loop. Only one
// goroutine may use it.
type Loop struct {
	Sender *Sender
	Key    string
	Span   Span
	Pauser Pauser

	Earlier   error     // the error of an earlier send; nil: none
	NotBefore time.Time // silence does not end the loop before this time; send may set it

	silence time.Time // the end of the backend timeout since the last answer; zero: Redis has just answered
}

// Pauser pauses before the next send. Its error ends the loop.
type Pauser interface {
	Pause(ctx context.Context, pause time.Duration) error
}

// Run calls send until it succeeds, until another send would not help, or until the time limit has passed. send returns
// the time at which it sent, and whether another send may help.
func (l *Loop) Run(ctx context.Context, send func() (sent time.Time, again bool, err error)) error {
	for pause := FirstPause; ; pause = NextPause(pause) {
		sent, again, err := send()
		if !again {
			return err
		}
		select {
		case <-l.Sender.Ended:
			return fmt.Errorf("%w: %w", failure.Closed, l.Cause(err))
		default:
		}
		if l.silence.IsZero() {
			l.silence = sent.Add(l.Sender.Timeout)
		}
		last, ends := l.Span.lastSend(err, Latest(l.silence, l.NotBefore))
		if ends && time.Now().Add(pause).After(last) {
			return l.Sender.Concede(ctx, l.Key, last, l.Cause(err))
		}
		l.record(err)
		if err := l.Pauser.Pause(ctx, pause); err != nil {
			return err
		}
	}
}

// record records the error because of which a command is sent again.
func (l *Loop) record(err error) {
	switch {
	case wire.Passes(err), errors.Is(err, ErrRefused):
		l.silence, l.Earlier = time.Time{}, err
	case l.Earlier == nil:
		l.Earlier = err
	}
}

// Cause adds the error of an earlier send, such as READONLY, to err, the error of the last send. The last send may have
// failed only because no answer came in time.
func (l *Loop) Cause(err error) error {
	if l.Earlier == nil || wire.Answer(err) || !saysMore(l.Earlier, err.Error()) {
		return err
	}
	return wire.AfterEarlier(err, l.Earlier)
}

// saysMore reports whether text lacks one of the innermost causes of err.
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

// Concede ends an operation that has no time for another send before last, and returns its error. If Redis did not answer,
// Concede first waits until last and then calls ReportSilence, so that other operations do not wait for the node, too.
func (s *Sender) Concede(ctx context.Context, key string, last time.Time, err error) error {
	if errors.Is(err, wire.ErrSilent) || wire.Answer(err) {
		return failure.BecauseOf(err)
	}
	timer := time.NewTimer(time.Until(last))
	defer timer.Stop()
	select {
	case <-timer.C:
		s.ReportSilence(key, err)
	case <-ctx.Done():
	case <-s.Closing:
	}
	return failure.BecauseOf(err)
}

// Sleeper is a Pauser that sleeps for the pause, or until the context is done. It returns the error of the context.
type Sleeper struct{}

// Pause sleeps.
func (Sleeper) Pause(ctx context.Context, pause time.Duration) error { return jitter.Sleep(ctx, pause) }

// holderSleeper is a Sleeper that returns [failure.Unavailable] joined with the error of the context.
type holderSleeper struct{}

func (holderSleeper) Pause(ctx context.Context, pause time.Duration) error {
	if jitter.Sleep(ctx, pause) != nil {
		return failure.BecauseOf(failure.Ended(ctx))
	}
	return nil
}
