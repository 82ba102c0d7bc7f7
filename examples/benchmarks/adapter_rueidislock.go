package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

type rueidisLocker struct{ locker rueidislock.Locker }

// openRueidislock follows the README of the library for one Redis of version 7.0.5 or later: a
// majority of one key, and no notifications of the client's writes. It waits by client-side
// caching, the default. TryNextAfter limits the time of an attempt before the next of several keys
// is tried. There is only one key, and under load the default of 20 ms makes attempts fail that
// would have succeeded.
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

// Lock waits for a key. The release of the library waits for the reply but does not report errors.
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
