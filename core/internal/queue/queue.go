package queue

import (
	"errors"
	"time"
)

// ErrFull means that the number of waiters has reached a limit.
var ErrFull = errors.New("queue: too many waiters")

// KindError means that a key is in use in this process as another kind of lock.
type KindError struct {
	Key  string
	Kind string // the kind of lock that uses the key
}

func (e *KindError) Error() string { return "queue: " + e.Key + " is in use as " + e.Kind }

// Wish describes the request of a waiter.
type Wish struct {
	Kind       string        // kind of lock; all users of a key within this process use one kind
	Shared     bool          // the waiter shares the lock with other shared holders
	Together   bool          // any number of holders share the lock: neighbors in the queue attempt at the same time
	Many       bool          // a limited number of holders share the lock: when a waiter gets it, the next few waiters attempt
	Announces  bool          // an attempt of the waiter keeps new shared holders out
	Lane       string        // name of the lane of a waiter that waits in Redis; "": the waiter joins the queue of the key
	Since      time.Time     // when the caller arrived; decides its place in the queue
	Until      time.Time     // deadline of the wait; zero: none
	Lease      time.Duration // the lease that a hand-off requests
	Renewed    bool          // the watchdog renews that lease
	Token      bool          // a hand-off also issues a fencing token
	MaxWaiters int           // limit on the waiters of the key; 0: Config.PerKey
	Several    bool          // the waiter wants several keys at once, so no hand-off gives it a single key
	Admitted   bool          // the waiter passed the limits before, so Join does not apply them again
}

// Waiter is one caller that waits. The caller sets the [Wish] and passes the waiter to [Queues.Join]. From
// then on the waiter belongs to its queue, until it is outside again.
type Waiter struct {
	Wish

	queue  *queue        // the queue that it joined; only the goroutine that waits changes this field
	signal chan struct{} // wakes the waiter, which then calls Queues.Next; capacity 1

	// The mutex of the shard guards the rest.
	prev, next    *Waiter
	state         state
	asking        bool      // its attempt is under way
	asked         time.Time // when its last attempt began
	refusedAsHead bool      // Redis refused it while it was the head, so no waiter after it attempts
	wakesSeen     uint32    // queue.wakes when its last attempt began
	referred      bool      // a hand-off under way refers to it, although it is outside
	latest        time.Time // latest end of its stand-backs; zero: it did not stand back yet
	grant         Holder    // the holder that it got from a hand-off or a pass
	blockedBy     string    // field of the holder of this process that blocks it or gave it the lock; "": unknown
	skips         skips
}

// skips counts how often other waiters got the lock before a waiter for several keys.
type skips struct {
	moved bool // the waiter has moved from one of its keys, which was free, to another key, which was taken
	count int  // how often another waiter got the lock first
}

// state is the state of a waiter. Only [Waiter.become] changes it.
//
//	outside ── Join ──▶ queued ◀── Next: attempt ─── due
//	                      │ └── is woken, or polls ───▶ │
//	                      └───── TakeNext ─┬────────────┘ ◀─┐
//	                                       ▼                │
//	                                     chosen ── CancelHandOff: it is the head and attempts
//	                                       └── CompleteHandOff, CompletePass ──▶ granted
//
// From each state a waiter goes outside again: RecordGrant and RecordSuccess remove it when an attempt
// succeeded, Accept when it got the lock from another holder, and Leave in all other cases.
type state uint8

const (
	outside state = iota // not in a queue
	queued               // in its queue, with nothing to do
	due                  // in its queue; it attempts as soon as it is the head, or may attempt together with the head
	chosen               // TakeNext took it out of the queue; the hand-off or the pass is under way
	granted              // the hand-off or the pass is complete
)

func (w *Waiter) become(s state) { w.state = s }

// inQueue reports whether the waiter has a place in its queue.
func (w *Waiter) inQueue() bool { return w.state == queued || w.state == due }

// wake sends the signal of the waiter, which then calls [Queues.Next]. A waiter without a signal has not
// slept yet and calls Next anyway. The shard is locked.
func (w *Waiter) wake() {
	if w.signal == nil {
		return
	}
	select {
	case w.signal <- struct{}{}:
	default: // the last signal is still pending
	}
}

// ensureSignal creates the signal of a waiter that is about to sleep, if it has none.
func (w *Waiter) ensureSignal() {
	if w.signal == nil {
		w.signal = make(chan struct{}, 1)
	}
}

// Signal returns the channel on which the waiter is woken. After a receive the waiter calls [Queues.Next].
// The channel is nil until Next has returned a step that is not an attempt.
func (w *Waiter) Signal() <-chan struct{} { return w.signal }

// Key returns the key of the queue of the waiter.
func (w *Waiter) Key() string { return w.queue.key }

