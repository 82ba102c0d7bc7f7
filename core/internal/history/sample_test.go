package history_test

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/history"
)

// sampler reads Redis directly, so that no fault of the network affects it.
type sampler struct {
	rdb  *redis.Client
	now  func() time.Duration
	note func(history.Event)
}

// watch samples all keys at regular intervals until stop is closed.
func (s sampler) watch(every time.Duration, stop <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.all()
		case <-stop:
			return
		}
	}
}

// slowReply is the longest time of an answer that does not count as a stall.
const slowReply = 20 * time.Millisecond

// all samples every key and returns the number of keys that must disappear in the end. It records a stall if
// Redis was slow.
func (s sampler) all() (there int) {
	begin := s.now()
	names, err := s.rdb.Keys(context.Background(), "*").Result()
	if end := s.now(); end-begin > slowReply {
		s.note(history.Event{Kind: history.Stall, Begin: begin, End: end, Note: "redis"})
	}
	if err != nil {
		return 1 // unknown
	}
	for _, key := range names {
		if !s.key(key) {
			there++
		}
	}
	return there
}

// key samples one key and reports whether the key may stay.
func (s sampler) key(key string) (stays bool) {
	ctx, begin, l := context.Background(), s.now(), layoutOf(key)
	var ttl *redis.DurationCmd
	var fields func() (map[string]int, int)
	_, err := s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		ttl = p.PTTL(ctx, key)
		fields = l.read(ctx, p, key)
		return nil
	})
	if err != nil || ttl.Val() == -2 {
		return l.stays
	}
	e := history.Event{Kind: history.Sample, Keys: []string{l.lock}, Begin: begin, End: s.now(), TTL: ttl.Val(), Stays: l.stays}
	if e.Fields, e.Count = fields(); l.lock != key {
		e.Note = key
	}
	s.note(e)
	return l.stays
}

// drain samples until no key is left that must disappear, or until limit.
func (s sampler) drain(limit time.Duration) {
	for s.all() > 0 && s.now() < limit {
		time.Sleep(50 * time.Millisecond) // between two samples
	}
}
