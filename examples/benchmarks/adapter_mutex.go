package main

import (
	"context"
	"sync"
)

const mutexFloor = "mutex"

// mutex returns the floor for turns on one key: the turns cost nothing except the work. All callers are in one
// process and share a [sync.Mutex].
func mutex() contender {
	return contender{name: mutexFloor, open: func(string, int) (Locker, error) { return &mutexLocker{}, nil }}
}

// mutexLocker has one mutex for all keys, because its scenarios have one key.
type mutexLocker struct{ mu sync.Mutex }

func (l *mutexLocker) Lock(context.Context, string) (Unlock, error) {
	l.mu.Lock()
	return func(context.Context) error {
		l.mu.Unlock()
		return nil
	}, nil
}

func (l *mutexLocker) Close() error { return nil }
