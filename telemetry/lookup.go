package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"
)

// lookup is a map that is read without a mutex and copied on each write. It suits a few entries that are
// looked up all the time. The zero value is empty.
type lookup[K comparable, V any] struct {
	mu   sync.Mutex
	live atomic.Pointer[map[K]V]
}

// all returns the current map. The caller must not change it.
func (l *lookup[K, V]) all() map[K]V {
	if m := l.live.Load(); m != nil {
		return *m
	}
	return nil
}

// put returns the entry of k. If k has none, put computes it under the mutex.
func (l *lookup[K, V]) put(k K, compute func(K) V) V {
	if v, ok := l.all()[k]; ok {
		return v
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if v, ok := l.all()[k]; ok {
		return v
	}
	next := maps.Clone(l.all())
	if next == nil {
		next = map[K]V{}
	}
	next[k] = compute(k)
	l.live.Store(&next)
	return next[k]
}
