package history_test

import (
	"context"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// layout describes how a key in Redis belongs to a lock.
type layout struct {
	lock  string // the key of the lock
	field string // the holder in the name of the key, if it contains one
	stays bool   // it may stay without a TTL or after the last holder
	read  func(ctx context.Context, p redis.Pipeliner, key string) func() (fields map[string]int, count int)
}

// layouts lists the layouts of the other keys of a lock, by their names. The first group of each expression
// matches the lock, the second one a field.
var layouts = []struct {
	*regexp.Regexp

	layout
}{
	{regexp.MustCompile(`^(` + group + `)$`), layout{read: readNothing}},
	{regexp.MustCompile(`^redisson_lock_token:{(.+)}$`), layout{stays: true, read: readNothing}},
	{regexp.MustCompile(`^redisson_lock_queue:{(.+)}$`), layout{read: readQueue}},
	{regexp.MustCompile(`^redisson_lock_timeout:{(.+)}$`), layout{read: readDeadlines}},
	{regexp.MustCompile(`^{(.+)}:interlock_(?:missing|writer)$`), layout{read: readNothing}},
	{regexp.MustCompile(`^{(.+)}:interlock_ops$`), layout{stays: true, read: readNothing}}, // expires after a quarter of an hour
	{regexp.MustCompile(`^{(.+)}:timeout$`), layout{stays: true, read: readPermits}},
	{regexp.MustCompile(`^{(.+)}:(.+):rwlock_timeout:\d+$`), layout{read: readNothing}},
}

func layoutOf(key string) layout {
	if slices.Contains(semaphores, key) {
		return layout{lock: key, stays: true, read: readCount}
	}
	for _, l := range layouts {
		if found := l.FindStringSubmatch(key); found != nil {
			l.lock = found[1]
			if len(found) > 2 {
				l.field = found[2]
				l.read = readField(l.field)
			}
			return l.layout
		}
	}
	return layout{lock: key, read: readHolders}
}

func readNothing(context.Context, redis.Pipeliner, string) func() (map[string]int, int) {
	return func() (map[string]int, int) { return nil, 0 }
}

func readField(field string) func(context.Context, redis.Pipeliner, string) func() (map[string]int, int) {
	return func(context.Context, redis.Pipeliner, string) func() (map[string]int, int) {
		return func() (map[string]int, int) { return map[string]int{field: 1}, 0 }
	}
}

func readHolders(ctx context.Context, p redis.Pipeliner, key string) func() (map[string]int, int) {
	hash := p.HGetAll(ctx, key)
	return func() (map[string]int, int) {
		fields := make(map[string]int)
		for field, count := range hash.Val() {
			fields[field], _ = strconv.Atoi(count)
		}
		return fields, 0
	}
}

func readQueue(ctx context.Context, p redis.Pipeliner, key string) func() (map[string]int, int) {
	queue := p.LRange(ctx, key, 0, -1)
	return func() (map[string]int, int) { return set(queue.Val()), 0 }
}

func readDeadlines(ctx context.Context, p redis.Pipeliner, key string) func() (map[string]int, int) {
	deadlines := p.ZRange(ctx, key, 0, -1)
	return func() (map[string]int, int) { return set(deadlines.Val()), 0 }
}

// readPermits reads the permits and returns their ids in hex digits, like [core.Hold.Field].
func readPermits(ctx context.Context, p redis.Pipeliner, key string) func() (map[string]int, int) {
	leases := p.ZRange(ctx, key, 0, -1)
	return func() (map[string]int, int) {
		fields := make(map[string]int)
		for _, id := range leases.Val() {
			fields[hex.EncodeToString([]byte(id))] = 1
		}
		return fields, 0
	}
}

func readCount(ctx context.Context, p redis.Pipeliner, key string) func() (map[string]int, int) {
	free := p.Get(ctx, key)
	return func() (map[string]int, int) {
		n, _ := free.Int()
		return nil, n
	}
}

func set(fields []string) map[string]int {
	all := make(map[string]int)
	for _, field := range fields {
		all[field] = 1
	}
	return all
}
