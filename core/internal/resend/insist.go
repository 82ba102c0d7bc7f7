package resend

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// Result describes how an operation of a holder ended.
type Result[T any] struct {
	Answer T
	Sent   time.Time // time of the answered send, or else of the last send
	Doubt  bool      // a send got no answer: Redis may have executed it, or may execute it later
	First  time.Time // time of the first send that Redis may have executed
}

// record records a send. fate is [wire.Unknown] if the send was not answered.
func (r *Result[T]) record(sent time.Time, fate wire.Fate, err error) {
	r.Sent = sent
	unknown := fate == wire.Unknown
	if !r.Doubt && (unknown || err == nil) {
		r.First = sent
	}
	r.Doubt = r.Doubt || unknown
}

// Operation is a script of a holder that Redis may execute more than once without harm.
type Operation[T any] struct {
	Key        string
	Span       Span
	AcceptLate func(T) bool // reports whether a late answer to an earlier send may be used; nil: always
	Subject    Subject
}

// Subject is notified of the fate of each send of an operation. It is the holder.
type Subject interface {
	RecordNoAnswer() // a send got no answer
	RecordAnswer()   // a send was answered in time
}

// Insist sends the command of an operation until Redis answers, ctx is done, or a time limit of the operation has passed.
// prepare builds the command of one send. It is a parameter and not a field of [Operation] to avoid an allocation.
func Insist[T any](ctx context.Context, s *Sender, op Operation[T], prepare func(now time.Time) redisstore.Call[T]) (Result[T], error) {
	var got Result[T]
	pending := pendingSends[T]{acceptLate: op.AcceptLate}
	loop := Loop{Sender: s, Key: op.Key, Span: op.Span, Pauser: holderSleeper{}}
	err := loop.Run(ctx, func() (time.Time, bool, error) {
		call := prepare(time.Now())
		answer, fate, err := call.Wait(ctx, op.Span.Limit(s, call.Sent))
		got.Answer = answer
		got.record(call.Sent, fate, err)
		if fate == wire.Unknown {
			op.Subject.RecordNoAnswer()
			pending.calls = append(pending.calls, call)
			err = pending.takeLate(&got, err)
		}
		switch {
		case err == nil:
			op.Subject.RecordAnswer()
			return got.Sent, false, nil
		case ctx.Err() != nil:
			return got.Sent, false, failure.BecauseOf(failure.Ended(ctx))
		case !wire.Transient(err), errors.Is(err, wire.ErrSilent):
			return got.Sent, false, failure.BecauseOf(loop.Cause(err))
		default:
			return got.Sent, true, err
		}
	})
	err = pending.takeLate(&got, err)
	return got, err
}

// pendingSends contains the sends of an operation that got no answer in time, because their connections hang or are
// slow.
type pendingSends[T any] struct {
	calls      []redisstore.Call[T]
	acceptLate func(T) bool
}

// takeLate looks for a late answer after the error err. If an earlier send was answered in between, takeLate records that
// answer and returns nil. Otherwise it returns err. If Redis is slow, all answers may be late.
func (u *pendingSends[T]) takeLate(got *Result[T], err error) error {
	if err == nil {
		return nil
	}
	for i := range u.calls {
		if answer, _, late := u.calls[i].Late(); late == nil && (u.acceptLate == nil || u.acceptLate(answer)) {
			got.Answer, got.Sent = answer, u.calls[i].Sent
			return nil
		}
	}
	return err
}

// WaitOut sends a command. While Redis refuses it for a reason that passes by itself, WaitOut sends it again, up to
// the backend timeout.
func WaitOut[T any](ctx context.Context, s *Sender, key string, prepare func(now time.Time) redisstore.Call[T]) (answer T, err error) {
	span := s.Operation(time.Now())
	loop := Loop{Sender: s, Key: key, Span: span, Pauser: Sleeper{}}
	err = loop.Run(ctx, func() (_ time.Time, again bool, err error) {
		call := prepare(time.Now())
		answer, _, err = call.Wait(ctx, span.Limit(s, call.Sent))
		return call.Sent, wire.Passes(err), err
	})
	return answer, failure.BecauseOf(err)
}
