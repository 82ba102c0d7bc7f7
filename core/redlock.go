package core

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// Redlock names a lock on several independent Redis servers, each reached by a client of its
// own: it is held while a majority of them has granted it, n/2+1 of n, and goes on when the
// others fail. One client given twice, and none, are [ErrInvalid] in Acquire; two clients of
// one Redis are not noticed, and refuse each other. On each server it is the lock that
// [Client.Lock] names there; so a RedissonRedLock over the same servers, in whatever order,
// excludes it, and is excluded.
//
// All servers are asked at the same time, each for at most two of its backend timeouts and a
// quarter of the lease; one that is known not to answer costs nothing. What a majority still
// grants after that, less the margin for the drift of clocks (1 % of the lease and 2 ms), is
// [Hold.Remaining]. An attempt that fails gives back what it has got, and leaves what was not
// answered to be cleared up. A waiter then waits at one of the servers that refused, in the
// queue of that client's callers and woken by messages, and asks the others when it has the
// lock there, or every second; after an attempt that has got a part only, it pauses before
// that, for a random time of up to 200 ms. Uncontended it costs one round trip to each server.
//
// Every client renews its own lease. The hold is lost when fewer than a majority last: a
// server that loses the lock is not asked again. So a rolling restart of servers without
// persistence ends every hold that was there before it. [Hold.Release] and [Hold.Leave] are nil when
// nothing is left on any server that had granted it, as long as the hold lasted; one that
// does not answer is [ErrUnavailable]. [Hold.Refresh] needs a majority. A re-entry needs one,
// too: of the servers that the context holds it on. [ErrUnavailable] from Acquire says that
// no majority of servers can answer, [ErrNotAcquired] that one can, but others have the lock.
// When one of the clients is closed, Acquire is [ErrClosed], and a hold loses its part there.
// Observers of the first client are notified; that a server is unavailable, those of its own.
//
// It has no fencing token ([WithToken] is [ErrInvalid]), and is no safer than its clocks: as
// Martin Kleppmann has shown, a holder that pauses, a clock that steps, or a server that
// restarts without its data lets two hold it at once. Where that matters use a
// [Client.FencedLock] on one server with replicas, which is simpler and faster, and a store
// that refuses smaller tokens.
func Redlock(name string, clients ...*Client) Lock {
	return Lock{name: name, clients: append([]*Client{}, clients...)}
}

// redlock is the acquisition of a lock on several servers. It goes in rounds:
//
//	        ┌──────────────── refused: gives back what it has got ─────────────────┐
//	        ▼                                                                      │
//	waits at one that refused, if any ──granted, or refused again──▶ asks the others at once ──▶ acquired
//	                                                                    │    ▲
//	                                                                    └────┘ has that one: in a moment
type redlock struct {
	*acquisition // of the whole; its first attempt notes who is in the way, and is never sent

	members  []*member // all, or those to enter again
	reenters bool
	at       *member // where it waits next; nil: nowhere
}

// member is one server, and the last acquisition there.
type member struct {
	*acquisition

	got *ownership // what this round has brought
	err error      // why it has brought none: ErrNotAcquired if others have it
}

// The pauses of one that has got a part only: before the next round, random and up to so long;
// and where it has waited at one server, before the others are asked again, which may be about
// to be released.
const (
	firstBackOff   = 50 * time.Millisecond
	longestBackOff = 200 * time.Millisecond
	longestInHand  = 8 * time.Millisecond
)

var errSlowServer = errors.New("no answer within the time of one server")

// redlock prepares the acquisition of a Redlock.
func (l Lock) redlock(opts []AcquireOption) (*redlock, error) {
	if len(l.clients) == 0 {
		return nil, invalidf("Redlock without clients: want one for each server")
	}
	r := &redlock{}
	for i, c := range l.clients {
		if c == nil || slices.Contains(l.clients[:i], c) {
			return nil, invalidf("Redlock: client %d is nil, or was given before: want one for each server", i+1)
		}
		m := &member{acquisition: &acquisition{client: c}}
		if err := m.read(Lock{client: c, kind: c.kinds.Reentrant, name: l.name, clients: l.clients}, opts); err != nil {
			return nil, err
		}
		r.members = append(r.members, m)
	}
	first := r.members[0]
	r.acquisition = &acquisition{client: first.client, keys: first.keys, req: first.req, redlock: r, quorum: len(l.clients)/2 + 1}
	r.report.Kind = KindRedlock
	return r, nil
}

