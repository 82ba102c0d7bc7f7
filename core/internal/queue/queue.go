package queue

import (
	"errors"
	"time"
)

// ErrFull means that a limit on the number of waiters is reached.
var ErrFull = errors.New("queue: too many waiters")

// KindError means that a key is in use in this process as another kind of lock.
type KindError struct {
	Key  string
	Kind string // the kind as which the key is in use
}

func (e *KindError) Error() string { return "queue: " + e.Key + " is in use as " + e.Kind }

// Wish is what a waiter wants.
type Wish struct {
	Kind       string        // of lock; all users of a name within this process use one kind
	Shared     bool          // beside other shared holders
	Together   bool          // beside any number of them: neighbours in the queue attempt at once
	Many       bool          // beside some of them: after a waiter has got in, a few attempt at once
	Announces  bool          // its attempt keeps further sharers of the lock out
	Lane       string        // name of the separate queue of a waiter that waits in Redis; "": it waits behind the others
	Since      time.Time     // when the caller came: its place in the queue
	Until      time.Time     // end of the wait; zero: none
	Lease      time.Duration // for a hand-off to it
	Renewed    bool          // it renews that lease
	Token      bool          // it wants a fencing token with that
	MaxWaiters int           // how many may wait for the key; 0: Config.PerKey
	Several    bool          // it wants several keys at once, so that a single one is not handed to it
	Admitted   bool          // the limits have let it in before
}

// Waiter is one caller that waits. It is made with its [Wish], and belongs to its queue from
// [Queues.Join] until it is outside again.
type Waiter struct {
	Wish

	queue  *queue        // where it stands; only the waiter itself changes it
	signal chan struct{} // makes it look at its state; capacity 1

	// The shard guards the rest.
	prev, next *Waiter
	state      state
	asking     bool      // its attempt is under way
	asked      time.Time // when that began
	waits      bool      // it was refused as the head: no waiter behind it attempts
	wakes      uint32    // queue.wakes when its attempt began
	referred   bool      // a hand-off under way will look at it
	latest     time.Time // it stands back until then at most; zero: it has not stood back yet
	grant      Holder    // of a granted waiter
	behind     string    // field of the holder of this process that it waits for, or got the lock from
	passed     passed
}

// passed counts how often a waiter for several keys has let others go first.
type passed struct {
	moved bool // when one key was free another key was taken
	times int  // how often another waiter came first since then
}

// state is where a waiter stands. Only [Waiter.become] changes it.
//
//	outside ── Join ──▶ queued ◀── Next: attempt ─── due
//	                      │ └── is woken, or polls ───▶ │
//	                      └────── Choose ──┬────────────┘ ◀─┐
//	                                       ▼                │
//	                                     chosen ── NotHanded, if it is the head
//	                                       └── Handed, Passed ──▶ granted
//
// From each state a waiter goes outside again: by Acquired when an attempt has succeeded, by Accept
// with a grant, by Leave without the lock.
type state uint8

const (
	outside state = iota // not in a queue, or not any more
	queued               // in its queue, with nothing to do
	due                  // in its queue; it attempts as soon as it is the head, or may attempt beside the head
	chosen               // taken out of the queue by a hand-off or a pass under way
	granted              // the hand-off or the pass has arrived
)

func (w *Waiter) become(s state) { w.state = s }

// inQueue reports whether the waiter has a place in its queue.
func (w *Waiter) inQueue() bool { return w.state == queued || w.state == due }

// wake makes the waiter look at its state. The shard is locked, so that the waiter either sees the
// signal or does not need it yet.
func (w *Waiter) wake() {
	if w.signal == nil {
		return
	}
	select {
	case w.signal <- struct{}{}:
	default: // it has not looked since the last time
	}
}

// listen makes the signal of a waiter that is about to sleep.
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

// give gives a chosen waiter the lock, and reports whether it was still there. The shard is locked.
func (w *Waiter) give(h Holder) bool {
	if w.state != chosen {
		return false
	}
	w.grant = h
	w.become(granted)
	w.wake()
	return true
}

// reserve is what a caller that stands back keeps of its wait for its attempt.
const reserve = 20 * time.Millisecond

// standsBack bounds the time for which the waiter leaves the lock to others. A waiter whose wait ends
// soon keeps enough of it to find out whether the lock is free.
func (w *Waiter) standsBack(wanted time.Duration, now time.Time) time.Duration {
	if wanted <= 0 || w.Until.IsZero() {
		return max(wanted, 0)
	}
	if w.latest.IsZero() {
		w.latest = w.Until.Add(-min(w.Until.Sub(now)/2, reserve))
	}
	return max(min(wanted, w.latest.Sub(now)), 0)
}

// order is the waiters of one queue. The waiter that came first is at the front.
type order struct {
	first, last *Waiter
	length      int
}

// enter puts a waiter at the place that its age gives it, because a waiter may have stood in another
// queue before. It reports whether the waiter is the first.
func (o *order) enter(w *Waiter) bool {
	after := o.last
	for after != nil && after.Since.After(w.Since) {
		after = after.prev
	}
	o.insert(w, after)
	return after == nil
}

