package acquire

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/resend"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// grant describes a lock that Redis granted to a field.
type grant struct {
	field string    // empty: the lock is taken
	token int64     // fencing token; 0 where the kind has none
	sent  time.Time // when the command was sent
}

func (g grant) refused() bool { return g.field == "" }

const (
	errTooLate = failure.Text("the reply came after the end of the lease")
	errGhost   = failure.Text("an attempt without an answer has the lock and is being cleared up")
)

// clearingUp is the number of backend timeouts within which the reaper clears up a command without an answer, so that
// another attempt can get the lock.
const clearingUp = 3

// unending is the duration of a wait without an end.
const unending = 10 * 365 * 24 * time.Hour

// send sends the command, and sends it again while another send may help. If Redis refuses the lock, send returns a
// grant without a field, and no error.
func (a *attempt) send(ctx context.Context) (g grant, err error) {
	a.loop = resend.Loop{Sender: a.in.Sender, Key: a.key, Span: a.span(), Pauser: a, Earlier: a.loop.Earlier}
	err = a.loop.Run(ctx, func() (sent time.Time, again bool, err error) {
		sent = a.now
		g, again, err = a.sendOnce(ctx, a.limit())
		return sent, again, err
	})
	return g, err
}

// Pause pauses before the next send. It returns early when the client begins to close.
func (a *attempt) Pause(ctx context.Context, pause time.Duration) error {
	pause, start := a.ghost.shorten(pause, a.now), a.now
	if err := jitter.SleepUnless(ctx, pause, a.in.Sender.Closing, failure.Closed); err != nil {
		if ctx.Err() != nil {
			err = failure.Ended(ctx)
		}
		return a.stopError(ctx, err)
	}
	a.now = time.Now()
	if a.ghost.now && !a.answers.IsZero() {
		a.answers = a.answers.Add(a.now.Sub(start)) // the pause does not count as waiting for an answer
	}
	return nil
}

// sendOnce sends the command once, with the next field. again reports whether another send may help.
func (a *attempt) sendOnce(ctx context.Context, limit time.Time) (g grant, again bool, err error) {
	field := a.manner.field(a)
	call := a.command(field)
	a.loop.NotBefore, a.ghost.now = time.Time{}, false
	a.report.Attempts++
	answer, fate, err := call.Wait(ctx, limit)
	a.now = time.Now()
	if err != nil {
		if wire.Short(err) {
			return grant{}, false, a.giveBackShort(ctx, field, err)
		}
		if fate == wire.Unknown {
			late := call
			a.ghosts, a.since = append(a.ghosts, field), a.now
			a.manner.onNoAnswer(a, field, &late)
		}
		again, err = a.decideRetry(ctx, err, limit)
		return grant{}, again, err
	}
	switch r := answer.Refusal; {
	case r == nil:
		a.place.taken = ""
		return a.checkGrant(ctx, grant{field, answer.Token, call.Sent})
	case slices.Contains(a.ghosts, r.Holder):
		a.loop.NotBefore = a.since.Add(clearingUp * a.in.Sender.Timeout)
		return grant{}, true, errGhost
	case a.waitsForGhost(r.Holder):
		return grant{}, true, resend.ErrRefused
	default:
		a.recordRefusal((*queue.Refusal)(r))
		return grant{}, false, nil
	}
}

// command returns the script that takes the wanted keys.
func (a *attempt) command(field string) redisstore.Call[redisstore.Grant] {
	if a.group.keys != nil {
		return a.in.Redis.AcquireAll(a.now, a.wish.Kind, a.group.keys, field, a.wish.Lease)
	}
	return a.in.Redis.Acquire(a.now, a.claim(field), a.terms())
}

// terms returns the terms of the next command.
func (a *attempt) terms() redisstore.Terms {
	w := a.wish
	t := redisstore.Terms{Lease: w.Lease, Token: w.Token, Demand: w.Demand, Ghosts: a.ghosts}
	if w.under != nil {
		t.Under = w.under.Field()
	}
	switch {
	case w.Forever:
		t.Wait = unending
	case w.Wait > 0:
		t.Wait = max(a.until.Sub(a.now), 0)
	}
	if w.Kind.Holds == redisstore.Unheld {
		t.Forget = a.in.Operations.Take(a.key)
	}
	return t
}

// limit returns the time limit of one command, if Redis answers. It is longer than any command takes, but not beyond
// the wait time.
func (a *attempt) limit() time.Time {
	limit := resend.Earliest(a.in.Sender.CallLimit(a.now), a.answers)
	if a.cut = !a.until.IsZero() && a.wish.Wait > 0 && a.until.Before(limit); a.cut {
		return a.until
	}
	return limit
}

