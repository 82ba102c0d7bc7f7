package queue

import "time"

// queue is that of one key: the waiters of this process in the order in which they came,
// and the holders if they are of this process. Only the head talks to Redis.
//
// Most locks are held without anybody else wanting them. So what is behind a pointer here
// is made when something happens that it is about.
type queue struct {
	key          string
	kind         string // of lock, of the holders and waiters; see takesAs
	order        order
	holders      holders
	handing      int          // hand-offs on their way; more than one if the first one is slow
	subscription Subscription // to the messages, kept while anybody waits; nil: none
	pace         *pace        // of the attempts that messages cause; nil: there was no message
	evidence     evidence
	lasting      *lasting // nil: nobody but the holder, if there is one, has had the lock; see past
}

// past is what outlives the queue. Up to now it may have been no more than that somebody has
// the lock.
func (in *queue) past() *lasting {
	if in.lasting == nil {
		in.lasting = &lasting{}
		if in.holders.any() {
			in.lasting.begin(in.holders.list[0].known, 1)
		}
	}
	return in.lasting
}

func (in *queue) check(kind string) error {
	if in.kind != kind {
		return &KindError{in.key, in.kind}
	}
	return nil
}

// open reports whether w, as the head, may find the lock free.
func (in *queue) open(w *Waiter) bool { return in.handing == 0 && in.holders.admits(w.Shared) }

// enter puts a waiter into the queue. A new head attempts before it sleeps, unless it is
// known here that the lock is taken.
func (in *queue) enter(w *Waiter) {
	w.queue = in
	w.become(queued)
	if in.order.enter(w) && in.open(w) {
		w.become(due)
	}
}

// quit takes out a waiter that goes away without the lock. What woke it is passed on.
func (in *queue) quit(w *Waiter) {
	wasHead := in.order.first == w
	in.order.remove(w)
	if head := in.order.first; wasHead && head != nil && in.open(head) {
		in.wakeHead()
	}
}

// wakeHead tells the head that an attempt is sensible.
func (in *queue) wakeHead() {
	if w := in.order.first; w != nil {
		w.become(due)
		w.wake()
	}
}

// Join queues a caller. It fails with [ErrFull] when a limit is reached, and with a
// [KindError] when the key is in use as another kind of lock.
func (q *Queues) Join(key string, w *Waiter, now time.Time) error {
	s := q.lock(key)
	defer s.mu.Unlock()
	in := s.get(key, w.Kind)
	if err := q.admit(in, w); err != nil {
		s.settle(in, now) // it has no subscription if it is new
		return err
	}
	in.enter(w)
	return nil
}

// admit keeps the limits. The shard is locked.
func (q *Queues) admit(in *queue, w *Waiter) error {
	if err := in.check(w.Kind); err != nil {
		return err
	}
	if in.order.length >= q.limit(w.MaxWaiters) && !w.Admitted {
		return ErrFull
	}
	if q.waiting.Add(1) > int64(q.cfg.InAll) && !w.Admitted {
		q.waiting.Add(-1)
		return ErrFull
	}
	return nil
}

// Leave takes a waiter out of the queue, however far it got. A grant that has arrived
// already is given to the caller, else nil.
func (q *Queues) Leave(w *Waiter, now time.Time) Holder {
	s := q.lock(w.queue.key)
	in, grant := w.queue, w.grant
	if w.inQueue() {
		in.quit(w)
	}
	w.become(outside)
	t := s.settle(in, now)
	s.mu.Unlock()
	q.waiting.Add(-1)
	release(t)
	return grant
}

// Refused notes that Redis has refused the attempt of w because of a rival, and says how often
// a waiter for several keys was passed over.
func (q *Queues) Refused(w *Waiter, r Refusal, by Rival, now time.Time) (passed int) {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	w.queue.evidence.isRefused(&r, now)
	w.queue.past().refuse(now, by)
	if w.passed.moved {
		w.passed.times++
	}
	return w.passed.times
}

// Grant is the lock that an attempt has brought.
type Grant struct {
	Holder Holder
	Kind   string
	Shared bool
	Sent   time.Time // when the attempt was sent
}

// Acquired registers the holder that the attempt of w has brought, or that of a caller
// that does not wait: then w is nil. It gives the holders of this process that do not have
// the lock any more.
func (q *Queues) Acquired(key string, w *Waiter, g Grant, now time.Time) []Replaced {
	by := tenure{g.Holder, g.Holder.Field(), g.Shared, now}
	s := q.lock(key)
	in := s.get(key, g.Kind)
	in.takesAs(g.Kind)
	in.taken(g.Shared, now)
	replaced := in.holders.add(by, g.Sent)
	var t Subscription
	if w != nil {
		t = in.served(w)
	}
	if head := in.order.first; head != nil && in.open(head) {
		in.wakeHead() // it shares the lock
	}
	s.mu.Unlock()
	if w != nil {
		q.waiting.Add(-1)
	}
	release(t)
	return replaced
}

// takesAs makes kind that of the queue: what Redis has granted decides, whatever was believed.
// Waiters of another kind find out at their next step; nothing is handed to them.
func (in *queue) takesAs(kind string) {
	if in.kind == kind {
		return
	}
	in.kind = kind
	for w := in.order.first; w != nil; w = w.next {
		w.wake()
	}
}

// taken notes that an attempt has brought the lock, before its holder is there.
func (in *queue) taken(shared bool, now time.Time) {
	in.pace = nil
	in.evidence.answered()
	switch {
	case in.lasting == nil && !in.holders.any(): // its past is the holder
	case in.holders.any() && in.holders.admits(shared):
		in.past().join(now)
	default:
		in.past().begin(now, max(in.order.length, 1)) // the head among them
	}
}

// served takes out a waiter whose attempt has succeeded, and gives the subscription to let
// go.
func (in *queue) served(w *Waiter) Subscription {
	if !w.inQueue() {
		w.referred = true // a hand-off is on its way to it, and finds that it is not needed
		w.become(outside)
		return nil
	}
	in.order.remove(w)
	w.become(outside)
	return in.unneeded()
}

// NoMessage is how many others an end has notified that was no message, as far as is known.
const NoMessage = -2

// Ended forgets a holder. notified is how many others heard the message of its end,
// [Uncounted] or [NoMessage].
func (q *Queues) Ended(key string, h Holder, notified int, now time.Time) {
	s := q.lock(key)
	in := s.queues[key]
	if in == nil || in.holders.index(h) < 0 {
		s.mu.Unlock()
		return
	}
	if in.lasting != nil || in.order.first != nil || s.recent.room(now) { // else nobody will ask
		in.past().echo.sent(now)
	}
	in.holders.remove(h)
	if !in.holders.any() {
		in.freed(notified, now)
	}
	t := s.settle(in, now)
	s.mu.Unlock()
	release(t)
}

// freed notes that the last holder has ended.
func (in *queue) freed(notified int, now time.Time) {
	in.pace.drop()
	if past := in.lasting; past != nil {
		past.possession.freed(now)
		if notified != NoMessage {
			past.turns.release(now, notified)
		}
	}
	if in.order.first != nil {
		in.evidence.ends(now)
	}
	in.wakeHead()
}

// Holders are those of this process.
func (q *Queues) Holders(key string) []Holder {
	s := q.lock(key)
	defer s.mu.Unlock()
	if in := s.queues[key]; in != nil {
		return in.holders.all()
	}
	return nil
}

// Held reports whether the lease of a holder of this process lasts.
func (q *Queues) Held(key string, now time.Time) bool {
	for _, h := range q.Holders(key) { // without the mutex
		if h.Lasts(now) {
			return true
		}
	}
	return false
}
