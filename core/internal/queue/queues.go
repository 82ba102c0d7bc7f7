package queue

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// Config holds the limits of the queues.
type Config struct {
	PerKey int       // maximum number of waiters for one key
	InAll  int       // maximum number of waiters for all keys together
	Run    RunLimits // zero: 50 ms, and 5 ms where others want the lock
}

// Queues are the queues of all keys.
type Queues struct {
	cfg     Config
	waiting atomic.Int64 // number of waiters for all keys together
	seed    maphash.Seed
	shards  [64]shard
}

// shard guards the queues of some keys.
type shard struct {
	mu     sync.Mutex
	queues map[string]*queue
	recent pastCache
}

// New returns queues without waiters.
func New(cfg Config) *Queues {
	if cfg.Run == (RunLimits{}) {
		cfg.Run = RunLimits{Alone: runTime, Shared: sharedRunTime}
	}
	q := &Queues{cfg: cfg, seed: maphash.MakeSeed()}
	for i := range q.shards {
		q.shards[i].queues = make(map[string]*queue)
	}
	return q
}

// lock locks and returns the shard of key.
func (q *Queues) lock(key string) *shard {
	s := &q.shards[maphash.String(q.seed, key)%uint64(len(q.shards))]
	s.mu.Lock()
	return s
}

// get returns the queue of key. It creates the queue if necessary. The shard is locked.
func (s *shard) get(key, kind string) *queue {
	kq := s.queues[key]
	if kq == nil {
		kq = &queue{key: key, kind: kind, past: s.recent.take(key)}
		s.queues[key] = kq
	}
	return kq
}

// find returns the queue of a key, or one of its lanes; nil if there is none. The shard is locked.
func (s *shard) find(key, lane string) *queue {
	kq := s.queues[key]
	if kq == nil || lane == "" {
		return kq
	}
	return kq.lanes[lane]
}

// past returns the past of key, nil if there is none. The shard is locked.
func (s *shard) past(key string) *past {
	if kq := s.queues[key]; kq != nil {
		return kq.remember()
	}
	return s.recent.keys[key]
}

// settle removes a queue that is not used and returns its subscription for [release]. The shard is
// locked.
func (s *shard) settle(kq *queue, now time.Time) Subscription {
	if kq.used() {
		return nil
	}
	if lane := kq.lane; lane != nil {
		delete(lane.parent.lanes, lane.name)
		s.settle(lane.parent, now) // it has no subscription, or is used
		return kq.unsubscribe()
	}
	if s.queues[kq.key] == kq {
		delete(s.queues, kq.key)
		s.recent.keep(kq.key, kq.past, now)
	}
	return kq.unsubscribe()
}

// admit enforces the limits. The shard is locked.
func (q *Queues) admit(kq *queue, w *Waiter) error {
	if err := kq.check(w.Kind); err != nil {
		return err
	}
	if kq.waiters() >= q.limit(w.MaxWaiters) && !w.Admitted {
		return ErrFull
	}
	if q.waiting.Add(1) > int64(q.cfg.InAll) && !w.Admitted {
		q.waiting.Add(-1)
		return ErrFull
	}
	return nil
}

// limit returns the maximum number of waiters for one key.
func (q *Queues) limit(maxWaiters int) int {
	if maxWaiters > 0 {
		return min(q.cfg.PerKey, maxWaiters)
	}
	return q.cfg.PerKey
}

// Waiting returns the number of waiters for all keys together.
func (q *Queues) Waiting() int { return int(q.waiting.Load()) }

// Full reports whether Config.InAll is reached.
func (q *Queues) Full() bool { return q.Waiting() >= q.cfg.InAll }

// Oldest returns the arrival time of the longest waiting caller; zero if none waits.
func (q *Queues) Oldest() time.Time {
	var oldest time.Time
	for i := range q.shards {
		s := &q.shards[i]
		s.mu.Lock()
		for _, kq := range s.queues {
			oldest = earlier(oldest, kq.oldest())
		}
		s.mu.Unlock()
	}
	return oldest
}

// Wanted reports whether this process holds key or waits for it.
func (q *Queues) Wanted(key string) bool {
	s := q.lock(key)
	defer s.mu.Unlock()
	kq := s.queues[key]
	return kq != nil && kq.used()
}

// Waited reports whether a caller of this process waits for key.
func (q *Queues) Waited(key string) bool {
	s := q.lock(key)
	defer s.mu.Unlock()
	kq := s.queues[key]
	return kq != nil && kq.waiters() > 0
}

// FirstInUse returns the index of the first of several keys that this process holds or waits for, 0 if
// there is none.
func (q *Queues) FirstInUse(keys []string) int {
	for i, key := range keys {
		if q.Wanted(key) {
			return i
		}
	}
	return 0
}

// Check returns a [KindError] if another kind of lock uses key.
func (q *Queues) Check(key, kind string) error {
	s := q.lock(key)
	defer s.mu.Unlock()
	if kq := s.queues[key]; kq != nil {
		return kq.check(kind)
	}
	return nil
}

// Holders returns the holders of this process.
func (q *Queues) Holders(key string) []Holder {
	s := q.lock(key)
	defer s.mu.Unlock()
	if kq := s.queues[key]; kq != nil {
		return kq.holders.all()
	}
	return nil
}

// Held reports whether a holder of this process has a lease that has not expired.
func (q *Queues) Held(key string, now time.Time) bool {
	for _, h := range q.Holders(key) { // without the mutex
		if h.Lasts(now) {
			return true
		}
	}
	return false
}
