package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// phase is the life of an ownership. It only goes forward.
type phase uint8

const (
	held      phase = iota
	releasing       // the last release has begun; renewals count no more
	ended           // released, left to its lease, or passed on
	lost            // ended under its holders
)

// owner is one outermost acquisition of one key: a field in the lock's hash that
// was never used before and never will be again. Its holds are the acquisition
// itself and its re-entries.
type owner struct {
	client *Client
	kind   *redisstore.Kind
	key    string
	field  string
	token  int64 // fencing token; 0 where the kind has none

	deadline deadline

	mu        sync.Mutex
	phase     phase
	lossCause error
	scopes    []*scope      // live holds
	entering  int           // re-entries that are not live holds yet
	watchdogs int           // how many of them are renewed
	lease     time.Duration // longest lease asked for
	busy      bool          // an operation is on the wire
	turns     []waiting     // operations that wait for it
	amending  bool          // the count in Redis may be wrong, and is being put right
	yield     func()        // has that writer give up the turn; nil while it does not have it
	lateUntil time.Time     // a command without an answer may land until then
	heard     time.Time     // when an operation was last answered
	capped    time.Duration // longest lease that a reply confirms; 0: any
	inquiry   inquiry       // whether Redis is being asked if this is still the holder

	// When the acquire was sent, and when its holder was known to this client, since
	// the client's start.
	sent, known time.Duration

	// For the one who asks: since the client's start, when the next question may be sent.
	askNotBefore time.Duration

	// Room for the first hold, so that the usual acquisition is one allocation less.
	first    scope
	self     [1]*owner
	oneScope [1]*scope

	// Guarded by the watchdog.
	index    int           // in the heap, -1 when not there
	next     time.Duration // when the watchdog looks at it, since the client's start
	renewAt  time.Duration
	renewing bool
}

func (c *Client) newOwner(claim redisstore.Claim, token int64, sent time.Time, lease time.Duration) *owner {
	o := &owner{client: c, kind: claim.Kind, key: claim.Key, field: claim.Field, token: token, lease: lease, index: -1}
	o.self[0] = o
	o.scopes = o.oneScope[:0]
	o.sent = sent.Sub(c.start)
	o.deadline.set(c.start, deadlineAfter(sent, lease))
	return o
}

// enter adds a hold. The first call decides the lease, later ones are re-entries.
func (o *owner) enter(s *scope, req *request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.scopes = append(o.scopes, s)
	if o.entering > 0 {
		o.entering-- // it was announced
	}
	o.lease = max(o.lease, req.lease)
}

// wantRenewal counts one more hold for which the lease is renewed: from the moment
// that the lock is had, which may be long before a MultiLock becomes a hold.
func (o *owner) wantRenewal() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watchdogs++
}

// lastUnanswered is until when commands without an answer may land.
func (o *owner) lastUnanswered() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lateUntil
}

func (o *owner) over() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.phase != held
}

// leave takes a hold away and gives how many are left. The caller has made sure
// that it is called once per hold.
func (o *owner) leave(s *scope) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(s)
	return len(o.scopes) + o.entering
}

// leaveUnlessLast takes a hold away that is not the only one.
func (o *owner) leaveUnlessLast(s *scope) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.scopes)+o.entering > 1 {
		o.drop(s)
		s.cancel(errLeaked) // nobody listens, but an outer context still refers to it
	}
}

// drop takes a hold off the list, and leaves no trace of it there: the context of an
// inner hold keeps the outer one from the garbage collector. The mutex is held.
func (o *owner) drop(s *scope) {
	o.scopes = slices.DeleteFunc(o.scopes, func(other *scope) bool { return other == s })
}

// stopRenewal takes a hold out of those that its owners are renewed for, once.
func (s *scope) stopRenewal() {
	if !s.watchdog.CompareAndSwap(true, false) {
		return
	}
	for _, o := range s.owners {
		o.mu.Lock()
		o.watchdogs--
		o.mu.Unlock()
	}
}

// remaining is how long the ownership can be relied on, 0 after its end.
func (o *owner) remaining(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase != held {
		return 0
	}
	return max(o.deadline.remaining(o.client.start, now), 0)
}

// left is how long the lock is had by the clocks, whatever the phase.
func (o *owner) left(now time.Time) time.Duration {
	return o.deadline.remaining(o.client.start, now)
}

// alive says whether the ownership can be built upon.
func (o *owner) alive(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.phase == held && !o.deadline.passed(o.client.start, now)
}

// begin takes the turn of one operation on the wire: re-entry and release of one
// holder must not overtake each other. Renewals are not behind it.
func (o *owner) begin(ctx context.Context) error {
	if turn := o.queue(); turn != nil {
		return o.await(ctx, turn)
	}
	return nil
}

