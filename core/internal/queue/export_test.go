package queue

// Order returns the waiters of key, the head first.
func (q *Queues) Order(key string) (all []*Waiter) {
	s := q.lock(key)
	defer s.mu.Unlock()
	kq := s.queues[key]
	if kq == nil {
		return nil
	}
	for w := kq.order.first; w != nil; w = w.next {
		if w.prev != nil && w.prev.next != w || w.queue != kq || !w.inQueue() {
			panic("the order is broken")
		}
		all = append(all, w)
	}
	if len(all) != kq.order.length || len(all) > 0 && kq.order.last != all[len(all)-1] {
		panic("the length of the order is wrong")
	}
	return all
}

// Due reports whether a waiter is due to attempt.
func (q *Queues) Due(w *Waiter) bool {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	return w.state == due
}

// Live returns the number of queues.
func (q *Queues) Live() (n int) {
	for i := range q.shards {
		s := &q.shards[i]
		s.mu.Lock()
		n += len(s.queues)
		s.mu.Unlock()
	}
	return n
}

// Recent returns the largest allowed number and the current number of remembered keys without a queue.
func (q *Queues) Recent() (most, n int) {
	for i := range q.shards {
		s := &q.shards[i]
		s.mu.Lock()
		n += len(s.recent.keys)
		s.mu.Unlock()
	}
	return maxRecent * len(q.shards), n
}

// The constants that tests refer to.
const (
	RunLength    = runLength
	LateAnswer   = lateAnswer
	RunTime      = runTime
	StandBack    = minPatience
	RankStep     = rankStep
	Reserve      = reserve
	EchoWindow   = echoWindow
	EchoWait     = echoWait
	PaceBurst    = paceBurst
	PaceInterval = paceInterval
	GiveWay      = giveWay
	GiveWayShort = giveWayShort
	SilentLook   = silentLook
	SilentLooks  = silentLooks
	GiveWayAfter = giveWayAfter
	GiveWayEvery = giveWayEvery
	FreeEnough   = freeEnough
)