// Reusable reports whether the memory of a waiter that is outside can be used again, because no hand-off
// refers to it.
func (w *Waiter) Reusable() bool { return !w.referred }

// setGrant gives h to a chosen waiter and wakes it. If the waiter is not chosen any more, because it has
// left, setGrant does nothing and returns false. The shard is locked.
func (w *Waiter) setGrant(h Holder) bool {
	if w.state != chosen {
		return false
	}
	w.grant = h
	w.become(granted)
	w.wake()
	return true
}

// reserve is the time that a waiter keeps for a last attempt. The waiter stops standing back that long
// before its deadline.
const reserve = 20 * time.Millisecond

// limitStandBack returns how long the waiter leaves the lock to other processes: for wanted, but not
// beyond reserve before its deadline. A waiter that first stands back less than twice reserve before its
// deadline does so for at most half of the remaining time.
func (w *Waiter) limitStandBack(wanted time.Duration, now time.Time) time.Duration {
	if wanted <= 0 || w.Until.IsZero() {
		return max(wanted, 0)
	}
	if w.latest.IsZero() {
		w.latest = w.Until.Add(-min(w.Until.Sub(now)/2, reserve))
	}
	return max(min(wanted, w.latest.Sub(now)), 0)
}

// order is a linked list of the waiters of one queue. The waiter that arrived first is at the front.
type order struct {
	first, last *Waiter
	length      int
}

// enter inserts w by its arrival time, because w may come from another queue. It reports whether w is now
// the first waiter.
func (o *order) enter(w *Waiter) bool {
	after := o.last
	for after != nil && after.Since.After(w.Since) {
		after = after.prev
	}
	o.insert(w, after)
	return after == nil
}

// insert puts w after the waiter after, or at the front if after is nil.
func (o *order) insert(w, after *Waiter) {
	w.prev, w.next = after, o.first
	if after != nil {
		w.next = after.next
		after.next = w
	} else {
		o.first = w
	}
	if w.next != nil {
		w.next.prev = w
	} else {
		o.last = w
	}
	o.length++
}

func (o *order) remove(w *Waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		o.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		o.last = w.prev
	}
	w.prev, w.next = nil, nil
	o.length--
}

// queue is the queue of one key. It contains the waiters of this process in the order of their arrival,
// and the holders of this process. The mutex of the shard guards it.
//
// Most locks are held while no other client wants them. So the fields that are pointers or maps are
// allocated when they are first needed.
type queue struct {
	key          string
	kind         string // kind of lock of the holders and waiters; see setKind
	order        order
	holders      holders
	handOffs     int32        // number of hand-offs and passes under way; may exceed 1 if the first is slow
	wakes        uint32       // how often the lock became free or may have become free
	subscription Subscription // receives the messages while a waiter waits; nil: none
	pace         *pace        // limits the attempts that messages cause; nil: no message came
	evidence     evidence
	past         *past             // nil: only the present holder, if any, had the lock so far; see ensurePast
	lanes        map[string]*queue // lanes of the waiters that wait in Redis, by name; nil: there were none
	lane         *lane             // nil: this is the queue of the key, not a lane
}

// lane marks a queue as a lane: the separate queue of one waiter that queues in Redis. Redis decides when
// the turn of that waiter comes, so the waiter does not wait for other waiters of this process. A lane
// counts as one waiter of its key. It has no holders and no turns, and is removed when its waiter leaves.
type lane struct {
	parent *queue // the queue of the key
	name   string
}

// ensureLane returns the lane called name. It creates the lane if necessary.
func (kq *queue) ensureLane(name string) *queue {
	if kq.lanes == nil {
		kq.lanes = make(map[string]*queue)
	}
	if kq.lanes[name] == nil {
		kq.lanes[name] = &queue{key: kq.key, kind: kq.kind, lane: &lane{kq, name}}
	}
	return kq.lanes[name]
}

// ensurePast returns the past of the queue. It creates the past if necessary. If the key has a holder, the
// new past begins with the grant of that holder.
func (kq *queue) ensurePast() *past {
	if kq.past == nil {
		kq.past = &past{}
		if kq.holders.any() {
			kq.past.beginRun(kq.holders.list[0].known, 1)
		}
	}
	return kq.past
}

// checkKind returns a [KindError] if the queue is for another kind of lock.
func (kq *queue) checkKind(kind string) error {
	if kq.kind != kind {
		return &KindError{kq.key, kq.kind}
	}
	return nil
}

// inUse reports whether a holder, a waiter or a hand-off needs the queue.
func (kq *queue) inUse() bool {
	return kq.order.first != nil || kq.holders.any() || kq.handOffs > 0 || len(kq.lanes) > 0
}

// waiters returns the number of waiters for the key.
func (kq *queue) waiters() int { return kq.order.length + len(kq.lanes) }

