package acquire

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/holding"
	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// Redlock acquires one lock on a majority of several independent servers. It works in rounds:
//
//	        ┌──────────────── refused: gives back what it has got ─────────────────┐
//	        ▼                                                                      │
//	waits at a server that refused, if any ──granted, or refused again──▶ asks the others at once ──▶ acquired
//	                                                                    │    ▲
//	                                                                    └────┘ has that one: in a moment
type Redlock struct {
	Members []*Acquisition // one per server; their reports are not used
	Report  Report

	quorum   int
	members  []*member // all members, or the members to re-enter
	reenters bool
	at       *member // the server where it waits next; nil: none
	first    attempt // records which holder has the lock; it is never sent
}

// member is one server, and the last acquisition there.
type member struct {
	*Acquisition

	got *holding.Holder // the result of this round
	err error           // the error of this round: [failure.NotAcquired] if another holder has the lock
}

// The pauses of a Redlock that has the lock on too few servers. Before the next round it pauses for a random time, at
// first up to firstBackOff and later up to longestBackOff. While it has the lock on the server where it waited, it
// pauses for at most longestInHand before it asks the other servers again, because the lock may be about to be released
// on them.
const (
	firstBackOff   = 50 * time.Millisecond
	longestBackOff = 200 * time.Millisecond
	longestInHand  = 8 * time.Millisecond
)

const errSlowServer = failure.Text("no answer within the time of one server")

// Quorum returns how many of n servers are a majority.
func Quorum(n int) int { return n/2 + 1 }

// Acquire acquires the lock on a majority of the servers, or on none. If ctx carries the lock on a majority, Acquire
// re-enters it there and does not ask the other servers. It tries until the wait time ends, ctx is done or one of the
// clients begins to close.
func (r *Redlock) Acquire(ctx context.Context) (got []*holding.Holder, err error) {
	leading := r.Members[0]
	wish := leading.Wish
	r.quorum = Quorum(len(r.Members))
	inTime, cancel := context.WithDeadlineCause(ctx, r.Report.Start.Add(cmp.Or(wish.Wait, unending)), errSlowServer)
	defer cancel()
	for _, m := range r.Members {
		m.Wish.asksAgain, m.Wish.BeforeWait = wish.MayWait(), nil
		m.Wish.member, m.Wish.Wait, m.Wish.Contended = true, 0, nil
		r.members = append(r.members, &member{Acquisition: m})
		defer context.AfterFunc(m.Acquirer.Service, cancel)() //nolint:gocritic // at the end of all: there are few
	}
	r.first = leading.Acquirer.attempt(wish.Keys[0], &wish, &r.Report, r.Report.Start)
	r.chooseMembers(ctx)
	if got, err = r.run(ctx, inTime); got != nil {
		return got, nil
	}
	if ctx.Err() != nil || err == nil {
		err = r.busyError(failure.Ended(ctx))
	}
	return nil, cmp.Or(r.loss(ctx), err)
}

// run runs rounds until the lock is acquired or another round cannot help. inTime ends with the wait time and with ctx. If
// another holder has the lock, run returns neither holders nor an error.
func (r *Redlock) run(ctx, inTime context.Context) (got []*holding.Holder, _ error) {
	defer func() {
		if got == nil { // also after a hook that ended the goroutine
			r.giveBack(inTime)
		}
	}()
	if r.at != nil {
		if err := r.first.prepare(ctx); err != nil {
			return nil, err
		}
	}
	for inHand, backOff := time.Millisecond, firstBackOff; ; {
		r.runRound(inTime)
		all, again, err := r.evaluate()
		switch {
		case all != nil && ctx.Err() == nil:
			r.sumUp(all)
			return all, nil
		case !again, !r.first.wish.MayWait(), r.reenters:
			return nil, err
		case r.at != nil && r.at.got != nil && inHand <= longestInHand:
			_ = jitter.Sleep(inTime, inHand) //nolint:errcheck // the next round asks no server then
			inHand *= 2
			continue
		}
		part := r.giveBack(inTime)
		inHand = time.Millisecond
		if part || r.at == nil {
			_ = jitter.Sleep(inTime, rand.N(backOff)) //nolint:errcheck // the loop ends with it
			backOff = min(2*backOff, longestBackOff)
		}
		if inTime.Err() != nil {
			return nil, err
		}
		if err := r.first.prepare(ctx); err != nil {
			return nil, err
		}
	}
}

// busyError returns the error of an acquisition that did not get the lock on a majority of the servers.
func (r *Redlock) busyError(cause error) error {
	e := r.first.busyError(cause).(*BusyError) //nolint:errcheck,errorlint,forcetypeassert // busyError returns no other type
	for _, m := range r.members {
		e.recordOwnHold(m.Acquirer, m.Wish.Keys[0])
	}
	return e
}

// chooseMembers chooses the members to re-enter, if ctx carries the lock on a majority. Otherwise it chooses the server
// at which a Redlock that may wait waits first: a server where callers of this process hold or want the lock, if any.
func (r *Redlock) chooseMembers(ctx context.Context) {
	carried := slices.DeleteFunc(slices.Clone(r.members), func(m *member) bool {
		again, under, err := m.Acquirer.FindCarried(ctx, m.Wish.Keys[0], &m.Wish)
		return again == nil && under == nil && err == nil
	})
	wanted := slices.IndexFunc(r.members, func(m *member) bool { return m.Acquirer.Queues.InUse(m.Wish.Keys[0]) })
	if r.reenters = len(carried) >= r.quorum; r.reenters {
		r.members = carried
	} else if wanted >= 0 && r.first.wish.MayWait() {
		r.at = r.members[wanted]
	}
}

