package queue

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// Config are the limits of the queues.
type Config struct {
	PerKey int       // how many may wait for one key
	InAll  int       // how many may wait for all keys together
	Run    RunLimits // zero: 50 ms, and 5 ms where others want the lock
}

// Queues are the queues of all keys.
type Queues struct {
	cfg     Config
	waiting atomic.Int64 // for all keys together
	seed    maphash.Seed
	shards  [64]shard
}

// shard guards the queues of some keys.
type shard struct {
	mu     sync.Mutex
	queues map[string]*queue
	recent recent
}

// New makes queues without waiters.
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

// get finds or makes the queue of key. The shard is locked.
func (s *shard) get(key, kind string) *queue {
	in := s.queues[key]
	if in == nil {
		in = &queue{key: key, kind: kind, past: s.recent.take(key)}
		s.queues[key] = in
	}
	return in
}

// find returns the queue of a key, or one of its lanes; nil if there is none. The shard is locked.
func (s *shard) find(key, lane string) *queue {
	in := s.queues[key]
	if in == nil || lane == "" {
		return in
	}
	return in.lanes[lane]
}

// past returns what is known of key beside its queue, nil if nothing is. The shard is locked.
func (s *shard) past(key string) *past {
	if in := s.queues[key]; in != nil {
		return in.remember()
	}
	return s.recent.keys[key]
}

// settle forgets a queue that is not used, and returns its subscription for [release]. The shard is
// locked.
func (s *shard) settle(in *queue, now time.Time) Subscription {
	if in.used() {
		return nil
	}
	if lane := in.lane; lane != nil {
		delete(lane.of.lanes, lane.name)
		s.settle(lane.of, now) // it has no subscription, or is used
		return in.unsubscribe()
	}
	if s.queues[in.key] == in {
		delete(s.queues, in.key)
		s.recent.keep(in.key, in.past, now)
	}
	return in.unsubscribe()
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

// limit returns how many may wait for one key.
func (q *Queues) limit(maxWaiters int) int {
	if maxWaiters > 0 {
		return min(q.cfg.PerKey, maxWaiters)
	}
	return q.cfg.PerKey
}

// Waiting returns how many wait for all keys together.
func (q *Queues) Waiting() int { return int(q.waiting.Load()) }

// Full reports whether Config.InAll is reached.
func (q *Queues) Full() bool { return q.Waiting() >= q.cfg.InAll }

// Oldest returns when the longest waiting caller came; zero if none waits.
func (q *Queues) Oldest() time.Time {
	var oldest time.Time
	for i := range q.shards {
		s := &q.shards[i]
		s.mu.Lock()
		for _, in := range s.queues {
			oldest = earlier(oldest, in.oldest())
		}
		s.mu.Unlock()
	}
	return oldest
}

// Wanted reports whether this process holds key or waits for it.
func (q *Queues) Wanted(key string) bool {
	s := q.lock(key)
	defer s.mu.Unlock()
	in := s.queues[key]
	return in != nil && in.used()
}

// Waited reports whether a caller of this process waits for key.
func (q *Queues) Waited(key string) bool {
	s := q.lock(key)
	defer s.mu.Unlock()
	in := s.queues[key]
	return in != nil && in.waiters() > 0
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

// Check returns a [KindError] if key is in use as another kind of lock.
func (q *Queues) Check(key, kind string) error {
	s := q.lock(key)
	defer s.mu.Unlock()
	if in := s.queues[key]; in != nil {
		return in.check(kind)
	}
	return nil
}

// Holders returns the holders of this process.
func (q *Queues) Holders(key string) []Holder {
	s := q.lock(key)
	defer s.mu.Unlock()
	if in := s.queues[key]; in != nil {
		return in.holders.all()
	}
	return nil
}

// Held reports whether a holder of this process has a lease that has not ended.
func (q *Queues) Held(key string, now time.Time) bool {
	for _, h := range q.Holders(key) { // without the mutex
		if h.Lasts(now) {
			return true
		}
	}
	return false
}