// checkGrant returns the grant if it came before the end of its lease and ctx is not done. Otherwise it returns an error,
// and the reaper frees the lock.
func (a *attempt) checkGrant(ctx context.Context, g grant) (_ grant, again bool, err error) {
	late, left := lease.Expired(g.sent, a.wish.Lease, a.now), ctx.Err() != nil
	if late || left {
		a.in.Reaper.Relinquish(a.wish.Kind, a.wantedKeys(), g.field, a.wish.Lease)
	}
	switch {
	case late:
		return grant{}, true, errTooLate
	case left:
		return grant{}, false, a.stopError(ctx, failure.Ended(ctx))
	}
	a.report.RoundTrip = a.now.Sub(g.sent)
	return g, false, nil
}

// giveBackShort gives back a grant that too few replicas acknowledged, and returns the error of the attempt.
func (a *attempt) giveBackShort(ctx context.Context, field string, err error) error {
	if !a.in.undo(ctx, a.wish.Kind, a.wantedKeys(), field) {
		a.in.Reaper.Relinquish(a.wish.Kind, a.wantedKeys(), field, a.wish.Lease)
	}
	a.now = time.Now()
	if ctx.Err() != nil {
		return a.stopError(ctx, failure.Ended(ctx))
	}
	return failure.BecauseOf(err)
}

// grace is how long giving back may delay a caller beyond its wait time.
const grace = 50 * time.Millisecond

// undo frees keys that Redis granted to a field that no caller has seen. It reports whether Redis freed all of them
// within grace.
func (in *Acquirer) undo(ctx context.Context, kind *redisstore.Kind, keys []string, field string) bool {
	now := time.Now()
	for _, key := range keys {
		call := in.Redis.Clear(now, []redisstore.Suspicion{{Kind: kind, Key: key, Fields: []string{field}}})
		found, _, err := call.Wait(ctx, now.Add(grace))
		if err != nil || found[0].Err != nil {
			return false
		}
		in.Queues.Wake(key, "")
	}
	return true
}

// decideRetry returns the error of a send that got neither a grant nor a refusal. again reports whether another send may
// help.
func (a *attempt) decideRetry(ctx context.Context, err error, limit time.Time) (again bool, _ error) {
	switch {
	case ctx.Err() != nil:
		return false, a.stopError(ctx, failure.Ended(ctx))
	case a.timedOut() && a.knownTaken():
		return false, a.busyError(nil) // this client knows that the lock is taken
	case a.cutShort() && !a.wish.Kind.Shared() && a.in.Queues.Held(a.key, a.now):
		return false, a.busyError(nil) // this client has the lock, so it need not ask Redis
	case !a.now.Before(limit), errors.Is(err, wire.ErrSilent):
		return false, a.in.Sender.Concede(ctx, a.key, a.now, a.loop.Cause(err))
	case wire.Transient(err):
		return true, err
	default:
		return false, failure.BecauseOf(err)
	}
}

// ghost lets an attempt that does not wait ask again while a ghost of its client has the lock. A ghost is the field of
// another acquire that got no answer. The reaper clears it up.
type ghost struct {
	until time.Time // until then it asks again; zero: no ghost had the lock
	now   bool      // a ghost had the lock at the last refusal
}

// waitsForGhost reports whether an attempt that does not wait asks again, because holder is the field of a ghost. The
// reaper removes the ghost soon, so the lock is practically free. After pollInterval the lock counts as taken. For a
// Redlock that may wait, waitsForGhost returns false, because the Redlock itself asks again.
func (a *attempt) waitsForGhost(holder string) bool {
	g, clearing := &a.ghost, a.in.Reaper
	if a.wish.MayWait() || a.wish.asksAgain || !clearing.IsOrphan(holder) && !clearing.WasOrphan(holder) {
		return false
	}
	if g.until.IsZero() {
		g.until = a.now.Add(pollInterval)
	}
	g.now = a.now.Add(resend.FirstPause).Before(g.until)
	a.loop.NotBefore = g.until.Add(pollInterval) // later than g.until, so that silence does not end the loop first
	return g.now
}

// shorten returns a pause that ends in time for the last try.
func (g *ghost) shorten(pause time.Duration, now time.Time) time.Duration {
	if g.now {
		return min(pause, g.until.Sub(now))
	}
	return pause
}