// runRound waits at one server and then asks the servers that have not granted the lock yet.
func (r *Redlock) runRound(ctx context.Context) {
	if r.at != nil && r.at.got == nil {
		r.first.reportContention(0)
		r.at.ask(ctx, true)
	}
	var all sync.WaitGroup
	for _, m := range r.members {
		if m.got == nil && ctx.Err() == nil && (m.err == nil || errors.Is(m.err, failure.NotAcquired)) {
			all.Go(func() { m.ask(ctx, false) })
		}
	}
	all.Wait()
}

// ask asks the server once. If wait is true, it waits for the lock until the server refuses it again after
// memberInterval. Each call uses a new acquisition, because the queues may still refer to the last acquisition.
func (m *member) ask(ctx context.Context, wait bool) {
	in, wish := m.Acquirer, m.Wish
	limit := unending
	if !wait {
		limit = min(2*in.Sender.Timeout, wish.Lease/4)
	}
	askCtx, cancel := context.WithTimeoutCause(ctx, limit, errSlowServer)
	defer cancel()
	wish.Forever = wait
	m.Acquisition = &Acquisition{Acquirer: in, Wish: wish, Report: Report{
		Start:    time.Now(), // the lease of a grant counts from here
		Attempts: m.Report.Attempts,
	}}
	holders, err := m.take(askCtx)
	switch {
	case err == nil:
		m.got = holders[0]
	case errors.Is(err, errPassedOver):
		err = nil // the round asks this server once more, with the others
	case m.first.ghost.now: // the server has answered
	case !wait && errors.Is(err, context.DeadlineExceeded) && errors.Is(context.Cause(askCtx), errSlowServer):
		err = failure.BecauseOf(errSlowServer)
	}
	m.err = err
	m.Wish.admitted = m.Wish.admitted || wait
	in.AfterAcquire(ctx, wish.Keys[0], m.Report.Start, err)
}

// evaluate evaluates the answers of a round. It returns the holders if a majority granted the lock and their leases
// have not expired. Otherwise it returns an error, or sets again. An error together with again means that too few
// servers are available, and that the other servers may become available by themselves.
func (r *Redlock) evaluate() (got []*holding.Holder, again bool, err error) {
	var down, failed []error
	hard, spare := 0, len(r.members)-r.quorum
	for _, m := range r.members {
		switch {
		case m.got != nil:
			got = append(got, m.got)
		case m.Acquirer.Service.Err() != nil:
			failed = append(failed, failure.Closed)
		case errors.Is(m.err, failure.Unavailable):
			if down = append(down, m.err); !passes(m.err) {
				hard++
			}
		case m.err != nil && (r.reenters || !errors.Is(m.err, failure.NotAcquired)):
			failed = append(failed, m.err)
		}
	}
	switch {
	case len(got) >= r.quorum && holding.EnoughLast(got, r.quorum, time.Now()):
		return got, false, nil
	case len(got) >= r.quorum:
		return nil, false, failure.BecauseOf(errTooLate)
	case len(failed) > 0:
		return nil, false, failure.Join(append(failed, down...))
	case len(down) > spare:
		return nil, hard <= spare, failure.JoinBeyond(0, down)
	default:
		return nil, true, nil
	}
}

// passes reports whether the reason for the error of a server passes by itself. If too few replicas acknowledged a
// grant, passes checks the cause of the shortfall.
func passes(err error) bool {
	if short, ok := errors.AsType[*wire.ShortfallError](err); ok {
		return wire.Passes(short.Cause)
	}
	return wire.Passes(err)
}

// giveBack releases the grants of a round and reports whether there were new ones. It also chooses the server at which
// the next round waits: the first server that refused, if any.
func (r *Redlock) giveBack(ctx context.Context) (part bool) {
	var got []*holding.Holder
	for _, m := range r.members {
		if m.got != nil && m.Report.Reentered {
			m.got.Undo(m.Wish.Renewed)
		} else if m.got != nil {
			got = append(got, m.got)
		}
		m.got, m.err = nil, nil
	}
	// Deferred, because recordRefusal notifies an observer, which may end the goroutine.
	defer holding.GiveBack(ctx, got, r.Members[0].Acquirer.Sender.Timeout, grace)
	r.at = nil
	for _, m := range r.members {
		if last := m.first.refusal; last.Refusal != nil && r.at == nil {
			r.at, r.first.now = m, last.at
			r.first.recordRefusal(last.Refusal)
		}
	}
	return len(got) > 0
}

// sumUp completes the report of a majority.
func (r *Redlock) sumUp(got []*holding.Holder) {
	sum := &r.Report
	sum.Acquired, sum.Reentered = time.Now(), r.reenters
	sum.Field, sum.Token = got[0].Field(), got[0].Token()
	for _, m := range r.members {
		sum.Attempts += m.Report.Attempts
		if m.got != nil {
			sum.RoundTrip, sum.HandedOff = max(sum.RoundTrip, m.Report.RoundTrip), sum.HandedOff || m.Report.HandedOff
		}
	}
}

// loss returns the losses if ctx carries the lock and the lock is lost on too many servers. Otherwise it returns nil.
func (r *Redlock) loss(ctx context.Context) error {
	losses := make([]error, len(r.members))
	for i, m := range r.members {
		losses[i] = m.Acquirer.FindLoss(ctx, m.Wish.Keys)
	}
	return failure.JoinBeyond(len(r.members)-r.quorum, losses)
}
