// Package lookup has a map for what is looked up all the time and seldom added.
package lookup

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Table is a map that is read without a lock and copied to be written: for few
// entries that are looked up all the time. The zero value is empty.
type Table[K comparable, V any] struct {
	mu   sync.Mutex
	live atomic.Pointer[map[K]V]
}

// Get does not allocate.
func (t *Table[K, V]) Get(k K) (V, bool) {
	if m := t.live.Load(); m != nil {
		v, ok := (*m)[k]
		return v, ok
	}
	var zero V
	return zero, false
}

// Put gives the entry of k, which is made if it is not there.
func (t *Table[K, V]) Put(k K, compute func(K) V) V {
	if v, ok := t.Get(k); ok {
		return v
	}
	return t.Add(func(map[K]V) K { return k }, compute)
}

// Add is put where the key depends on what is there already. Both functions are
// called under the lock.
func (t *Table[K, V]) Add(choose func(live map[K]V) K, compute func(K) V) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	live := t.All()
	k := choose(live)
	if v, ok := live[k]; ok {
		return v
	}
	next := maps.Clone(live)
	if next == nil {
		next = map[K]V{}
	}
	next[k] = compute(k)
	t.live.Store(&next)
	return next[k]
}

// All is the map as it is now, not to be changed.
func (t *Table[K, V]) All() map[K]V {
	if m := t.live.Load(); m != nil {
		return *m
	}
	return nil
}
