package core

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// resend is the loop in which an operation sends its command, and sends it again while that
// may help. Every operation that is sent more than once goes through it.
type resend struct {
	client *Client
	key    string
	span   span
	pauser pauser

	earlier error     // what an earlier send has come to; nil: there was none, or it was answered
	silence time.Time // the end of the backend timeout, since Redis was last there; zero: it was there just now
	atLeast time.Time // before that the loop does not end for silence; send may set it
}

// pauser pauses before the next send. Its error ends the loop.
type pauser interface {
	pause(ctx context.Context, pause time.Duration) error
}

// run calls send until that gives no error, or one that another send does not help against,
// or until the time is over. send says when it has sent, and whether it may be called again.
func (r *resend) run(ctx context.Context, send func() (sent time.Time, again bool, err error)) error {
	for pause := firstPause; ; pause = nextPause(pause) {
		sent, again, err := send()
		if !again {
			return err
		}
		if r.silence.IsZero() {
			r.silence = sent.Add(r.client.cfg.backendTimeout)
		}
		last, ends := r.span.last(err, maxTime(r.silence, r.atLeast))
		if ends && time.Now().Add(pause).After(last) {
			return r.client.concede(ctx, r.key, last, r.cause(err))
		}
		r.note(err)
		if err := r.pauser.pause(ctx, pause); err != nil {
			return err
		}
	}
}

// note remembers why a command is sent again. An answer that passes, or a refusal, says that Redis
// is there; how often it asks who was refused has an end of its own.
func (r *resend) note(err error) {
	switch {
	case wire.Passes(err), errors.Is(err, errBehind):
		r.silence, r.earlier = time.Time{}, err
	case r.earlier == nil:
		r.earlier = err
	}
}

// cause adds to the error of the last send what an earlier one was answered, such as
// READONLY: that the last one got no answer in time says less.
func (r *resend) cause(err error) error {
	if r.earlier == nil || wire.Answer(err) || !saysMore(r.earlier, err.Error()) {
		return err
	}
	return wire.AfterEarlier(err, r.earlier)
}

// saysMore reports whether a cause at the bottom of err is not in the text.
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

// concede ends an operation that has tried up to last, when it is too late to try again
// before that. Others are spared the same if Redis has said nothing all that time.
func (c *Client) concede(ctx context.Context, key string, last time.Time, err error) error {
	if errors.Is(err, wire.ErrSilent) || wire.Answer(err) {
		return unavailable(err)
	}
	timer := time.NewTimer(time.Until(last))
	defer timer.Stop()
	select {
	case <-timer.C:
		c.store.GaveUp(key, err)
	case <-ctx.Done():
	case <-c.closing:
	}
	return unavailable(err)
}

// result is what an operation of a holder has come to.
type result[T any] struct {
	answer T
	sent   time.Time // when the last send was made: that which was answered, if any was
	doubt  bool      // a send got no answer: it may have been executed, or still be
	first  time.Time // when the first send was made that may have been executed
}

// note takes in a send, and whether it was answered with a value, refused, or not answered.
func (r *result[T]) note(sent time.Time, fate wire.Fate, err error) {
	r.sent = sent
	unknown := fate == wire.Unknown
	if !r.doubt && (unknown || err == nil) {
		r.first = sent
	}
	r.doubt = r.doubt || unknown
}

// done reports whether an answer that the holder is not there means that an earlier send was
// executed. One that came after the end of the lease has found nothing.
func (r *result[T]) done(o *ownership) bool { return r.doubt && !o.lease.Expired(r.first) }

// insist sends a harmless script of a holder until it is answered, ctx ends, or its time is
// over. counts says which answers are taken that come late, to a send that was given up.
func insist[T any](ctx context.Context, o *ownership, s span, counts func(T) bool, prepare func(now time.Time) redisstore.Call[T]) (result[T], error) {
	c := o.client
	var got result[T]
	pending := unanswered[T]{counts: counts}
	r := resend{client: c, key: o.lease.Key, span: s, pauser: o}
	err := r.run(ctx, func() (time.Time, bool, error) {
		call := prepare(time.Now())
		answer, fate, err := call.Wait(ctx, s.limit(c, call.Sent))
		got.answer = answer
		got.note(call.Sent, fate, err)
		if fate == wire.Unknown {
			o.lease.Unanswered()
			pending.calls = append(pending.calls, call)
			err = pending.late(&got, err)
		}
		switch {
		case err == nil:
			o.operations.answered()
			return got.sent, false, nil
		case ctx.Err() != nil:
			return got.sent, false, unavailable(contextCause(ctx))
		case !wire.Transient(err), errors.Is(err, wire.ErrSilent):
			return got.sent, false, unavailable(r.cause(err))
		default:
			return got.sent, true, err
		}
	})
	err = pending.late(&got, err)
	return got, err
}