// oldest returns the arrival time of the longest waiting caller; zero if none waits.
func (kq *queue) oldest() (oldest time.Time) {
	if w := kq.order.first; w != nil {
		oldest = w.Since
	}
	for _, l := range kq.lanes {
		oldest = earlier(oldest, l.oldest())
	}
	return oldest
}

// earlier returns the earlier of two times; a zero time does not count.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// mayEnter reports whether an attempt of w, as the head, may succeed: no hand-off is under way, and no
// holder of this process keeps w out.
func (kq *queue) mayEnter(w *Waiter) bool { return kq.handOffs == 0 && kq.holders.admits(w.Shared) }

// shouldAttempt reports whether w attempts when it becomes the head. w does so if the attempt may
// succeed, or if the attempt keeps new shared holders out.
func (kq *queue) shouldAttempt(w *Waiter) bool {
	return kq.mayEnter(w) || kq.holders.shared() && w.Announces
}

// enter puts w into the queue. If w becomes the head and shouldAttempt returns true, w attempts
// before it sleeps.
func (kq *queue) enter(w *Waiter) {
	w.queue = kq
	w.become(queued)
	if kq.order.enter(w) && kq.shouldAttempt(w) {
		w.become(due)
	}
}

// leave removes a waiter that leaves without the lock. If the waiter was the head, leave wakes the next
// head, provided that shouldAttempt returns true.
func (kq *queue) leave(w *Waiter) {
	wasHead := kq.order.first == w
	kq.order.remove(w)
	if head := kq.order.first; wasHead && head != nil && kq.shouldAttempt(head) {
		kq.wakeHead()
	}
}

// wakeHead wakes the head and makes it attempt.
func (kq *queue) wakeHead() {
	kq.wakes++
	if w := kq.order.first; w != nil {
		w.become(due)
		w.wake()
	}
}

// wakeNext wakes the head after a grant if the head may share the lock with the new holder, or if its
// attempt keeps new shared holders out. If first is true, the new holder is the only one, and wakeNext
// also wakes the waiters after the head that may share the lock with it. If a limited number of holders
// share the lock, wakeNext calls wakeMore instead.
func (kq *queue) wakeNext(first bool) {
	head := kq.order.first
	switch {
	case head == nil || !kq.shouldAttempt(head):
		return
	case head.Many:
		kq.wakeMore()
		return
	}
	kq.wakeHead()
	for w := head; first && w != nil && w.Together && kq.mayEnter(w); w = w.next {
		w.become(due)
		w.wake()
	}
}

// maxAttempting is the number of waiters for the permits of a semaphore that may attempt at the same time.
const maxAttempting = 8

// wakeMore makes two more waiters attempt after a waiter got a permit, because more permits may be free.
//
// A waiter that was refused as the head attempts alone until it gets a permit. Only waiters whose attempts
// are already under way may overtake it. If permits become free while the attempt of the head is under
// way, and Redis refuses that attempt, the head attempts again.
func (kq *queue) wakeMore() {
	more, attempting := 2, 0
	for w := kq.order.first; w != nil && w.Many && more > 0 && attempting < maxAttempting; w = w.next {
		switch {
		case w.state == due:
		case !w.asking:
			w.become(due)
			w.wake()
			more--
		case w == kq.order.first && w.wakesSeen != kq.wakes:
			w.become(due) // the permits that became free since its attempt began woke only the head of that time
		}
		if attempting++; w.refusedAsHead {
			return
		}
	}
}

// setKind sets the kind of the queue to the kind of the last grant of Redis. If the kind changes, setKind
// wakes all waiters. Waiters for another kind get a [KindError] at their next step, and no lock is handed
// to them.
func (kq *queue) setKind(kind string) {
	if kq.kind == kind {
		return
	}
	kq.kind = kind
	for w := kq.order.first; w != nil; w = w.next {
		w.wake()
	}
}

// recordGrant records that an attempt acquired the lock. The caller then calls addHolder.
func (kq *queue) recordGrant(g Grant, now time.Time) {
	kq.setKind(g.Kind)
	kq.pace = nil
	kq.evidence.clearAttempt()
	switch {
	case kq.past == nil && !kq.holders.any(): // ensurePast adds this grant if it is needed
	case kq.holders.any() && kq.holders.admits(g.Shared):
		kq.ensurePast().recordJoin(now)
	default:
		past := kq.ensurePast()
		past.turns.recordTrip(now.Sub(g.Sent))
		past.beginRun(now, max(kq.order.length, 1)) // the head among them
	}
}

// addHolder adds the holder of a grant and returns the holders that the grant replaced.
func (kq *queue) addHolder(g Grant, now time.Time) []Replaced {
	t := tenure{g.Holder, g.Holder.Field(), g.Shared, now}
	if g.Under != nil && kq.holders.index(g.Under) >= 0 {
		kq.holders.join(t)
		return nil
	}
	return kq.holders.add(t, g.Sent)
}

