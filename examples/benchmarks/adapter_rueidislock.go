package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

type rueidisLocker struct{ locker rueidislock.Locker }

// openRueidislock follows the library's README for one Redis of version 7.0.5 or
// later: a majority of one key, and no notifications of one's own writes. Waiting is
// by client-side caching, its default. TryNextAfter is the time limit of an attempt
// before the next of several keys is tried; there is no next key, and the default of
// 20 ms makes attempts fail under load that would have succeeded.
func openRueidislock(addr string, _ int) (Locker, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{addr}},
		KeyValidity:    lease,
		KeyMajority:    1,
		NoLoopTracking: true,
		TryNextAfter:   time.Second,
	})
	if err != nil {
		return nil, err
	}
	return &rueidisLocker{locker: locker}, nil
}

// Lock waits for a key. The library's release waits for the reply but does not
// report errors.
func (l *rueidisLocker) Lock(ctx context.Context, key string) (Unlock, error) {
	_, release, err := l.locker.WithContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return func(context.Context) error {
		release()
		return nil
	}, nil
}

func (l *rueidisLocker) Close() error {
	l.locker.Close()
	return nil
}
