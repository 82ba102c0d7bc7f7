package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

type redsyncLocker struct {
	rdb  *redis.Client
	sync *redsync.Redsync
	poll time.Duration
}

func openRedsync(addr string, callers int) (Locker, error) {
	rdb := newRedis(addr)
	return &redsyncLocker{rdb: rdb, sync: redsync.New(goredis.NewPool(rdb)), poll: pollInterval(callers)}, nil
}

// Lock polls, because redsync has no notifications. By default it gives up after 32 attempts 50 to 250 ms
// apart, which is too few for every contended scenario. pollInterval with the jitter of redsync is fastest in
// this benchmark.
func (l *redsyncLocker) Lock(ctx context.Context, key string) (Unlock, error) {
	mutex := l.sync.NewMutex(key,
		redsync.WithExpiry(lease),
		redsync.WithTries(math.MaxInt),
		redsync.WithRetryDelayFunc(func(int) time.Duration { return l.poll/2 + rand.N(l.poll) }),
	)
	if err := mutex.LockContext(ctx); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		ok, err := mutex.UnlockContext(ctx)
		if err == nil && !ok {
			err = errors.New("redsync: the lock was not held")
		}
		return err
	}, nil
}

func (l *redsyncLocker) Close() error { return l.rdb.Close() }
