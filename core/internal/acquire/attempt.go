package acquire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/holding"
	"github.com/interlock-go/interlock/core/internal/identity"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/resend"
	"github.com/interlock-go/interlock/core/internal/wakeup"
)

// pollInterval is the longest sleep of a waiter. Messages are a hint; the poll is the guarantee.
const pollInterval = time.Second

// attempt acquires one key, or several keys by one script. One goroutine runs it. step goes from state to state:
//
//	unqueued ── granted ──▶ done               a caller that does not wait, or has the lock already, sends
//	  │     └── refused ──▶ busy               without a place in the queue
//	  └── refused, one of several permits ──▶ joining
//
//	joining ──▶ queued ── it is its turn ──▶ sending ── granted ──▶ done
//	   ▲         ▲  │ │                         │
//	   │         │  │ └── given the lock ──▶ done (if the lease has expired: joining)
//	   │         │  │                           │ refused
//	   │         │  └── not its turn ──▶ blocked ◀┘
//	   │         │                        │   │ │
//	   │         │ after a refusal        │   │ └── BeforeWait is due ──▶ preparing ───┐
//	   │         ├────────────────────────┘   ▼                                        │
//	   │         └── signal or poll ────── resting ── its time is up ──▶ ending ──▶ done, or busy
//	   └───────────────────────────────────────────────────────────────────────────────┘
//
// An error ends the attempt in any state. If the attempt is in the queue, it leaves the queue. If a release has given
// it the lock, it releases the lock.
type attempt struct {
	in     *Acquirer
	wish   *Wish
	report *Report
	manner *manner
	key    string // with several keys, the key in whose queue the attempt waits
	group  keyGroup

	state state
	got   *holding.Holder // set in state done
	todo  queue.Step      // the last step that the queue returned

	now      time.Time // the last reading of the clock
	start    time.Time // start of the acquisition
	until    time.Time // end of the wait time; zero: none
	answers  time.Time // time limit of all answers, for an attempt that does not wait for the lock; otherwise zero
	refusal  refusal
	patience patience

	waiter      *queue.Waiter // its place in the queue; nil: it is not in a queue
	first       queue.Waiter  // memory of the first waiter
	joined      bool          // first is used
	timer       *time.Timer   // nil until it sleeps
	spins       int           // how often it has slept without messages
	listenField string        // the field whose messages it subscribes to; "": the messages of the lock
	confirmed   bool          // the messages of its place arrived when the attempt last planned its sleep
	place       place

	loop   resend.Loop
	cut    bool      // the wait time ends before the time limit of a command
	ghosts []string  // fields whose commands got no answer
	since  time.Time // when the last ghost was given up
	ghost  ghost
}

// state is a state of an attempt.
type state uint8

const (
	unqueued state = iota
	joining
	queued
	sending
	blocked
	resting
	preparing
	ending
	done
)

// keyGroup holds the state of an attempt at several keys.
type keyGroup struct {
	keys       []string          // all keys, the key of the attempt first; owned by the attempt; nil for one key
	others     []*holding.Holder // holders of the other keys that the script granted
	passedOver func(passed int) bool
}

// refusal is the last answer by which Redis refused the lock.
type refusal struct {
	*queue.Refusal // nil: none

	at time.Time // when it came
}

// left returns the rest of the lease of the holder.
func (r *refusal) left(now time.Time) time.Duration { return r.at.Add(r.TTL).Sub(now) }

// patience limits the wait of an attempt whose caller holds other keys. The zero value sets no limit.
type patience struct {
	one  time.Duration // limit of the wait for one holder; starts again with the next holder
	end  time.Time     // end of the wait for the present holder
	last time.Time     // end of the wait, however often the holder changes
}

func (p *patience) ended(now time.Time) bool { return !p.end.IsZero() && !now.Before(p.end) }

func (p *patience) renew(now time.Time) {
	if !p.end.IsZero() {
		p.end = resend.Earliest(now.Add(p.one), p.last)
	}
}

// ErrNoAnswer is the cause of the error if the wait time of an attempt ended before Redis had answered at all.
const ErrNoAnswer = failure.Text("no answer from redis within the wait time")

const (
	errGaveUp     = failure.Text("the patience has ended")
	errPassedOver = failure.Text("others were first too often")
	errNoPermits  = failure.Text("it has no permits: set their number by TrySetPermits, SetPermits or from Java, or give Semaphore one")
)

