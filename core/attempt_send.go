package core

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// sends is the part of an attempt that sends its command, and what became of it.
type sends struct {
	of     *attempt
	resend resend
	cut    bool      // the wait time ends before the time that a command has
	ghosts []string  // fields of attempts without an answer, left to the reaper
	since  time.Time // when the last of them was left
	behind behind
	place  place
}

// grant says that Redis has given the lock to a field.
type grant struct {
	field string
	token int64     // fencing token; 0 where the kind has none
	sent  time.Time // when the command was sent
}

// refused says that there is no grant: the lock is taken.
func (g grant) refused() bool { return g.field == "" }

// try sends one attempt, and another one while that may help.
func (s *sends) try(ctx context.Context) (g grant, err error) {
	a := s.of
	s.resend = resend{client: a.client, key: a.key, span: a.span(), pauser: s, earlier: s.resend.earlier}
	err = s.resend.run(ctx, func() (sent time.Time, again bool, err error) {
		sent = a.now
		g, again, err = s.send(ctx, a.limit())
		return sent, again, err
	})
	return g, err
}

// pause pauses before the next attempt. It ends when the client is being closed.
func (s *sends) pause(ctx context.Context, pause time.Duration) error {
	pause, began := s.behind.pause(pause, s.of.now), s.of.now
	if err := jitter.SleepUnless(ctx, pause, s.of.client.closing, ErrClosed); err != nil {
		if ctx.Err() != nil {
			err = contextCause(ctx)
		}
		return s.of.stopped(ctx, err)
	}
	s.of.now = time.Now()
	if s.behind.now && !s.of.answers.IsZero() {
		s.of.answers = s.of.answers.Add(s.of.now.Sub(began)) // no answer was waited for
	}
	return nil
}

// clearingUp is how many round trips it takes until an attempt without an answer is
// cleared up and another one has the lock.
const clearingUp = 3

// send sends one attempt with a new field. again says that another one may help.
func (s *sends) send(ctx context.Context, limit time.Time) (g grant, again bool, err error) {
	a := s.of
	field := s.field()
	call := a.command(field)
	s.resend.atLeast, s.behind.now = time.Time{}, false
	a.report.Attempts++
	answer, fate, err := call.Wait(ctx, limit)
	a.now = time.Now()
	if err != nil {
		if wire.Short(err) {
			return grant{}, false, s.unreplicated(ctx, field, err)
		}
		if fate == wire.Unknown {
			late := call
			s.haunted(field, &late)
		}
		again, err = s.failed(ctx, err, limit)
		return grant{}, again, err
	}
	switch refusal := answer.Refusal; {
	case refusal == nil:
		s.place.taken = ""
		return s.granted(ctx, grant{field, answer.Token, call.Sent})
	case slices.Contains(s.ghosts, refusal.Holder):
		s.resend.atLeast = s.since.Add(clearingUp * a.client.cfg.backendTimeout)
		return grant{}, true, errGhost
	case s.behindGhost(refusal.Holder):
		return grant{}, true, errBehind
	default:
		a.refused((*queue.Refusal)(refusal))
		return grant{}, false, nil
	}
}

// granted judges a positive reply, which may have come too late.
func (s *sends) granted(ctx context.Context, g grant) (_ grant, again bool, err error) {
	a := s.of
	if lease.Expired(g.sent, a.req.lease, a.now) {
		a.client.reaper.Relinquish(a.req.kind, a.wanted(), g.field, a.req.lease)
		return grant{}, true, errTooLate
	}
	if ctx.Err() != nil {
		a.client.reaper.Relinquish(a.req.kind, a.wanted(), g.field, a.req.lease)
		return grant{}, false, a.stopped(ctx, contextCause(ctx))
	}
	a.report.RoundTrip = a.now.Sub(g.sent)
	return g, false, nil
}

// unreplicated gives back what too few replicas know of.
func (s *sends) unreplicated(ctx context.Context, field string, err error) error {
	a := s.of
	if !a.client.undo(ctx, a.req.kind, a.wanted(), field) {
		a.client.reaper.Relinquish(a.req.kind, a.wanted(), field, a.req.lease)
	}
	a.now = time.Now()
	if ctx.Err() != nil {
		return a.stopped(ctx, contextCause(ctx))
	}
	return unavailable(err)
}

// failed decides what an attempt without a reply means. again says that another one
// may help.
func (s *sends) failed(ctx context.Context, err error, limit time.Time) (again bool, _ error) {
	a := s.of
	switch {
	case ctx.Err() != nil:
		return false, a.stopped(ctx, contextCause(ctx))
	case a.over() && a.knownTaken():
		return false, a.busy(nil) // Redis answered a moment ago
	case a.timeUp() && !a.req.kind.Shared() && a.client.queues.Held(a.key, a.now):
		return false, a.busy(nil) // that is known without Redis
	case !a.now.Before(limit), errors.Is(err, wire.ErrSilent):
		return false, a.client.concede(ctx, a.key, a.now, s.resend.cause(err))
	case wire.Transient(err):
		return true, err
	default:
		return false, unavailable(err)
	}
}

var (
	errTooLate = errors.New("the reply came after the end of the lease")
	errGhost   = errors.New("an attempt without an answer has the lock and is being cleared up")
	errBehind  = errors.New("an attempt of another call without an answer has the lock and is being cleared up")
)
