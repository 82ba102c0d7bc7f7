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

// Wish is what a waiter wants.
type Wish struct {
	Kind       string        // kind of lock; all users of a name within this process use one kind
	Shared     bool          // it shares the lock with other shared holders
	Together   bool          // with any number of them: neighbors in the queue attempt at the same time
	Many       bool          // with a limited number of them: after a waiter gets in, a few attempt at the same time
	Announces  bool          // its attempt keeps out further sharers of the lock
	Lane       string        // name of the separate queue of a waiter that waits in Redis; "" for the common queue
	Since      time.Time     // when the caller arrived; decides its place in the queue
	Until      time.Time     // deadline of the wait; zero: none
	Lease      time.Duration // the lease that a hand-off requests
	Renewed    bool          // the waiter renews that lease
	Token      bool          // a hand-off also issues a fencing token
	MaxWaiters int           // limit on the waiters of the key; 0: Config.PerKey
	Several    bool          // it wants several keys at once, so no hand-off gives it a single one
	Admitted   bool          // it passed the limits before and is not checked again
}

// Waiter is one caller that waits. It is created with its [Wish] and belongs to its queue from
// [Queues.Join] until it is outside again.
type Waiter struct {
	Wish

	queue  *queue        // where it stands; only the waiter itself changes it
	signal chan struct{} // wakes the waiter to check its state; capacity 1

	// The mutex of the shard guards the rest.
	prev, next *Waiter
	state      state
	asking     bool      // its attempt is under way
	asked      time.Time // when that began
	waits      bool      // Redis refused it as the head: no waiter behind it attempts
	wakes      uint32    // queue.wakes when its attempt began
	referred   bool      // a hand-off under way refers to it
	latest     time.Time // latest end of its stand-backs; zero: it did not stand back yet
	grant      Holder    // the holder of a granted waiter
	behind     string    // field of the holder in this process that it waits for or got the lock from
	skips      skips
}

// skips counts how often other waiters went before a waiter for several keys.
type skips struct {
	moved bool // one key was free while another key was taken
	count int  // how often another waiter went first since then
}

// state is the state of a waiter. Only [Waiter.become] changes it.
//
//	outside ── Join ──▶ queued ◀── Next: attempt ─── due
//	                      │ └── is woken, or polls ───▶ │
//	                      └────── Choose ──┬────────────┘ ◀─┐
//	                                       ▼                │
//	                                     chosen ── NotHanded, if it is the head
//	                                       └── Handed, Passed ──▶ granted
//
// From each state a waiter goes outside again: by Acquired when an attempt succeeded, by Accept
// with a grant, by Leave without the lock.
type state uint8

const (
	outside state = iota // not in a queue
	queued               // in its queue, with nothing to do
	due                  // in its queue; it attempts as soon as it is the head or may attempt beside the head
	chosen               // taken out of the queue by a hand-off or a pass under way
	granted              // the hand-off or the pass arrived
)

func (w *Waiter) become(s state) { w.state = s }

// inQueue reports whether the waiter has a place in its queue.
func (w *Waiter) inQueue() bool { return w.state == queued || w.state == due }

// wake makes the waiter check its state. The shard is locked, so the waiter either receives the
// signal or does not need it yet.
func (w *Waiter) wake() {
	if w.signal == nil {
		return
	}
	select {
	case w.signal <- struct{}{}:
	default: // the last signal is still pending
	}
}

// listen creates the signal of a waiter that is about to sleep.
func (w *Waiter) listen() {
	if w.signal == nil {
		w.signal = make(chan struct{}, 1)
	}
}

// Signal returns the channel that makes the waiter call [Queues.Next] again. It is nil until a step
// without an attempt.
func (w *Waiter) Signal() <-chan struct{} { return w.signal }

// Key returns the key of the queue in which the waiter stands.
func (w *Waiter) Key() string { return w.queue.key }

// Reusable reports whether no hand-off refers to a waiter that is outside.
func (w *Waiter) Reusable() bool { return !w.referred }

// give grants the lock to a chosen waiter and reports whether the waiter was still there. The shard is locked.
func (w *Waiter) give(h Holder) bool {
	if w.state != chosen {
		return false
	}
	w.grant = h
	w.become(granted)
	w.wake()
	return true
}

// reserve is the part of its wait time that a caller that stands back keeps for its attempt.
const reserve = 20 * time.Millisecond