// attempt returns an attempt at one key. now is the present time; for the first attempt of an acquisition it is the
// start of the report.
func (in *Acquirer) attempt(key string, w *Wish, report *Report, now time.Time) attempt {
	a := attempt{in: in, key: key, wish: w, manner: mannerOf(w.Kind), start: report.Start, now: now, report: report}
	if !w.Forever {
		a.until = report.Start.Add(w.Wait)
	}
	if !w.MayWait() {
		a.answers = in.Sender.CallLimit(now)
	}
	if w.member {
		a.group.passedOver = func(int) bool { return time.Since(now) >= memberInterval }
	}
	return a
}

// run acquires the key and returns its holder. It waits for the key if the wish allows that.
func (a *attempt) run(ctx context.Context) (*holding.Holder, error) {
	defer a.leavePlace()
	if err := a.in.FailFast(ctx, a.key); err != nil {
		return nil, err
	}
	a.state = joining
	if !a.wish.MayWait() || a.wish.under != nil || a.wish.Kind.Shares == redisstore.Limited && !a.in.Queues.HasWaiters(a.key) {
		a.state = unqueued
	}
	defer a.stopTimer()
	defer func() {
		if a.state != done { // an error, or a hook that ended the goroutine
			a.leaveQueue()
		}
	}()
	for a.state != done {
		if err := a.step(ctx); err != nil {
			return nil, err
		}
	}
	return a.got, nil
}

// step goes from the present state to the next state.
func (a *attempt) step(ctx context.Context) error {
	switch a.state {
	case unqueued:
		return a.tryAlone(ctx)
	case joining:
		return a.join(ctx)
	case queued:
		return a.askQueue(ctx)
	case sending:
		return a.tryInTurn(ctx)
	case blocked:
		return a.plan(ctx)
	case resting:
		return a.sleep(ctx)
	case preparing:
		return a.prepareOutside(ctx)
	case ending:
		return a.endWait(ctx)
	default:
		return nil
	}
}

// tryAlone sends the command once, without a place in the queue.
func (a *attempt) tryAlone(ctx context.Context) error {
	if err := a.in.Queues.CheckKind(a.key, a.wish.Kind.Family); err != nil {
		return NotQueued(err, a.key, a.wish.Kind)
	}
	g, err := a.send(ctx)
	switch {
	case err != nil:
		return err
	case !g.refused():
		a.got, a.state = a.openHolder(g), done
		return nil
	case a.wish.under != nil:
		return a.reentryError(ctx, a.wish.under.LoseOnRefusal())
	case !a.wish.MayWait(), a.timedOut():
		return a.busyError(nil)
	default:
		a.state = joining
		return nil
	}
}

// join takes a place in the queue of the key.
func (a *attempt) join(ctx context.Context) error {
	w := &a.first
	if a.joined {
		w = new(queue.Waiter) // a hand-off under way may still refer to the last waiter
	}
	w.Wish = a.queueWish(ctx)
	if err := a.in.Queues.Join(a.key, w, a.now); err != nil {
		return NotQueued(err, a.key, a.wish.Kind)
	}
	a.waiter, a.joined, a.state = w, true, queued
	a.wish.admitted = true
	return nil
}

func (a *attempt) queueWish(ctx context.Context) queue.Wish {
	until, kind := a.until, a.wish.Kind
	if deadline, ok := ctx.Deadline(); ok {
		until = resend.Earliest(until, deadline)
	}
	return queue.Wish{
		Kind: kind.Family, Shared: kind.Shared(), Lane: a.manner.lane(a),
		Together: kind.Shares == redisstore.Unlimited, Many: kind.Shares == redisstore.Limited,
		Announces: a.manner.announces,
		Since:     a.start, Until: until, Lease: a.wish.Lease, Renewed: a.wish.Renewed, Token: a.wish.Token,
		MaxWaiters: a.wish.MaxWaiters, Several: a.group.keys != nil, Admitted: a.wish.admitted,
	}
}

// askQueue asks the queue for the next step.
func (a *attempt) askQueue(ctx context.Context) error {
	a.todo = a.in.Queues.Next(a.waiter, a.now)
	switch {
	case a.todo.Grant != nil && ctx.Err() != nil:
		return a.busyError(failure.Ended(ctx)) // run then leaves the queue, which releases the grant
	case a.todo.Grant != nil:
		a.acceptGrant(a.todo.Grant, a.todo.BlockedBy)
	case a.todo.Err != nil:
		return NotQueued(a.todo.Err, a.key, a.wish.Kind)
	case a.todo.Attempt:
		a.state = sending
	default:
		a.state = blocked
	}
	return nil
}