// recordFree records that the last holder is gone, and wakes the head.
func (kq *queue) recordFree(notified int, now time.Time) {
	kq.pace.cancelWait()
	if kq.past != nil {
		kq.past.recordRelease(now, notified)
	}
	kq.wakeHead()
}

// takeNext takes the waiter that gets the lock next out of the queue and returns it. It returns nil if the
// lock has to be freed.
func (kq *queue) takeNext(limits RunLimits, now time.Time) *Waiter {
	if kq.order.first == nil || !kq.holders.exclusive() || !kq.ensurePast().mayHandOff(kq.key, now, limits) {
		return nil
	}
	w := kq.nextWaiter(now)
	if w != nil {
		kq.order.remove(w)
		w.become(chosen)
		w.blockedBy = kq.holders.field()
		kq.handOffs++
	}
	return w
}

// lateAnswer is the age at which an unanswered attempt counts as late. A release skips the waiter of a late
// attempt. For an attempt that is not late, the release frees the lock, so that the attempt can succeed.
const lateAnswer = 10 * time.Millisecond

// nextWaiter returns the first waiter to which the lock can be handed over. It skips three sorts of
// waiters: waiters for another kind of lock, which are about to leave; waiters for several keys that have
// called [Queues.Move]; and waiters whose attempt has been unanswered for lateAnswer.
//
// nextWaiter returns nil if no waiter is left, or if the first remaining waiter wants several keys, wants
// to share the lock, or has an attempt under way. The lock then has to be freed.
func (kq *queue) nextWaiter(now time.Time) *Waiter {
	w := kq.order.first
	for w != nil && (w.Kind != kq.kind || w.Several && w.skips.moved || w.asking && now.Sub(w.asked) >= lateAnswer) {
		w = w.next
	}
	if w == nil || w.Several || w.Shared || w.asking {
		return nil
	}
	for before := kq.order.first; before != w; before = before.next {
		before.skips.count++
	}
	return w
}

// recordHandOff records the end of a hand-off or a pass, which counts as a turn even if the waiter has left.
func (kq *queue) recordHandOff() {
	kq.handOffs--
	kq.ensurePast().turns.recordHandOff()
}

// standBackTime returns for how long the head leaves the lock to other processes. The head does so if
// other processes have the next turn, if messages come too fast, or if this process gives way.
func (kq *queue) standBackTime(now time.Time) time.Duration {
	paced := kq.pace.left(now)
	if kq.past == nil {
		return paced
	}
	return max(kq.past.standBackTime(kq.key, now, !kq.holders.any(), !kq.lacksMessages()), paced)
}

// lacksMessages reports whether this process has no holder and the subscription of the queue receives no
// messages.
func (kq *queue) lacksMessages() bool {
	return !kq.holders.any() && kq.subscription != nil && !kq.subscription.Confirmed()
}

// needsSubscription reports whether other processes have the next turn and this process has no
// subscription for the message of their release. A head that stands back for another reason does not wait
// for a message.
func (kq *queue) needsSubscription(now time.Time) bool {
	return kq.subscription == nil && kq.ensurePast().turns.wait(now) > 0
}

// expectEcho records that a command that publishes a message is about to be sent, if this process receives
// the messages.
func (kq *queue) expectEcho(now time.Time) {
	if kq.past.listens() {
		kq.past.echo.expect(now)
	}
}

// countMessage reports whether a message may wake the head. If so, it also counts the message, unless the
// head is due anyway.
func (kq *queue) countMessage(now time.Time) bool {
	if kq.pace.left(now) > 0 {
		return false
	}
	if head := kq.order.first; head == nil || head.state != due {
		if kq.pace == nil {
			kq.pace = &pace{}
		}
		kq.pace.countMessage(now)
	}
	return true
}

// contest records that another process may have the lock, or may have had it. It makes the head attempt,
// unless messages come too fast, and returns the holders of this process.
func (kq *queue) contest(now time.Time) []Holder {
	kq.ensurePast().possession.contest()
	if kq.countMessage(now) {
		kq.wakeHead()
	}
	return kq.holders.all()
}

// subscribe keeps sub if the queue has no subscription, and reports whether it kept sub.
func (kq *queue) subscribe(sub Subscription) bool {
	if kq.subscription != nil {
		return false
	}
	kq.subscription, kq.ensurePast().subscription = sub, sub
	return true
}

// unsubscribe removes the subscription and returns it for [releaseSubscription].
func (kq *queue) unsubscribe() Subscription {
	sub := kq.subscription
	kq.subscription = nil
	return sub
}

// unsubscribeIfEmpty calls unsubscribe if no waiter is left. Otherwise it returns nil.
func (kq *queue) unsubscribeIfEmpty() Subscription {
	if kq.order.first != nil {
		return nil
	}
	return kq.unsubscribe()
}