// standsBack limits the time for which the waiter leaves the lock to others. A waiter whose deadline is
// near keeps enough time to find out whether the lock is free.
func (w *Waiter) standsBack(wanted time.Duration, now time.Time) time.Duration {
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

// enter inserts a waiter by its age, because it may come from another queue. It reports whether the
// waiter is the first.
func (o *order) enter(w *Waiter) bool {
	after := o.last
	for after != nil && after.Since.After(w.Since) {
		after = after.prev
	}
	o.insert(w, after)
	return after == nil
}

// insert puts a waiter behind after, or at the front if after is nil.
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

// queue is the queue of one key: the waiters of this process in the order of their arrival, and the
// holders of this process. Only the head talks to Redis. The shard of the key guards it.
//
// Most locks are held while no other client wants them. So the parts behind a pointer are allocated
// when they are first needed.
type queue struct {
	key          string
	kind         string // kind of lock of the holders and waiters; see takeAs
	order        order
	holders      holders
	handing      int32        // hand-offs under way; more than one if the first one is slow
	wakes        uint32       // how often the lock became free or may have become free
	subscription Subscription // receives the messages while a waiter waits; nil: none
	pace         *pace        // spreads the attempts that messages cause; nil: there was no message
	evidence     evidence
	past         *past             // nil: only the present holder, if any, had the lock so far; see remember
	lanes        map[string]*queue // lanes of the waiters that wait in Redis, by name; nil: there were none
	lane         *lane             // set if this queue is a lane; nil: it is the queue of the key
}

// lane is the queue of one waiter that waits for a key in Redis. Redis decides when its turn comes, so
// no waiter of this process is before it. A lane counts as a waiter of its key, lives in the
// shard of the key, and is removed when its waiter leaves. It has no holders and no turns.
type lane struct {
	parent *queue // the queue of the key
	name   string
}

// inLane returns the lane of that name. It creates the lane if necessary.
func (kq *queue) inLane(name string) *queue {
	if kq.lanes == nil {
		kq.lanes = make(map[string]*queue)
	}
	if kq.lanes[name] == nil {
		kq.lanes[name] = &queue{key: kq.key, kind: kq.kind, lane: &lane{kq, name}}
	}
	return kq.lanes[name]
}

// remember returns the past of the queue. If there is none yet, it creates one. The only event so far
// may be that the present holder took the lock.
func (kq *queue) remember() *past {
	if kq.past == nil {
		kq.past = &past{}
		if kq.holders.any() {
			kq.past.begin(kq.holders.list[0].known, 1)
		}
	}
	return kq.past
}

func (kq *queue) check(kind string) error {
	if kq.kind != kind {
		return &KindError{kq.key, kq.kind}
	}
	return nil
}

// used reports whether a holder, a waiter or a hand-off needs the queue.
func (kq *queue) used() bool {
	return kq.order.first != nil || kq.holders.any() || kq.handing > 0 || len(kq.lanes) > 0
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

// open reports whether w, as the head, may find the lock free.
func (kq *queue) open(w *Waiter) bool { return kq.handing == 0 && kq.holders.admits(w.Shared) }

// begins reports whether w attempts when it becomes the head: it may find the lock free, or has to
// announce to the sharers of the lock that it waits.
func (kq *queue) begins(w *Waiter) bool { return kq.open(w) || kq.holders.shared() && w.Announces }

// enter puts a waiter into the queue. A new head attempts before it sleeps, unless a holder of this
// process keeps it out.
func (kq *queue) enter(w *Waiter) {
	w.queue = kq
	w.become(queued)
	if kq.order.enter(w) && kq.begins(w) {
		w.become(due)
	}
}

// quit removes a waiter that leaves without the lock. If the waiter was the head, the next one is woken.
func (kq *queue) quit(w *Waiter) {
	wasHead := kq.order.first == w
	kq.order.remove(w)
	if head := kq.order.first; wasHead && head != nil && kq.begins(head) {
		kq.wakeHead()
	}
}

// wakeHead makes the head attempt.
func (kq *queue) wakeHead() {
	kq.wakes++
	if w := kq.order.first; w != nil {
		w.become(due)
		w.wake()
	}
}

// wakeNext makes the waiters attempt that may get in beside a new holder. This is the head. If the
// holder is the first of several that share the lock, it is also the waiters behind the head that
// share it.
func (kq *queue) wakeNext(first bool) {
	head := kq.order.first
	switch {
	case head == nil || !kq.begins(head):
		return
	case head.Many:
		kq.widen()
		return
	}
	kq.wakeHead()
	for w := head; first && w != nil && w.Together && kq.open(w); w = w.next {
		w.become(due)
		w.wake()
	}
}

// mostAbreast is the number of waiters for a limited number of places that may attempt at the same time.
const mostAbreast = 8

// widen makes two more waiters attempt after one got in, because more places may be free.
//
// A waiter that was refused as the head attempts alone until it gets in. Only waiters whose attempts
// are already under way may overtake it. A head whose attempt is under way attempts again if it is
// refused, because a place may have become free after the refusal.
func (kq *queue) widen() {
	more, abreast := 2, 0
	for w := kq.order.first; w != nil && w.Many && more > 0 && abreast < mostAbreast; w = w.next {
		switch {
		case w.state == due:
		case !w.asking:
			w.become(due)
			w.wake()
			more--
		case w == kq.order.first && w.wakes != kq.wakes:
			w.become(due) // the places that came free since then woke only the head of that time
		}
		if abreast++; w.waits {
			return
		}
	}
}

// takeAs sets the kind of the queue. The last grant of Redis decides it, whatever this process assumed.
// Waiters of another kind find out at their next step. No lock is handed to them.
func (kq *queue) takeAs(kind string) {
	if kq.kind == kind {
		return
	}
	kq.kind = kind
	for w := kq.order.first; w != nil; w = w.next {
		w.wake()
	}
}

// take records that an attempt acquired the lock. The holder is not in the list yet.
func (kq *queue) take(g Grant, now time.Time) {
	kq.takeAs(g.Kind)
	kq.pace = nil
	kq.evidence.settle()
	switch {
	case kq.past == nil && !kq.holders.any(): // the new holder is the whole past
	case kq.holders.any() && kq.holders.admits(g.Shared):
		kq.remember().join(now)
	default:
		past := kq.remember()
		past.turns.measure(now.Sub(g.Sent))
		past.begin(now, max(kq.order.length, 1)) // the head among them
	}
}

// add adds the holder of a grant and returns the holders that no longer have the lock.
func (kq *queue) add(g Grant, now time.Time) []Replaced {
	t := tenure{g.Holder, g.Holder.Field(), g.Shared, now}
	if g.Under != nil && kq.holders.index(g.Under) >= 0 {
		kq.holders.join(t)
		return nil
	}
	return kq.holders.add(t, g.Sent)
}

// free records that the last holder is gone.
func (kq *queue) free(notified int, now time.Time) {
	kq.pace.drop()
	if kq.past != nil {
		kq.past.release(now, notified)
	}
	kq.wakeHead()
}

// choose removes the next holder from the queue and returns it. It returns nil if the lock has to be freed.
func (kq *queue) choose(limits RunLimits, now time.Time) *Waiter {
	if kq.order.first == nil || !kq.holders.alone() || !kq.remember().mayHandOff(kq.key, now, limits) {
		return nil
	}
	w := kq.nextHolder(now)
	if w != nil {
		kq.order.remove(w)
		w.become(chosen)
		w.behind = kq.holders.field()
		kq.handing++
	}
	return w
}

// lateAnswer is how long a release of this process leaves the lock to the attempt of its first waiter.
// After that other waiters go first.
const lateAnswer = 10 * time.Millisecond

// nextHolder returns the first waiter to which the lock can be handed over. It returns nil if the lock
// has to be freed: no waiter is left, or the first waiter wants several keys, or wants to share this
// key, or its own attempt is under way.
//
// It skips a waiter for another kind of lock, which is about to leave; a waiter for several keys
// while another of its keys is known to be taken; and a waiter whose answer is late.
func (kq *queue) nextHolder(now time.Time) *Waiter {
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

// handedOn records that the chosen waiter got the lock.
func (kq *queue) handedOn() {
	kq.handing--
	kq.remember().turns.handOn()
}

// standsBack returns for how long the head leaves the lock to other processes: it is their turn,
// messages come too fast, or the lock has to be left free.
func (kq *queue) standsBack(now time.Time) time.Duration {
	paced := kq.pace.left(now)
	if kq.past == nil {
		return paced
	}
	return max(kq.past.wait(kq.key, now, !kq.holders.any(), !kq.silent()), paced)
}

// silent reports whether the subscription of the queue receives no messages while this process has no
// holder.
func (kq *queue) silent() bool {
	return !kq.holders.any() && kq.subscription != nil && !kq.subscription.Confirmed()
}

// deaf reports whether it is the turn of other processes while this process would not receive the
// message of their release. A head that leaves the lock free for a silent poll does not wait for a message.
func (kq *queue) deaf(now time.Time) bool {
	return kq.subscription == nil && kq.remember().turns.wait(now) > 0
}

// expectEcho records that a command with a message is about to be sent.
func (kq *queue) expectEcho(now time.Time) {
	if kq.past.listens() {
		kq.past.echo.expect(now)
	}
}

// paced reports whether a message may wake the head. It does not postpone a head that was woken and did
// not attempt since.
func (kq *queue) paced(now time.Time) bool {
	if kq.pace.left(now) > 0 {
		return false
	}
	if head := kq.order.first; head == nil || head.state != due {
		if kq.pace == nil {
			kq.pace = &pace{}
		}
		kq.pace.next(now)
	}
	return true
}

// doubt makes the head attempt, unless messages come too fast, and returns the holders.
func (kq *queue) doubt(now time.Time) []Holder {
	kq.remember().possession.contest()
	if kq.paced(now) {
		kq.wakeHead()
	}
	return kq.holders.all()
}

// subscribe keeps a subscription and reports whether the queue needed it.
func (kq *queue) subscribe(t Subscription) bool {
	if kq.subscription != nil {
		return false
	}
	kq.subscription, kq.remember().heard = t, t
	return true
}

// unsubscribe removes the subscription and returns it for [release].
func (kq *queue) unsubscribe() Subscription {
	t := kq.subscription
	kq.subscription = nil
	return t
}

// unneeded removes the subscription if no waiter is left and returns it for [release].
func (kq *queue) unneeded() Subscription {
	if kq.order.first != nil {
		return nil
	}
	return kq.unsubscribe()
}
