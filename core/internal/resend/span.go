package resend

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// Span contains the time limits of an operation. A zero time sets no limit, so the zero Span lasts as long as the
// context.
//
// An operation on a held lock, such as a release, has six time limits. The earliest limit wins. For an
// error that passes by itself, only Passing and the context count:
//
//	limit                             what it bounds                                who sets it
//	one call: 8 backend timeouts      a single send, from a Redis that answers      Sender.CallLimit
//	Span.Answers: 8 backend timeouts  the answers to all sends together             Sender.Operation
//	Span.End                          everything                                    the caller: its wait time; or, after
//	                                                                                a wait for the turn of an operation,
//	                                                                                the rest of one backend timeout
//	Span.Passing: 1 backend timeout   errors that pass by themselves (LOADING, …)   Sender.Operation
//	silence: 1 backend timeout        a Redis that has sent nothing at all          Loop
//	the context                       everything                                    the caller; a release has none
type Span struct {
	End     time.Time // end of the operation
	Passing time.Time // until when the operation waits out errors that pass by themselves; zero: until the context is done
	Answers time.Time // until when the operation waits for answers, in all sends together
}

// callTimeouts is how many backend timeouts a command may take from a Redis that answers: it may need a
// connection, with up to four round trips, and wait for the answers to commands before it.
const callTimeouts = 8

// CallLimit returns the time limit of a command that is sent now, if Redis answers. A silent Redis is detected
// elsewhere, which ends the command earlier.
func (s *Sender) CallLimit(now time.Time) time.Time { return now.Add(callTimeouts * s.Timeout) }

// DetectLimit returns the time limit for reaching a Cluster for the first time, which takes several connections and
// commands, one after the other.
func (s *Sender) DetectLimit(now time.Time) time.Time { return now.Add(4 * callTimeouts * s.Timeout) }

// Operation returns the span of an operation without a wait time. It lasts as long as Redis answers, within the
// limits for errors that pass and for slow answers.
func (s *Sender) Operation(now time.Time) Span {
	return Span{Passing: now.Add(s.Timeout), Answers: s.CallLimit(now)}
}

// Limit returns the time limit of a command that is sent now.
func (p Span) Limit(s *Sender, now time.Time) time.Time {
	return Earliest(s.CallLimit(now), p.End, p.Answers)
}

// lastSend returns the time after which a command that failed with err is not sent again. silence is the end of the backend
// timeout. ends is false if no such time exists.
func (p Span) lastSend(err error, silence time.Time) (last time.Time, ends bool) {
	if wire.Passes(err) {
		return p.Passing, !p.Passing.IsZero()
	}
	return Earliest(silence, p.End), true
}

// Earliest returns the earliest of the times that are not zero.
func Earliest(times ...time.Time) (earliest time.Time) {
	for _, t := range times {
		if earliest.IsZero() || !t.IsZero() && t.Before(earliest) {
			earliest = t
		}
	}
	return earliest
}

// Latest returns the later of two times.
func Latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