// tryInTurn sends the command in the turn of this waiter.
func (a *attempt) tryInTurn(ctx context.Context) error {
	if err := a.in.FailFast(ctx, a.key); err != nil {
		return err
	}
	g, err := a.send(ctx)
	if err != nil {
		return err
	}
	if !g.refused() {
		a.receive(a.openHolder(g))
		return nil
	}
	a.state = blocked
	return a.handleRefusal(ctx)
}

// handleRefusal reports a refusal to the queue and subscribes to the messages of the lock. An attempt at several keys
// first moves to the queue of the taken key. handleRefusal returns errPassedOver if other callers were first too often.
func (a *attempt) handleRefusal(ctx context.Context) error {
	queues := a.in.Queues
	if a.waiter.Key() != a.key {
		if err := queues.Move(a.waiter, a.key, a.now); err != nil {
			return NotQueued(err, a.key, a.wish.Kind)
		}
	}
	passed := queues.RecordRefusal(a.waiter, *a.refusal.Refusal, identity.RivalOf(a.refusal.Holder), a.now)
	if passedOver := a.group.passedOver; passedOver != nil && passedOver(passed) {
		return errPassedOver
	}
	a.subscribe(ctx)
	return nil
}

// plan chooses the next state of a waiter that did not get the lock: preparing if BeforeWait is due, queued after a
// refusal, and otherwise resting.
func (a *attempt) plan(ctx context.Context) error {
	if a.wish.BeforeWait != nil && a.patience.end.IsZero() { // a waiter that holds other keys waits only briefly
		a.recordQueued(a.todo.BlockedBy)
		a.state = preparing
		return nil
	}
	if a.todo.Subscribe {
		a.subscribe(ctx)
	}
	if a.state = resting; a.todo.Attempt {
		a.state = queued // a grant may have come since the attempt
	}
	return nil
}

// subscribe subscribes to the messages of the lock, if the kind has messages and the queue has no subscription yet.
func (a *attempt) subscribe(ctx context.Context) {
	if a.listenField != a.place.taken {
		a.listenField = a.place.taken
		a.in.Queues.Unsubscribe(a.waiter)
	}
	if a.manner.listens && a.in.Queues.NeedsSubscription(a.waiter) {
		topic := wakeup.Topic{Key: a.key, Lane: a.place.lane}
		a.in.Queues.Subscribe(a.waiter, a.in.Wakeups.Subscribe(ctx, topic, a.wish.Kind.WaiterChannel(a.key, a.place.taken)))
	}
}

// sleep sleeps until the waiter is woken, has to poll, or has reached the end of its wait. It returns an error if ctx is
// done or the client begins to close.
func (a *attempt) sleep(ctx context.Context) error {
	if a.timer == nil {
		a.recordQueued(a.todo.BlockedBy)
		a.timer = time.NewTimer(a.sleepTime())
	} else {
		a.timer.Reset(a.sleepTime())
	}
	select {
	case <-a.waiter.Signal():
		a.now, a.state = time.Now(), queued
	case <-a.timer.C:
		if a.now = time.Now(); a.timedOut() || a.patience.ended(a.now) {
			a.state = ending
			return nil
		}
		a.in.Queues.Poll(a.waiter)
		a.state = queued
	case <-ctx.Done():
		return a.busyError(failure.Ended(ctx))
	case <-a.in.Sender.Closing:
		return failure.Closed
	}
	return nil
}

// sleepTime returns the longest sleep of a waiter. The manner of the kind determines the sleep, but the waiter does not
// sleep beyond the end of its wait. The head of the queue also wakes when the lease in the last refusal expires. If
// several holders have the lock, as with a semaphore, the refusal contains the lease that expires first.
func (a *attempt) sleepTime() time.Duration {
	d := a.manner.sleep(a, a.todo)
	if r := &a.refusal; a.todo.Head && r.Refusal != nil && r.TTL >= 0 {
		d = min(d, max(r.left(a.now)+time.Millisecond, time.Millisecond))
	}
	if end := resend.Earliest(a.until, a.patience.end); !end.IsZero() {
		d = min(d, end.Sub(a.now))
	}
	return d
}

func (a *attempt) stopTimer() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// prepareOutside leaves the queue, so that BeforeWait delays no other caller, and then calls BeforeWait.
func (a *attempt) prepareOutside(ctx context.Context) error {
	a.leaveQueue()
	a.wish.admitted, a.state = false, joining
	return a.prepare(ctx)
}

