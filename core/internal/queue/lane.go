package queue

import "time"

// lane is the queue of one who waits for a key in Redis, which says when its turn comes: nobody of
// this process is before it. It counts among the waiters of the key, is in the shard of that, and
// is forgotten when its waiter leaves. The holders, and whose turn it is otherwise, are none of its
// business.
type lane struct {
	of   *queue // that of the key
	name string
}

// inLane finds or makes one. The shard is locked.
func (in *queue) inLane(name string) *queue {
	if in.lanes == nil {
		in.lanes = make(map[string]*queue)
	}
	if in.lanes[name] == nil {
		in.lanes[name] = &queue{key: in.key, kind: in.kind, lane: &lane{in, name}}
	}
	return in.lanes[name]
}

// waiters is how many wait for the key.
func (in *queue) waiters() int { return in.order.length + len(in.lanes) }

// oldest is when the longest waiting caller came; zero if nobody waits.
func (in *queue) oldest() (oldest time.Time) {
	if w := in.order.first; w != nil {
		oldest = w.Since
	}
	for _, l := range in.lanes {
		if since := l.oldest(); !since.IsZero() && (oldest.IsZero() || since.Before(oldest)) {
			oldest = since
		}
	}
	return oldest
}

// find is the queue of a key, or one of its lanes; nil if there is none. The shard is locked.
func (s *shard) find(key, lane string) *queue {
	in := s.queues[key]
	if in == nil || lane == "" {
		return in
	}
	return in.lanes[lane]
}

// WakeLanes has the waiters of all lanes of key attempt, if there are any.
func (q *Queues) WakeLanes(key string) {
	s := q.lock(key)
	defer s.mu.Unlock()
	if in := s.queues[key]; in != nil {
		for _, l := range in.lanes {
			l.wakeHead()
		}
	}
}