// acquireOnMost is acquire for a Redlock. It is a caller of every client.
func (l Lock) acquireOnMost(ctx context.Context, opts []AcquireOption) (*Hold, error) {
	r, err := l.redlock(opts)
	if err != nil {
		return nil, err
	}
	for _, m := range r.members {
		if err := m.client.callers.enter(); err != nil {
			return nil, err
		}
		defer m.client.callers.exit() //nolint:gocritic // at the end of all: there are few
	}
	return r.run(ctx)
}

// take gets an ownership on a majority of the servers, or none. Where ctx owns a majority, the
// others are left alone. It goes on until the wait time ends, or one of the clients is closed.
func (r *redlock) take(ctx context.Context) (got []*ownership, err error) {
	inTime, cancel := context.WithDeadlineCause(ctx, r.report.Start.Add(cmp.Or(r.req.wait, MaxDuration)), errSlowServer)
	defer cancel()
	for _, m := range r.members {
		m.req.asksAgain, m.req.beforeWait = r.req.mayWait(), nil
		m.req.member, m.req.wait, m.report.Acquisition = true, 0, r.report.Acquisition
		defer context.AfterFunc(m.client.service, cancel)() //nolint:gocritic // at the end of all: there are few
	}
	r.first = r.client.newAttempt(ctx, r.keys[0], &r.req, &r.report, r.report.Start)
	r.begin(ctx)
	again := true
	if r.at != nil {
		err = r.first.prepare(ctx)
		again = err == nil
	}
	for inHand, backOff := time.Millisecond, firstBackOff; again; {
		r.round(inTime)
		if got, again, err = r.judge(); got != nil && ctx.Err() == nil {
			r.won()
			return got, nil
		}
		again = again && r.req.mayWait() && !r.reenters
		if again && r.at != nil && r.at.got != nil && inHand <= longestInHand {
			_ = jitter.Sleep(inTime, inHand) //nolint:errcheck // the next round asks nobody then
			inHand *= 2
			continue
		}
		part := r.giveBack(inTime)
		if inHand = time.Millisecond; again && (part || r.at == nil) {
			_ = jitter.Sleep(inTime, rand.N(backOff)) //nolint:errcheck // the loop ends with it
			backOff = min(2*backOff, longestBackOff)
		}
		if again = again && inTime.Err() == nil; again {
			err = r.first.prepare(ctx)
			again = err == nil
		}
	}
	if ctx.Err() != nil || err == nil {
		err = r.busy(contextCause(ctx))
	}
	return nil, cmp.Or(r.lost(ctx), err)
}

// busy returns the error of an acquisition that did not get the lock on a majority of the servers.
func (r *redlock) busy(cause error) error {
	e := r.first.busy(cause).(*NotAcquiredError) //nolint:errcheck,errorlint,forcetypeassert // it makes one
	for _, m := range r.members {
		m.client.notesOwnHold(e, m.keys[0])
	}
	return e
}

// begin finds out what ctx owns, or else where to wait at first: where callers of this process
// have the lock, or want it.
func (r *redlock) begin(ctx context.Context) {
	owned := slices.DeleteFunc(slices.Clone(r.members), func(m *member) bool { return m.client.owned(ctx, m.keys[0], m.req.kind) == nil })
	wanted := slices.IndexFunc(r.members, func(m *member) bool { return m.client.queues.Wanted(m.keys[0]) })
	if r.reenters = len(owned) >= r.quorum; r.reenters {
		r.members = owned
	} else if wanted >= 0 && r.req.mayWait() {
		r.at = r.members[wanted]
	}
}

// round waits at one server, and then asks those that have not granted the lock and may.
func (r *redlock) round(ctx context.Context) {
	if r.at != nil && r.at.got == nil {
		r.first.contended(nil)
		r.at.ask(ctx, true)
	}
	var all sync.WaitGroup
	for _, m := range r.members {
		if m.got == nil && ctx.Err() == nil && (m.err == nil || errors.Is(m.err, ErrNotAcquired)) {
			all.Go(func() { m.ask(ctx, false) })
		}
	}
	all.Wait()
}