// insert puts a waiter behind another one, or to the front.
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

// queue is the queue of one key: the waiters of this process in the order in which they came, and the
// holders of this process. Only the head talks to Redis. The shard of the key guards it.
//
// Most locks are held while no other client wants them. So the parts behind a pointer are made when
// they are first needed.
type queue struct {
	key          string
	kind         string // of lock, of the holders and waiters; see takeAs
	order        order
	holders      holders
	handing      int32        // hand-offs under way; more than one if the first one is slow
	wakes        uint32       // how often the lock came free, or may have
	subscription Subscription // to the messages, kept while a waiter waits; nil: none
	pace         *pace        // of the attempts that messages cause; nil: there was no message
	evidence     evidence
	past         *past             // nil: only the holder, if there is one, has had the lock; see remember
	lanes        map[string]*queue // of the waiters that wait in Redis, by name; nil: there were none
	lane         *lane             // set if this queue is a lane; nil: it is the queue of the key
}

// lane is the queue of one waiter that waits for a key in Redis. Redis decides when its turn comes, so
// no waiter of this process is before it. A lane counts among the waiters of its key, lives in the
// shard of the key, and is forgotten when its waiter leaves. It has no holders and no turns.
type lane struct {
	of   *queue // the queue of the key
	name string
}

// inLane finds or makes a lane.
func (in *queue) inLane(name string) *queue {
	if in.lanes == nil {
		in.lanes = make(map[string]*queue)
	}
	if in.lanes[name] == nil {
		in.lanes[name] = &queue{key: in.key, kind: in.kind, lane: &lane{in, name}}
	}
	return in.lanes[name]
}

// remember returns the past of the queue. Without one, the only event so far may be that the present
// holder has taken the lock.
func (in *queue) remember() *past {
	if in.past == nil {
		in.past = &past{}
		if in.holders.any() {
			in.past.begin(in.holders.list[0].known, 1)
		}
	}
	return in.past
}

func (in *queue) check(kind string) error {
	if in.kind != kind {
		return &KindError{in.key, in.kind}
	}
	return nil
}

// used reports whether a holder, a waiter or a hand-off needs the queue.
func (in *queue) used() bool {
	return in.order.first != nil || in.holders.any() || in.handing > 0 || len(in.lanes) > 0
}

// waiters returns how many wait for the key.
func (in *queue) waiters() int { return in.order.length + len(in.lanes) }

