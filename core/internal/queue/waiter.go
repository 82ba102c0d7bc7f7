package queue

import "time"

// Wish is what a waiter wants.
type Wish struct {
	Kind       string        // of lock; what may be used on one name is of one kind here
	Shared     bool          // beside other shared holders
	Together   bool          // beside any number of them: those who are next to each other attempt at once
	Many       bool          // beside some of them: after one that has got in, a few attempt at once
	Announces  bool          // its attempt has more of those who share the lock kept out
	Lane       string        // waits in Redis: it stands in a queue of its own, of this name; "": behind the others
	Since      time.Time     // when the caller came: its place in the queue
	Until      time.Time     // end of the wait; zero: none
	Lease      time.Duration // for a hand-off to it
	Renewed    bool          // it renews that
	Token      bool          // it wants a fencing token with that
	MaxWaiters int           // how many may wait for the key; 0: the limit of all
	Several    bool          // it wants several keys at once: a single one is not handed to it
	Admitted   bool          // the limits have let it in before
}

// Waiter is one caller that waits. It is made with its [Wish], and belongs to the queue
// from [Queues.Join] until it is outside again.
type Waiter struct {
	Wish

	queue  *queue        // where it stands; only the waiter itself changes it
	signal chan struct{} // look at your state; capacity 1

	// Guarded by the shard.
	prev, next *Waiter
	state      state
	asking     bool      // its attempt is under way
	asked      time.Time // when that began
	waits      bool      // it was refused as the head: nobody behind it attempts
	wakes      uint32    // those of the queue when its attempt began
	referred   bool      // a hand-off that is on its way will look at it
	latest     time.Time // it stands back no longer than until then; zero: it has not yet
	grant      Holder    // of a granted one
	behind     string    // field of the holder of this process that it waits for, or got the lock from
	passed     passed    // of several keys
}

// state is where a waiter stands. It changes in [Waiter.become] only.
//
//	outside ── Join ──▶ queued ◀── Next: attempt ─── due
//	                      │ └── is woken, or polls ───▶ │
//	                      └────── Choose ──┬────────────┘ ◀─┐
//	                                       ▼                │
//	                                     chosen ── NotHanded, if it is the head
//	                                       └── Handed, Passed ──▶ granted
//
// All of them go outside again: by Acquired when an attempt has succeeded, by Accept with
// a grant, by Leave without the lock.
type state uint8

const (
	outside state = iota // not in a queue, or not any more
	queued               // in its queue; there is nothing to do
	due                  // in its queue; an attempt is sensible as soon as it is the head, or may attempt beside it
	chosen               // taken out of the queue by a hand-off or a pass that is on its way
	granted              // which has arrived
)

func (w *Waiter) become(s state) { w.state = s }

// inQueue reports whether the waiter has a place in its queue.
func (w *Waiter) inQueue() bool { return w.state == queued || w.state == due }

// wake makes the waiter look at its state. The shard is locked, so that the signal is
// either seen or not yet needed.
func (w *Waiter) wake() {
	if w.signal == nil {
		return
	}
	select {
	case w.signal <- struct{}{}:
	default: // it has not looked since the last time
	}
}

func (w *Waiter) listen() {
	if w.signal == nil {
		w.signal = make(chan struct{}, 1)
	}
}

// Signal wakes the waiter: it calls [Queues.Next] then. It is there after a step without
// an attempt.
func (w *Waiter) Signal() <-chan struct{} { return w.signal }

// Key is that of the queue in which it stands.
func (w *Waiter) Key() string { return w.queue.key }

// Reusable reports whether nobody else knows a waiter that is outside.
func (w *Waiter) Reusable() bool { return !w.referred }

// reserve is what a caller keeps of its wait for its attempt, when it stands back.
const reserve = 20 * time.Millisecond

// standsBack bounds the time for which the waiter leaves the lock to others: one whose
// wait ends soon keeps enough of it to find out whether the lock is free.
func (w *Waiter) standsBack(wanted time.Duration, now time.Time) time.Duration {
	if wanted <= 0 || w.Until.IsZero() {
		return max(wanted, 0)
	}
	if w.latest.IsZero() {
		w.latest = w.Until.Add(-min(w.Until.Sub(now)/2, reserve))
	}
	return max(min(wanted, w.latest.Sub(now)), 0)
}
