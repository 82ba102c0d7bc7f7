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
	InAll  int       // how many may wait in all
	Run    RunLimits // zero: 50 ms, and 5 ms where others want the lock
}

// RunLimits are how long a run lasts: how long the lock goes on among callers of this process.
type RunLimits struct {
	Alone  time.Duration // where no other process is known to want it; longer where Redis is far away
	Shared time.Duration // where others are; up to twice as long while some have not had their turn, and longer where Redis is far away
}

// Queues are the queues of all keys.
type Queues struct {
	cfg     Config
	waiting atomic.Int64 // in all
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

// lock gives the shard of key, locked.
func (q *Queues) lock(key string) *shard {
	s := &q.shards[maphash.String(q.seed, key)%uint64(len(q.shards))]
	s.mu.Lock()
	return s
}

// get finds or makes the queue of key. The shard is locked.
func (s *shard) get(key, kind string) *queue {
	in := s.queues[key]
	if in == nil {
		in = &queue{key: key, kind: kind, lasting: s.recent.take(key)}
		s.queues[key] = in
	}
	return in
}

// settle forgets a queue that nobody needs, and gives the subscription to let go. The
// shard is locked.
func (s *shard) settle(in *queue, now time.Time) Subscription {
	if in.order.first != nil || in.holders.any() || in.handing > 0 || len(in.lanes) > 0 {
		return nil
	}
	if lane := in.lane; lane != nil {
		delete(lane.of.lanes, lane.name)
		s.settle(lane.of, now) // it has no subscription, or somebody uses it
		return in.dropSubscription()
	}
	if s.queues[in.key] == in {
		delete(s.queues, in.key)
		s.recent.keep(in.key, in.lasting, now)
	}
	return in.dropSubscription()
}

// Waiting is how many wait, in all.
func (q *Queues) Waiting() int { return int(q.waiting.Load()) }

// Full reports whether as many wait as may in all.
func (q *Queues) Full() bool { return q.Waiting() >= q.cfg.InAll }

// limit is how many may wait for one key.
func (q *Queues) limit(maxWaiters int) int {
	if maxWaiters > 0 {
		return min(q.cfg.PerKey, maxWaiters)
	}
	return q.cfg.PerKey
}

// Oldest is when the longest waiting caller came; zero if nobody waits.
func (q *Queues) Oldest() time.Time {
	var oldest time.Time
	for i := range q.shards {
		s := &q.shards[i]
		s.mu.Lock()
		for _, in := range s.queues {
			if since := in.oldest(); !since.IsZero() && (oldest.IsZero() || since.Before(oldest)) {
				oldest = since
			}
		}
		s.mu.Unlock()
	}
	return oldest
}

// Wanted reports whether somebody of this process holds key or waits for it.
func (q *Queues) Wanted(key string) bool {
	s := q.lock(key)
	defer s.mu.Unlock()
	in := s.queues[key]
	return in != nil && (in.waiters() > 0 || in.holders.any() || in.handing > 0)
}

// Waited reports whether somebody of this process waits for key.
func (q *Queues) Waited(key string) bool {
	s := q.lock(key)
	defer s.mu.Unlock()
	in := s.queues[key]
	return in != nil && in.waiters() > 0
}

// Check gives a [KindError] when key is in use as another kind of lock.
func (q *Queues) Check(key, kind string) error {
	s := q.lock(key)
	defer s.mu.Unlock()
	if in := s.queues[key]; in != nil {
		return in.check(kind)
	}
	return nil
}
