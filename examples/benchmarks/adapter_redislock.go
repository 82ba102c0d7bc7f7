package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

type redislockLocker struct {
	rdb   *redis.Client
	locks *redislock.Client
	poll  time.Duration
}

func openRedislock(addr string, callers int) (Locker, error) {
	rdb := newRedis(addr)
	return &redislockLocker{rdb: rdb, locks: redislock.New(rdb), poll: pollInterval(callers)}, nil
}

// Lock polls with LinearBackoff, the strategy of the library's example, at the interval that is
// fastest in this benchmark. By default the library does not wait.
func (l *redislockLocker) Lock(ctx context.Context, key string) (Unlock, error) {
	lock, err := l.locks.Obtain(ctx, key, lease, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(l.poll),
	})
	if err != nil {
		return nil, err
	}
	return lock.Release, nil
}

func (l *redislockLocker) Close() error { return l.rdb.Close() }