// unanswered are the sends of an operation that have had no answer in time: their
// connections hang, or are slow.
type unanswered[T any] struct {
	calls  []redisstore.Call[T]
	counts func(T) bool
}

// late looks, after an error, whether one of them has been answered meanwhile. Where every
// answer takes long there may never be another one.
func (u *unanswered[T]) late(got *result[T], err error) error {
	if err == nil {
		return nil
	}
	for i := range u.calls {
		if answer, _, late := u.calls[i].Late(); late == nil && u.counts(answer) {
			got.answer, got.sent = answer, u.calls[i].Sent
			return nil
		}
	}
	return err
}

// anyLate takes every late answer: whether the holder is there is the same for all sends.
func anyLate[T any](T) bool { return true }

// passedLate and freedLate take only the good one. That the holder is not there may be what
// another send of the same operation has done.
func passedLate(c redisstore.Change) bool  { return c.Mine }
func freedLate(r redisstore.Released) bool { return r.Mine }

// waitOut sends a command. While Redis refuses it for a reason that passes, waitOut sends it again, up
// to the backend timeout.
func waitOut[T any](ctx context.Context, c *Client, key string, prepare func(now time.Time) redisstore.Call[T]) (answer T, err error) {
	s := c.operation(time.Now())
	r := resend{client: c, key: key, span: s, pauser: pauses{}}
	err = r.run(ctx, func() (_ time.Time, again bool, err error) {
		call := prepare(time.Now())
		answer, _, err = call.Wait(ctx, s.limit(c, call.Sent))
		return call.Sent, wire.Passes(err), err
	})
	return answer, unavailable(err)
}

// pause pauses an operation on a lock that is held: its error is that of the operation.
func (o *ownership) pause(ctx context.Context, pause time.Duration) error {
	if jitter.Sleep(ctx, pause) != nil {
		return unavailable(contextCause(ctx))
	}
	return nil
}

// span is the time that an operation has. The zero value is as long as its context.
type span struct {
	end     time.Time // of the operation; zero: as long as Redis answers
	passing time.Time // up to when errors that pass are waited out; zero: up to the end
	answers time.Time // up to when answers are waited for, in all sends together; zero: each has its own time
}

// operation is the span of an operation without a wait time: as long as Redis answers, but
// errors that pass are those of a Redis that is not there, and slow answers have a bound.
func (c *Client) operation(now time.Time) span {
	return span{passing: now.Add(c.cfg.backendTimeout), answers: c.callLimit(now)}
}

// begin takes the turn of an operation without a wait time, which was asked for at asked. It
// gives when the operation begins and the time that it has then: what is left of the backend
// timeout, or all of it if the operations in front were answered.
func (o *ownership) begin(ctx context.Context, asked time.Time) (now time.Time, s span, err error) {
	c := o.client
	s, err = o.operations.beginBy(ctx, c.operation(asked), c.cfg.backendTimeout)
	if err != nil {
		return asked, s, unavailable(err)
	}
	now = time.Now()
	if s.end.IsZero() {
		s = c.operation(now)
	}
	return now, s, nil
}

// limit is up to when a command may take that is sent now.
func (s span) limit(c *Client, now time.Time) time.Time {
	limit := c.callLimit(now)
	for _, end := range [...]time.Time{s.end, s.answers} {
		if !end.IsZero() {
			limit = minTime(limit, end)
		}
	}
	return limit
}

// last is the time after which a command is not sent again after an error; silence is the
// end of the backend timeout.
func (s span) last(err error, silence time.Time) (last time.Time, ends bool) {
	switch {
	case wire.Passes(err):
		return s.passing, !s.passing.IsZero()
	case s.end.IsZero():
		return silence, true
	default:
		return minTime(silence, s.end), true
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