// prepare calls BeforeWait, if it was not called before. It returns an error if the wait has ended since.
func (a *attempt) prepare(ctx context.Context) error {
	prepare, until := a.wish.BeforeWait, a.until
	if prepare == nil {
		return nil
	}
	a.wish.BeforeWait = nil
	if until.IsZero() {
		until = a.now.Add(unending)
	}
	inTime, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	defer context.AfterFunc(a.in.Service, cancel)()
	err := prepare(inTime)
	switch a.now = time.Now(); {
	case ctx.Err() != nil:
		return a.busyError(failure.Ended(ctx))
	case err != nil && (inTime.Err() == nil || !errors.Is(err, inTime.Err())):
		return err
	case a.in.Service.Err() != nil:
		return failure.Closed
	case a.timedOut():
		return a.busyError(nil)
	default:
		return nil
	}
}

// endWait ends the wait and returns its error. If a release has just given the lock to the waiter, endWait accepts the
// lock instead.
func (a *attempt) endWait(ctx context.Context) error {
	if grant, from := a.in.Queues.GrantOf(a.waiter); grant != nil && ctx.Err() == nil {
		a.acceptGrant(grant, from)
		return nil
	}
	if !a.timedOut() {
		return errGaveUp
	}
	if err := a.in.FailFast(ctx, a.key); err != nil {
		return err // it is unknown whether the lock is taken
	}
	if !a.knownTaken() && a.in.Queues.NoAnswerSince(a.waiter) {
		return failure.BecauseOf(ErrNoAnswer)
	}
	return a.busyError(nil)
}

// acceptGrant accepts the lock that a release of this client has given to the waiter. from is the field of the holder
// that was released.
func (a *attempt) acceptGrant(grant queue.Holder, from string) {
	a.in.Queues.Accept(a.waiter)
	a.report.HandedOff, a.report.BlockedBy = true, from
	a.receive(holding.AsHolder(grant))
}

// receive ends the wait with the holder o. If o no longer has the lock, for example because its lease has expired,
// receive releases o and the wait begins again.
func (a *attempt) receive(o *holding.Holder) {
	a.waiter = nil
	if o.Alive(a.now) {
		a.got, a.state = o, done
		return
	}
	a.in.Holdings.ReleaseInBackground(o)
	a.state = joining
}

// leaveQueue leaves the queue. If a release has given the lock to the waiter, leaveQueue releases the lock. It does
// nothing if the attempt is not in a queue.
func (a *attempt) leaveQueue() {
	if a.waiter == nil {
		return
	}
	if grant := a.in.Queues.Leave(a.waiter, time.Now()); grant != nil {
		a.in.Holdings.ReleaseInBackground(holding.AsHolder(grant))
	}
	a.waiter = nil
}

// openHolder opens a holder for a grant and registers it with the queue of the key. With several keys it does so for each
// key, and keeps the other holders in a.group.others. For a kind of lock without holders it only removes the waiter.
func (a *attempt) openHolder(g grant) *holding.Holder {
	in, kind := a.in, a.wish.Kind
	o := in.Holdings.Open(a.claim(g.field), g.token, g.sent, a.wish.Lease)
	if kind.Holds == redisstore.Unheld {
		if strings.Contains(g.field, ":") { // an operation that has changed the count
			in.Operations.Note(a.key, g.field)
		}
		if a.waiter != nil {
			in.Queues.RecordSuccess(a.waiter, a.now)
		}
		return o
	}
	in.Holdings.Register(o, a.wish.under, a.waiter, g.sent, a.now)
	for i, key := range a.group.keys {
		if i > 0 {
			other := in.Holdings.Open(redisstore.Claim{Kind: kind, Key: key, Field: g.field}, 0, g.sent, a.wish.Lease)
			in.Holdings.Register(other, nil, nil, g.sent, a.now)
			a.group.others = append(a.group.others, other)
		}
	}
	return o
}

func (a *attempt) claim(field string) redisstore.Claim {
	return redisstore.Claim{Kind: a.wish.Kind, Key: a.key, Field: field}
}

// wantedKeys returns all keys, in a slice that the caller may keep.
func (a *attempt) wantedKeys() []string {
	if a.group.keys != nil {
		return slices.Clone(a.group.keys)
	}
	return []string{a.key}
}

// timedOut reports whether the wait time has ended.
func (a *attempt) timedOut() bool { return !a.until.IsZero() && !a.now.Before(a.until) }

// cutShort reports whether the wait time has ended before the usual time limit of the last command.
func (a *attempt) cutShort() bool { return a.cut && a.timedOut() }