// beginBy is begin for an operation that has a time, and gives what is left of it: behind
// commands without an answer it has no more than the backend timeout in all. Its error is
// that of ctx, or errNoTurn.
func (o *owner) beginBy(ctx context.Context, s span) (span, error) {
	turn := o.queue()
	if turn == nil {
		return s, nil
	}
	start := time.Now()
	timer := time.NewTimer(time.Until(o.turnLimit(start, s)))
	defer timer.Stop()
	for {
		select {
		case <-turn:
			return o.spanAfter(start, s)
		case <-ctx.Done():
			o.forgoTurn(turn)
			return s, contextCause(ctx)
		case <-timer.C:
		}
		left := time.Until(o.turnLimit(start, s))
		if left <= 0 {
			o.forgoTurn(turn)
			return s, errNoTurn
		}
		timer.Reset(left)
	}
}

// spanAfter is what is left to an operation that began to wait for its turn at start, and
// has it.
func (o *owner) spanAfter(start time.Time, s span) (span, error) {
	limit := o.turnLimit(start, s)
	if !time.Now().Before(limit) {
		o.end()
		return s, errNoTurn
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.heard.Before(start) {
		s.end = limit
	}
	return s, nil
}

// turnLimit is up to when an operation waits for its turn that began to at start: as long as
// others have theirs and are answered.
func (o *owner) turnLimit(start time.Time, s span) time.Time {
	o.mu.Lock()
	limit := maxTime(start, o.heard).Add(o.client.cfg.backendTimeout)
	o.mu.Unlock()
	if s.end.IsZero() {
		return limit
	}
	return minTime(limit, s.end)
}

// errNoTurn says that an operation of a holder could not begin in time.
var errNoTurn = errors.New("an earlier command of this holder has no answer from redis yet")

// queue takes the turn if nobody has it, and gives nil; else it gives what is closed
// when the turn comes.
func (o *owner) queue() waiting {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.busy {
		o.busy = true
		return nil
	}
	if o.yield != nil {
		o.yield()
	}
	turn := make(waiting)
	o.turns = append(o.turns, turn)
	return turn
}

func (o *owner) await(ctx context.Context, turn waiting) error {
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		o.forgoTurn(turn)
		return context.Cause(ctx)
	}
}

// forgoTurn takes an operation out of those that wait, or passes on what was given to it in
// this instant.
func (o *owner) forgoTurn(turn waiting) {
	o.mu.Lock()
	at := slices.Index(o.turns, turn)
	if at >= 0 {
		o.turns = slices.Delete(o.turns, at, at+1)
	}
	o.mu.Unlock()
	if at < 0 {
		o.end()
	}
}

// end passes the turn on.
func (o *owner) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.turns) == 0 {
		o.busy = false
		return
	}
	close(o.turns[0])
	o.turns = o.turns[1:]
}

// acknowledge raises the deadline after a reply, unless a release has begun.
func (o *owner) acknowledge(sent time.Time, lease time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase != held || o.deadline.passed(o.client.start, time.Now()) {
		return
	}
	if o.capped > 0 {
		lease = min(lease, o.capped)
	}
	o.deadline.raise(o.client.start, deadlineAfter(sent, lease))
}

// checkClock loses the ownership when its deadline has passed. When it returns, the
// contexts of the holds have ended, even if another goroutine is just about to end
// them.
func (o *owner) checkClock(now time.Time) {
	if !o.deadline.passed(o.client.start, now) {
		return
	}
	o.lose(errLeaseOver)
	o.mu.Lock()
	cause := o.lossCause
	scopes := append([]*scope(nil), o.scopes...)
	o.mu.Unlock()
	if cause == nil {
		return // it was released
	}
	for _, s := range scopes {
		s.cancel(cause)
	}
}

var (
	errLeaseOver = fmt.Errorf("%w: the lease is over", ErrLost)
	errLeaked    = fmt.Errorf("%w: the hold was garbage-collected", ErrLost)
	errNotMine   = fmt.Errorf("%w: another holder, or none, is in redis", ErrLost)
)

// lose ends the ownership because it is not there any more. It announces that by
// ending the contexts of the holds, and frees nothing.
func (o *owner) lose(cause error) {
	o.mu.Lock()
	if o.phase != held {
		o.mu.Unlock()
		return
	}
	o.phase, o.lossCause = lost, cause
	scopes := append([]*scope(nil), o.scopes...)
	o.mu.Unlock()
	o.client.watchdog.remove(o)
	for _, s := range scopes {
		s.lose(cause)
	}
	o.client.lines.ownerEnded(o, false)
}

// close goes from held to releasing. It fails when the ownership was lost.
func (o *owner) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase == lost {
		return o.lossCause
	}
	o.phase = releasing
	return nil
}

// finish goes to the end, from wherever it is.
func (o *owner) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.phase != lost {
		o.phase = ended
	}
}

func (o *owner) claim() redisstore.Claim {
	return redisstore.Claim{Kind: o.kind, Key: o.key, Field: o.field}
}
