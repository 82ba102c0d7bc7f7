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
	Run    RunLimits // zero: 50 ms, and 5 ms if other processes want the lock
}

// Queues contains the queues of all keys of one client.
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

// New returns Queues without waiters.
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

// lock returns the shard of key and locks its mutex.
func (q *Queues) lock(key string) *shard {
	s := &q.shards[maphash.String(q.seed, key)%uint64(len(q.shards))]
	s.mu.Lock()
	return s
}

// get returns the queue of key. It creates the queue if necessary. The shard is locked.
func (s *shard) get(key, kind string) *queue {
	kq := s.queues[key]
	if kq == nil {
		kq = &queue{key: key, kind: kind, past: s.recent.remove(key)}
		s.queues[key] = kq
	}
	return kq
}

// find returns a lane of key, or the queue of key if lane is "". It returns nil if the queue or the lane
// does not exist. The shard is locked.
func (s *shard) find(key, lane string) *queue {
	kq := s.queues[key]
	if kq == nil || lane == "" {
		return kq
	}
	return kq.lanes[lane]
}

// past returns the past of key. It returns nil if key has no queue and no past is kept. The shard is locked.
func (s *shard) past(key string) *past {
	if kq := s.queues[key]; kq != nil {
		return kq.ensurePast()
	}
	return s.recent.keys[key]
}

// removeUnused removes kq if it is not used and returns its subscription for [releaseSubscription]. If kq
// is used, removeUnused does nothing and returns nil. The shard is locked.
func (s *shard) removeUnused(kq *queue, now time.Time) Subscription {
	if kq.inUse() {
		return nil
	}
	if lane := kq.lane; lane != nil {
		delete(lane.parent.lanes, lane.name)
		s.removeUnused(lane.parent, now) // returns nil: the parent is used, or has no subscription
		return kq.unsubscribe()
	}
	if s.queues[kq.key] == kq {
		delete(s.queues, kq.key)
		s.recent.keep(kq.key, kq.past, now)
	}
	return kq.unsubscribe()
}

// admit counts w among the waiters. It returns a [KindError] if kq is for another kind of lock, or
// [ErrFull] if a limit is reached and w is not Admitted. The shard is locked.
func (q *Queues) admit(kq *queue, w *Waiter) error {
	if err := kq.checkKind(w.Kind); err != nil {
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

// limit returns the maximum number of waiters for a key: Config.PerKey or, if lower, maxWaiters.
func (q *Queues) limit(maxWaiters int) int {
	if maxWaiters > 0 {
		return min(q.cfg.PerKey, maxWaiters)
	}
	return q.cfg.PerKey
}

// Waiting returns the number of waiters for all keys together.
func (q *Queues) Waiting() int { return int(q.waiting.Load()) }

// Full reports whether the number of waiters has reached Config.InAll.
func (q *Queues) Full() bool { return q.Waiting() >= q.cfg.InAll }

// Oldest returns the arrival time of the waiter that has waited longest, or zero if no caller waits.
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

// InUse reports whether this process has a holder of key, a waiter for key or a hand-off of key under way.
func (q *Queues) InUse(key string) bool {
	s := q.lock(key)
	defer s.mu.Unlock()
	kq := s.queues[key]
	return kq != nil && kq.inUse()
}

// HasWaiters reports whether a caller of this process waits for key.
func (q *Queues) HasWaiters(key string) bool {
	s := q.lock(key)
	defer s.mu.Unlock()
	kq := s.queues[key]
	return kq != nil && kq.waiters() > 0
}

// FirstInUse returns the index of the first key that is [Queues.InUse]. It returns 0 if no key is in use.
func (q *Queues) FirstInUse(keys []string) int {
	for i, key := range keys {
		if q.InUse(key) {
			return i
		}
	}
	return 0
}

// CheckKind returns a [KindError] if this process uses key as another kind of lock.
func (q *Queues) CheckKind(key, kind string) error {
	s := q.lock(key)
	defer s.mu.Unlock()
	if kq := s.queues[key]; kq != nil {
		return kq.checkKind(kind)
	}
	return nil
}

// Holders returns the holders of key in this process.
func (q *Queues) Holders(key string) []Holder {
	s := q.lock(key)
	defer s.mu.Unlock()
	if kq := s.queues[key]; kq != nil {
		return kq.holders.all()
	}
	return nil
}

// Held reports whether this process has a holder of key whose lease has not expired.
func (q *Queues) Held(key string, now time.Time) bool {
	for _, h := range q.Holders(key) { // calls Lasts without the mutex
		if h.Lasts(now) {
			return true
		}
	}
	return false
}
