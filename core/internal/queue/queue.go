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
	handing      int32        // hand-offs on their way; more than one if the first one is slow
	wakes        uint32       // how often something came free, or may have
	subscription Subscription // to the messages, kept while anybody waits; nil: none
	pace         *pace        // of the attempts that messages cause; nil: there was no message
	evidence     evidence
	lasting      *lasting          // nil: nobody but the holder, if there is one, has had the lock; see past
	lanes        map[string]*queue // of those who wait in Redis, by their names; nil: there were none
	lane         *lane             // that it is; nil: it is the queue of the key
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

// begins reports whether w attempts when it becomes the head: it may find the lock free, or has
// to tell those who share it that it waits.
func (in *queue) begins(w *Waiter) bool { return in.open(w) || in.holders.shared() && w.Announces }

// enter puts a waiter into the queue. A new head attempts before it sleeps, unless it is
// known here that the lock is taken.
func (in *queue) enter(w *Waiter) {
	w.queue = in
	w.become(queued)
	if in.order.enter(w) && in.begins(w) {
		w.become(due)
	}
}

// quit takes out a waiter that goes away without the lock. What woke it is passed on.
func (in *queue) quit(w *Waiter) {
	wasHead := in.order.first == w
	in.order.remove(w)
	if head := in.order.first; wasHead && head != nil && in.begins(head) {
		in.wakeHead()
	}
}

// follow has those attempt who may get in after a holder: the head, and if that was the first
// one of those who share the lock, all who come next and share it, too.
func (in *queue) follow(first bool) {
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

// mostAbreast is how many of those who share a limited number attempt at once.
const mostAbreast = 8

// widen has two more attempt after one that has got in: there may be more where that came from. Who
// is refused as the head is the only one until it has got in: only who asks already may overtake it.
// A head that asks already asks once more if it is refused, where that may be as of before.
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
			w.become(due) // what has come free since then woke only the head of then
		}
		if abreast++; w.waits {
			return
		}
	}
}

// wakeHead tells the head that an attempt is sensible.
func (in *queue) wakeHead() {
	in.wakes++
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
	if w.Lane != "" {
		in = in.inLane(w.Lane)
	}
	in.enter(w)
	return nil
}

// admit keeps the limits. The shard is locked.
func (q *Queues) admit(in *queue, w *Waiter) error {
	if err := in.check(w.Kind); err != nil {
		return err
	}
	if in.waiters() >= q.limit(w.MaxWaiters) && !w.Admitted {
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
	w.asking = false
	if w.queue.lane == nil && w.queue.order.first == w { // those who attempt beside it say the same
		w.waits = true
		w.queue.past().refuse(now, by)
	}
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
	Under  Holder    // of this process, with whom the holder has it too; nil for none
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
	in.taken(g, now)
	var replaced []Replaced
	if g.Under == nil || in.holders.index(g.Under) < 0 {
		replaced = in.holders.add(by, g.Sent)
	} else {
		in.holders.list = append(in.holders.list, by)
	}
	var t Subscription
	if w != nil {
		t = s.served(w, now)
	}
	in.follow(len(in.holders.list) == 1)
	s.mu.Unlock()
	if w != nil {
		q.waiting.Add(-1)
	}
	release(t)
	return replaced
}

// Served takes out a waiter whose attempt has brought something without a holder: the next one attempts.
func (q *Queues) Served(w *Waiter, now time.Time) {
	s := q.lock(w.queue.key)
	in := w.queue
	in.pace = nil
	in.evidence.answered()
	t := s.served(w, now)
	if in.lane == nil {
		in.follow(false)
		s.settle(in, now) // its subscription is t
	}
	s.mu.Unlock()
	q.waiting.Add(-1)
	release(t)
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
func (in *queue) taken(g Grant, now time.Time) {
	in.pace = nil
	in.evidence.answered()
	switch {
	case in.lasting == nil && !in.holders.any(): // its past is the holder
	case in.holders.any() && in.holders.admits(g.Shared):
		in.past().join(now)
	default:
		in.past().turns.measure(now.Sub(g.Sent))
		in.past().begin(now, max(in.order.length, 1)) // the head among them
	}
}

// served takes out a waiter whose attempt has succeeded, and gives the subscription to let
// go. The shard is locked.
func (s *shard) served(w *Waiter, now time.Time) Subscription {
	if !w.inQueue() {
		w.referred = true // a hand-off is on its way to it, and finds that it is not needed
		w.become(outside)
		return nil
	}
	in := w.queue
	in.order.remove(w)
	w.become(outside)
	if in.lane != nil {
		return s.settle(in, now)
	}
	return in.unneeded()
}

// How many others an end has notified that was no message: as far as is known, or for certain,
// because others have the lock still.
const (
	NoMessage   = -2
	Unpublished = -3
)

// Ended forgets a holder. notified is how many others heard the message of its end,
// [Uncounted], [Unanswered], [NoMessage] or [Unpublished].
func (q *Queues) Ended(key string, h Holder, notified int, now time.Time) {
	s := q.lock(key)
	in := s.queues[key]
	if in == nil || in.holders.index(h) < 0 {
		s.mu.Unlock()
		return
	}
	if in.lasting != nil || in.order.first != nil || s.recent.room(now) { // else nobody will ask
		in.past().echo.ended(notified, now)
	}
	head := in.order.first
	if head != nil && !in.holders.admits(head.Shared) {
		in.evidence.ends(now)
	}
	in.holders.remove(h)
	switch {
	case !in.holders.any():
		in.freed(notified, now)
	case head != nil && in.open(head):
		in.wakeHead() // there may be room beside the others
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
		if notified >= Uncounted || notified == Unanswered {
			past.turns.release(now, notified)
		}
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
