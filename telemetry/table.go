package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"
)

// table is a map that is read without a lock and copied to be written: for few
// entries that are looked up all the time. The zero value is empty.
type table[K comparable, V any] struct {
	mu   sync.Mutex
	live atomic.Pointer[map[K]V]
}

// get does not allocate.
func (t *table[K, V]) get(k K) (V, bool) {
	if m := t.live.Load(); m != nil {
		v, ok := (*m)[k]
		return v, ok
	}
	var zero V
	return zero, false
}

// put gives the entry of k, which is made if it is not there.
func (t *table[K, V]) put(k K, compute func(K) V) V {
	return t.add(func(map[K]V) K { return k }, compute)
}

// add is put where the key depends on what is there already. Both functions are
// called under the lock.
func (t *table[K, V]) add(choose func(live map[K]V) K, compute func(K) V) V {
	t.mu.Lock()
	defer t.mu.Unlock()
	live := t.all()
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

// all is the map as it is now, not to be changed.
func (t *table[K, V]) all() map[K]V {
	if m := t.live.Load(); m != nil {
		return *m
	}
	return nil
}
