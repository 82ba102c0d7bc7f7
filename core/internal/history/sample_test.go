package history_test

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/history"
)

// sampler reads Redis beside the clients, past all faults of the network.
type sampler struct {
	rdb  *redis.Client
	now  func() time.Duration
	note func(history.Event)
}

// watch samples until stop is closed. In between it notes when Redis was slow though
// nobody has broken it.
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

// slowReply is how long an answer may take without being a stall.
const slowReply = 20 * time.Millisecond

// all samples every key there is, and says how many.
func (s sampler) all() (there int) {
	begin := s.now()
	names, err := s.rdb.Keys(context.Background(), "*").Result()
	if end := s.now(); end-begin > slowReply {
		s.note(history.Event{Kind: history.Stall, Begin: begin, End: end, Note: "redis"})
	}
	if err != nil {
		return 1 // nobody knows
	}
	for _, key := range names {
		s.key(key)
	}
	return len(names)
}

func (s sampler) key(key string) {
	ctx, begin := context.Background(), s.now()
	var ttl *redis.DurationCmd
	var fields *redis.MapStringStringCmd
	_, err := s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		ttl, fields = p.PTTL(ctx, key), p.HGetAll(ctx, key)
		return nil
	})
	if err != nil || len(fields.Val()) == 0 {
		return
	}
	e := history.Event{Kind: history.Sample, Keys: []string{key}, Begin: begin, End: s.now(), TTL: ttl.Val(), Fields: make(map[string]int)}
	for field, count := range fields.Val() {
		e.Fields[field], _ = strconv.Atoi(count)
	}
	s.note(e)
}

// drain samples until Redis is empty, or until limit.
func (s sampler) drain(limit time.Duration) {
	for s.all() > 0 && s.now() < limit {
		time.Sleep(50 * time.Millisecond) // between two samples
	}
}