// ask has the server asked: once, or until it has refused again after a while. The queues may
// still know the acquisition before.
func (m *member) ask(ctx context.Context, wait bool) {
	limit := MaxDuration
	if !wait {
		limit = min(2*m.client.cfg.backendTimeout, m.req.lease/4)
	}
	bounded, cancel := context.WithTimeoutCause(ctx, limit, errSlowServer)
	defer cancel()
	last := m.report
	m.acquisition = &acquisition{client: m.client, keys: m.keys, req: m.req}
	m.req.forever, m.report.Acquisition, m.report.Attempts = wait, last.Acquisition, last.Attempts
	m.report.Start = time.Now() // what is granted lasts from here
	owners, err := m.takeAll(bounded)
	switch {
	case err == nil:
		m.got = owners[0]
	case errors.Is(err, errPassedOver):
		err = nil // it is asked once more, with the others
	case m.first.sends.behind.now: // it has answered
	case !wait && errors.Is(err, context.DeadlineExceeded) && errors.Is(context.Cause(bounded), errSlowServer):
		err = unavailable(errSlowServer)
	}
	m.err = err
	m.req.admitted = m.req.admitted || wait
	m.client.backend.note(ctx, m.keys[0], m.report.Start, err)
}

// judge says what the answers come to: a majority that lasts, why there can be none, or
// whether to ask again.
func (r *redlock) judge() (got []*ownership, again bool, err error) {
	var down, failed []error
	hard, spare := 0, len(r.members)-r.quorum
	for _, m := range r.members {
		switch {
		case m.got != nil:
			got = append(got, m.got)
		case m.client.isClosing():
			failed = append(failed, ErrClosed)
		case errors.Is(m.err, ErrUnavailable):
			if down = append(down, m.err); !wire.Passes(m.err) {
				hard++
			}
		case m.err != nil && (r.reenters || !errors.Is(m.err, ErrNotAcquired)):
			failed = append(failed, m.err)
		}
	}
	switch {
	case len(got) >= r.quorum && (&scope{owners: got, needs: r.quorum}).remaining(time.Now()) > 0:
		return got, false, nil
	case len(got) >= r.quorum:
		return nil, false, unavailable(errTooLate)
	case len(failed) > 0:
		return nil, false, joined(append(failed, down...))
	case len(down) > spare:
		return nil, hard <= spare, errors.Join(down...)
	default:
		return nil, true, nil
	}
}

// giveBack frees what a round has got, and reports whether that was anything. The next one
// waits at a server that has refused.
func (r *redlock) giveBack(ctx context.Context) (part bool) {
	var got []*ownership
	r.at = nil
	for _, m := range r.members {
		if m.got != nil && m.report.Outcome == OutcomeReentered {
			m.client.undoEntry(m.got, m.req.watchdog)
		} else if m.got != nil {
			got = append(got, m.got)
		}
		if refusal := m.first.refusal; refusal.Refusal != nil && r.at == nil {
			r.at, r.first.now = m, refusal.at
			r.first.refused(refusal.Refusal)
		}
		m.got, m.err = nil, nil
	}
	giveBack(ctx, got, r.client.cfg.backendTimeout)
	return len(got) > 0
}

// won sums up how a majority was acquired.
func (r *redlock) won() {
	sum := &r.report
	if sum.acquired = time.Now(); r.reenters {
		sum.Outcome = OutcomeReentered
	}
	for _, m := range r.members {
		sum.Attempts += m.report.Attempts
		if m.got != nil {
			sum.RoundTrip, sum.HandedOff = max(sum.RoundTrip, m.report.RoundTrip), sum.HandedOff || m.report.HandedOff
		}
	}
}

// lost is why too much of what ctx carries of the lock has ended, nil if it has not.
func (r *redlock) lost(ctx context.Context) error {
	losses := make([]error, len(r.members))
	for i, m := range r.members {
		losses[i] = m.client.lost(ctx, m.keys)
	}
	return beyond(len(r.members)-r.quorum, losses)
}