// oldest returns when the longest waiting caller came; zero if none waits.
func (in *queue) oldest() (oldest time.Time) {
	if w := in.order.first; w != nil {
		oldest = w.Since
	}
	for _, l := range in.lanes {
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
func (in *queue) open(w *Waiter) bool { return in.handing == 0 && in.holders.admits(w.Shared) }

// begins reports whether w attempts when it becomes the head: it may find the lock free, or has to
// announce to the sharers of the lock that it waits.
func (in *queue) begins(w *Waiter) bool { return in.open(w) || in.holders.shared() && w.Announces }

// enter puts a waiter into the queue. A new head attempts before it sleeps, unless this process knows
// that the lock is taken.
func (in *queue) enter(w *Waiter) {
	w.queue = in
	w.become(queued)
	if in.order.enter(w) && in.begins(w) {
		w.become(due)
	}
}

// quit takes out a waiter that goes away without the lock. If it was woken, the next waiter is.
func (in *queue) quit(w *Waiter) {
	wasHead := in.order.first == w
	in.order.remove(w)
	if head := in.order.first; wasHead && head != nil && in.begins(head) {
		in.wakeHead()
	}
}

// wakeHead makes the head attempt.
func (in *queue) wakeHead() {
	in.wakes++
	if w := in.order.first; w != nil {
		w.become(due)
		w.wake()
	}
}

// wakeNext makes the waiters attempt that may get in beside a new holder: the head, and if the holder
// is the first of several that share the lock, also the waiters behind the head that share it.
func (in *queue) wakeNext(first bool) {
	head := in.order.first
	switch {
	case head == nil || !in.begins(head):
		return
	case head.Many:
		in.widen()
		return
	}
	in.wakeHead()
	for w := head; first && w != nil && w.Together && in.open(w); w = w.next {
		w.become(due)
		w.wake()
	}
}

// mostAbreast is how many waiters for a limited number of places attempt at once.
const mostAbreast = 8

// widen makes two more waiters attempt after one has got in, because more places may be free.
//
// A waiter that was refused as the head attempts alone until it has got in. Only waiters that are
// asking already may overtake it. A head that is asking asks again if it is refused, because its
// refusal may be older than the place.
func (in *queue) widen() {
	more, abreast := 2, 0
	for w := in.order.first; w != nil && w.Many && more > 0 && abreast < mostAbreast; w = w.next {
		switch {
		case w.state == due:
		case !w.asking:
			w.become(due)
			w.wake()
			more--
		case w == in.order.first && w.wakes != in.wakes:
			w.become(due) // the places that came free since then woke only the head of that time
		}
		if abreast++; w.waits {
			return
		}
	}
}

// takeAs makes kind the kind of the queue: a grant of Redis decides, whatever this process assumed.
// Waiters of another kind find out at their next step. No lock is handed to them.
func (in *queue) takeAs(kind string) {
	if in.kind == kind {
		return
	}
	in.kind = kind
	for w := in.order.first; w != nil; w = w.next {
		w.wake()
	}
}

// take notes that an attempt has brought the lock, before its holder is in the list.
func (in *queue) take(g Grant, now time.Time) {
	in.takeAs(g.Kind)
	in.pace = nil
	in.evidence.settle()
	switch {
	case in.past == nil && !in.holders.any(): // the holder is all of its past
	case in.holders.any() && in.holders.admits(g.Shared):
		in.remember().join(now)
	default:
		past := in.remember()
		past.turns.measure(now.Sub(g.Sent))
		past.begin(now, max(in.order.length, 1)) // the head among them
	}
}

// add adds the holder of a grant, and returns the holders that do not have the lock any more.
func (in *queue) add(g Grant, now time.Time) []Replaced {
	t := tenure{g.Holder, g.Holder.Field(), g.Shared, now}
	if g.Under != nil && in.holders.index(g.Under) >= 0 {
		in.holders.join(t)
		return nil
	}
	return in.holders.add(t, g.Sent)
}

// free notes that the last holder has ended.
func (in *queue) free(notified int, now time.Time) {
	in.pace.drop()
	if in.past != nil {
		in.past.release(now, notified)
	}
	in.wakeHead()
}

// choose takes the next holder out of the queue; nil if the lock has to be freed.
func (in *queue) choose(limits RunLimits, now time.Time) *Waiter {
	if in.order.first == nil || !in.holders.alone() || !in.remember().mayHandOff(in.key, now, limits) {
		return nil
	}
	w := in.nextHolder(now)
	if w != nil {
		in.order.remove(w)
		w.become(chosen)
		w.behind = in.holders.field()
		in.handing++
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
// It passes over a waiter for another kind of lock, which is about to leave; a waiter for several keys
// while another of its keys is known to be taken; and a waiter whose answer is late.
func (in *queue) nextHolder(now time.Time) *Waiter {
	w := in.order.first
	for w != nil && (w.Kind != in.kind || w.Several && w.passed.moved || w.asking && now.Sub(w.asked) >= lateAnswer) {
		w = w.next
	}
	if w == nil || w.Several || w.Shared || w.asking {
		return nil
	}
	for before := in.order.first; before != w; before = before.next {
		before.passed.times++
	}
	return w
}

// handedOn notes that the chosen waiter has got the lock.
func (in *queue) handedOn() {
	in.handing--
	in.remember().turns.handOn()
}

// standsBack returns for how long the head leaves the lock to other processes: it is their turn,
// messages come too fast, or the lock has to be left free.
func (in *queue) standsBack(now time.Time) time.Duration {
	paced := in.pace.left(now)
	if in.past == nil {
		return paced
	}
	return max(in.past.wait(in.key, now, !in.holders.any(), !in.silent()), paced)
}

// silent reports whether the subscription of the queue receives nothing, while no holder is of this
// process.
func (in *queue) silent() bool {
	return !in.holders.any() && in.subscription != nil && !in.subscription.Confirmed()
}

// deaf reports whether it is the turn of others while this process would not hear their release. A
// head that leaves the lock free for a silent poll waits for no message.
func (in *queue) deaf(now time.Time) bool {
	return in.subscription == nil && in.remember().turns.wait(now) > 0
}

// expectEcho notes that a command with a message is about to be sent.
func (in *queue) expectEcho(now time.Time) {
	if in.past.listens() {
		in.past.echo.expect(now)
	}
}

// paced reports whether a message may wake the head. A head that was woken and has not attempted since
// attempts once, and is not postponed again.
func (in *queue) paced(now time.Time) bool {
	if in.pace.left(now) > 0 {
		return false
	}
	if head := in.order.first; head == nil || head.state != due {
		if in.pace == nil {
			in.pace = &pace{}
		}
		in.pace.next(now)
	}
	return true
}

// doubt makes the head attempt, unless messages come too fast, and returns the holders.
func (in *queue) doubt(now time.Time) []Holder {
	in.remember().possession.contest()
	if in.paced(now) {
		in.wakeHead()
	}
	return in.holders.all()
}

// subscribe keeps a subscription, and reports whether the queue needed it.
func (in *queue) subscribe(t Subscription) bool {
	if in.subscription != nil {
		return false
	}
	in.subscription, in.remember().heard = t, t
	return true
}

// unsubscribe removes the subscription, and returns it for [release].
func (in *queue) unsubscribe() Subscription {
	t := in.subscription
	in.subscription = nil
	return t
}

// unneeded removes the subscription if no waiter is left, and returns it for [release].
func (in *queue) unneeded() Subscription {
	if in.order.first != nil {
		return nil
	}
	return in.unsubscribe()
}
