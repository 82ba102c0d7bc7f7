package lockz

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
)

// shards is how many parts a table has, each with a mutex of its own.
const shards = 64

// table knows which holds and waiters there are, by key and by holder. Every operation but
// snapshot takes one mutex of many for a moment.
type table struct {
	seed    maphash.Seed
	byKey   [shards]keyShard
	byField [shards]fieldShard
	holds   budget
	waiters budget
}

// budget counts what is in a table, and what was left out because it was full.
type budget struct {
	limit int64
	used  atomic.Int64
	over  atomic.Int64 // left out and not over yet
}

// take reports whether there was room.
func (b *budget) take() bool {
	if b.used.Add(1) <= b.limit {
		return true
	}
	b.used.Add(-1)
	b.over.Add(1)
	return false
}

// give returns what take has given.
func (b *budget) give(taken bool) {
	if taken {
		b.used.Add(-1)
	} else {
		b.over.Add(-1)
	}
}

type keyShard struct {
	mu   sync.Mutex
	keys map[string]*entry
}

// entry is one key with those who hold it or wait for it here.
type entry struct {
	shard       *keyShard
	key         string
	holds       []*hold
	first, last *waiter
	waiting     int
}

type fieldShard struct {
	mu    sync.Mutex
	holds map[string][]*hold
}

func newTable(maxHolds, maxWaiters int) *table {
	t := &table{seed: maphash.MakeSeed()}
	t.holds.limit, t.waiters.limit = int64(maxHolds), int64(maxWaiters)
	for i := range shards {
		t.byKey[i].keys = make(map[string]*entry)
		t.byField[i].holds = make(map[string][]*hold)
	}
	return t
}

func (t *table) shardOf(s string) int { return int(maphash.String(t.seed, s) % shards) }

// entryOf is that of a key, made when it is not there. The mutex of the shard is held.
func (s *keyShard) entryOf(key string) *entry {
	e := s.keys[key]
	if e == nil {
		e = &entry{shard: s, key: key}
		s.keys[key] = e
	}
	return e
}

// tidy forgets an entry that nobody is in. The mutex is held.
func (e *entry) tidy() {
	if len(e.holds) == 0 && e.waiting == 0 {
		delete(e.shard.keys, e.key)
	}
}

// addHold takes a hold in, if there is room.
func (t *table) addHold(h *hold) {
	if h.tracked = t.holds.take(); !h.tracked {
		return
	}
	s := &t.byKey[t.shardOf(h.info.Key)]
	s.mu.Lock()
	e := s.entryOf(h.info.Key)
	e.holds = append(e.holds, h)
	s.mu.Unlock()

	f := &t.byField[t.shardOf(h.info.Field)]
	f.mu.Lock()
	f.holds[h.info.Field] = append(f.holds[h.info.Field], h)
	f.mu.Unlock()
}

// removeHold takes a hold out. It reports false when that was done before.
func (t *table) removeHold(h *hold) bool {
	if !h.done.CompareAndSwap(false, true) {
		return false
	}
	t.holds.give(h.tracked)
	if h.tracked {
		t.unlistKey(h)
		t.unlistField(h)
	}
	return true
}

func (t *table) unlistKey(h *hold) {
	s := &t.byKey[t.shardOf(h.info.Key)]
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.keys[h.info.Key]; e != nil {
		e.holds = without(e.holds, h)
		e.tidy()
	}
}

func (t *table) unlistField(h *hold) {
	f := &t.byField[t.shardOf(h.info.Field)]
	f.mu.Lock()
	defer f.mu.Unlock()
	if left := without(f.holds[h.info.Field], h); len(left) > 0 {
		f.holds[h.info.Field] = left
	} else {
		delete(f.holds, h.info.Field)
	}
}

// without is the list without one hold, in the same array.
func without(list []*hold, h *hold) []*hold {
	return slices.DeleteFunc(list, func(other *hold) bool { return other == h })
}

// addWaiter puts a waiter at the end of the line of its key, if there is room.
func (t *table) addWaiter(w *waiter) {
	if !t.waiters.take() {
		return
	}
	s := &t.byKey[t.shardOf(w.acq.Key)]
	s.mu.Lock()
	defer s.mu.Unlock()
	w.entry = s.entryOf(w.acq.Key)
	w.entry.join(w)
}

// removeWaiter takes a waiter out, once.
func (t *table) removeWaiter(w *waiter) {
	if !w.done.CompareAndSwap(false, true) {
		return
	}
	t.waiters.give(w.entry != nil)
	if w.entry == nil {
		return
	}
	w.entry.shard.mu.Lock()
	defer w.entry.shard.mu.Unlock()
	w.entry.leave(w)
	w.entry.tidy()
}

func (e *entry) join(w *waiter) {
	if w.prev = e.last; w.prev == nil {
		e.first = w
	} else {
		w.prev.next = w
	}
	e.last = w
	e.waiting++
}

func (e *entry) leave(w *waiter) {
	if w.prev == nil {
		e.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		e.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	e.waiting--
}

// ofKey gives the holds of a key.
func (t *table) ofKey(key string) []*hold {
	s := &t.byKey[t.shardOf(key)]
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.keys[key]; e != nil {
		return slices.Clone(e.holds)
	}
	return nil
}

// ofField gives the holds of a holder.
func (t *table) ofField(field string) []*hold {
	f := &t.byField[t.shardOf(field)]
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.holds[field])
}

// line is one key as it was at one instant.
type line struct {
	key       string
	holds     []*hold
	waiters   []*waiter
	blockedBy string // field of who is in the way, as far as one of the waiters has seen it
}

// snapshot copies the table, shard by shard.
func (t *table) snapshot() []line {
	var all []line
	for i := range t.byKey {
		all = t.byKey[i].copyTo(all)
	}
	return all
}

func (s *keyShard) copyTo(all []line) []line {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, e := range s.keys {
		l := line{key: key, holds: slices.Clone(e.holds)}
		if e.waiting > 0 {
			l.waiters = make([]*waiter, 0, e.waiting)
		}
		for w := e.first; w != nil; w = w.next {
			l.waiters = append(l.waiters, w)
		}
		all = append(all, l)
	}
	return all
}
