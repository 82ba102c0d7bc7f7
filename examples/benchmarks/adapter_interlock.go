package main

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/redis/go-redis/v9"
)

type interlockLocker struct {
	rdb   *redis.Client
	locks *core.Client
}

// openInterlock uses all defaults: the watchdog renews the lease.
func openInterlock(addr string, _ int) (Locker, error) {
	rdb := newRedis(addr)
	locks, err := core.New(rdb)
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	return &interlockLocker{rdb: rdb, locks: locks}, nil
}

func (l *interlockLocker) Lock(ctx context.Context, key string) (Unlock, error) {
	_, hold, err := l.locks.Lock(key).Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return hold.Release, nil
}

func (l *interlockLocker) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(l.locks.Close(ctx), l.rdb.Close())
}