// knownTaken reports whether this client knows that another holder had the lock while this attempt waited: from a
// refusal of this attempt or of another waiter, or because a holder of this client had the lock.
func (a *attempt) knownTaken() bool {
	if a.refusal.Refusal != nil {
		return true
	}
	if a.waiter == nil {
		return false
	}
	r, at, taken := a.in.Queues.TakenSince(a.waiter)
	if r != nil {
		a.refusal = refusal{r, at}
	}
	return taken
}

// recordRefusal records a refusal, which names the holder that has the lock.
func (a *attempt) recordRefusal(r *queue.Refusal) {
	if before := a.refusal.Refusal; before != nil && before.Holder != r.Holder {
		a.patience.renew(a.now)
	}
	a.refusal = refusal{r, a.now}
	if keys := a.group.keys; keys != nil {
		a.waitFor(min(max(r.Index, 0), len(keys)-1))
	}
	a.report.BlockedBy = r.Holder
	a.reportContention(r.TTL)
}

// waitFor chooses the key that an attempt at several keys waits for. The script checks that key first and acquires no
// other key if that key is taken.
func (a *attempt) waitFor(index int) {
	keys := a.group.keys
	keys[0], keys[index] = keys[index], keys[0]
	a.key = keys[0]
}

// recordQueued records that another caller of this client holds the lock or waits before this caller. field is the
// field of the holder, if known.
func (a *attempt) recordQueued(field string) {
	if a.refusal.Refusal == nil {
		a.report.BlockedBy = field
	}
	a.reportContention(0)
}

// reportContention records that the lock is contended. The first call notifies the caller.
func (a *attempt) reportContention(ttl time.Duration) {
	if a.report.Contended {
		return
	}
	a.report.Contended = true
	if a.wish.Contended != nil {
		a.wish.Contended(a.report.BlockedBy, ttl)
	}
}

// busyError returns the error of an attempt that did not get the lock.
func (a *attempt) busyError(cause error) error {
	e := &BusyError{Key: a.key, Waited: time.Since(a.start), Cause: failure.Mention(cause)}
	if a.refusal.Refusal != nil {
		e.BlockedBy = a.refusal.Holder
		e.RetryAfter = max(a.refusal.left(time.Now()), 0)
	}
	e.recordOwnHold(a.in, a.key)
	if a.withoutPermits() {
		e.Cause = errNoPermits
		if cause != nil {
			e.Cause = fmt.Errorf("%w: %w", errNoPermits, failure.Mention(cause))
		}
	}
	return e
}

// recordOwnHold records whether a hold of this client has the lock.
func (e *BusyError) recordOwnHold(in *Acquirer, key string) {
	if field, own := in.Holdings.Blocking(key, e.BlockedBy); own {
		e.OwnHold, e.BlockedBy = true, field
	}
}

// withoutPermits reports whether Redis refused a permit of a semaphore although no holder has a permit.
func (a *attempt) withoutPermits() bool {
	return a.wish.Demand == "0" && a.refusal.Refusal != nil && a.refusal.Holder == ""
}

// stopError returns the error of an attempt that ended because its context is done or its client began to close.
func (a *attempt) stopError(ctx context.Context, cause error) error {
	if errors.Is(cause, failure.Closed) && ctx.Err() == nil {
		return failure.Closed
	}
	return a.busyError(cause)
}

// reentryError returns the error of a re-entry that failed. If the lock is lost or ctx is done, the error is a
// [BusyError]. Otherwise it is not, because no other holder has the lock: if the wait time has ended, Redis was too
// slow.
func (a *attempt) reentryError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, failure.Lost):
		return a.busyError(err)
	case ctx.Err() != nil:
		return a.busyError(failure.Ended(ctx))
	default:
		return failure.BecauseOf(err)
	}
}

// reenter adds a hold that has not begun to a holder that ctx carries.
func (in *Acquirer) reenter(ctx context.Context, o *holding.Holder, w *Wish, report *Report) error {
	a := in.attempt(o.Key(), w, report, time.Now())
	final, err := o.Reenter(ctx, holding.Entry{
		Span: a.span(), Lease: w.Lease, Renewed: w.Renewed,
		Valid: func() bool {
			again, _, _ := in.FindCarried(ctx, o.Key(), w) //nolint:errcheck // an error also means that ctx does not carry this holder
			return again == o
		},
	})
	if err == nil || final {
		return err
	}
	return a.reentryError(ctx, err)
}

// span returns the time limits of an operation on a lock that the caller already holds: the wait time.
func (a *attempt) span() resend.Span {
	switch {
	case a.wish.Forever:
		return resend.Span{}
	case a.wish.Wait == 0:
		return resend.Span{Passing: a.now, Answers: a.answers}
	default:
		return resend.Span{End: a.until, Passing: a.until}
	}
}
