package lockz

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/core"
)

// shards is the number of parts of a table, each with its mutex.
const shards = 64

// table indexes the holds and the waiters of this process by key. Every operation except snapshot locks
// one of its shards briefly. The table also records which clients share a Redis.
type table struct {
	seed   maphash.Seed
	parts  [shards]shard
	realms realms
}

type shard struct {
	mu   sync.Mutex
	keys map[string]*entry
	free []*entry // entries to reuse for the next keys
}

// freeEntries is the number of unused entries that a shard keeps.
const freeEntries = 32

func newTable() *table {
	t := &table{seed: maphash.MakeSeed()}
	for i := range shards {
		t.parts[i].keys = make(map[string]*entry)
	}
	return t
}

func (t *table) shardOf(key string) *shard { return &t.parts[maphash.String(t.seed, key)%shards] }

// entryOf returns the entry of a key. It creates one if the key has none. The caller holds the
// mutex.
func (s *shard) entryOf(key string) *entry {
	if e := s.keys[key]; e != nil {
		return e
	}
	var e *entry
	if last := len(s.free) - 1; last >= 0 {
		e, s.free = s.free[last], s.free[:last]
	} else {
		e = &entry{}
	}
	e.key, e.holds, e.waiters = key, e.oneHold[:0], e.oneWaiter[:0]
	s.keys[key] = e
	return e
}

// tidy removes an entry without holds and waiters. The caller holds the mutex.
func (s *shard) tidy(e *entry) {
	if len(e.holds)+len(e.waiters) > 0 {
		return
	}
	delete(s.keys, e.key)
	if len(s.free) < freeEntries {
		*e = entry{}
		s.free = append(s.free, e)
	}
}

// addHold adds a hold under each of its keys.
func (t *table) addHold(h *hold) {
	for i := range h.keys {
		t.shardOf(h.name(i)).addHold(h.name(i), h)
	}
}

func (s *shard) addHold(key string, h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entryOf(key)
	e.holds = append(e.holds, h)
}

// removeHold removes a hold. Further calls do nothing.
func (t *table) removeHold(h *hold) {
	if !h.done.CompareAndSwap(false, true) {
		return
	}
	for i := range h.keys {
		t.shardOf(h.name(i)).removeHold(h.name(i), h)
	}
}

func (s *shard) removeHold(key string, h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.keys[key]; e != nil {
		e.holds = slices.DeleteFunc(e.holds, func(other *hold) bool { return other == h })
		s.tidy(e)
	}
}

// addWaiter adds a waiter under its first key.
func (t *table) addWaiter(w *waiter) {
	s := t.shardOf(w.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.entry = s.entryOf(w.key)
	w.at = len(w.entry.waiters)
	w.entry.waiters = append(w.entry.waiters, w)
}

// removeWaiter removes a waiter. Further calls do nothing.
func (t *table) removeWaiter(w *waiter) {
	if !w.done.CompareAndSwap(false, true) {
		return
	}
	s, e := t.shardOf(w.key), w.entry
	s.mu.Lock()
	defer s.mu.Unlock()
	last := e.waiters[len(e.waiters)-1]
	e.waiters[w.at], last.at = last, w.at
	e.waiters[len(e.waiters)-1] = nil
	e.waiters = e.waiters[:len(e.waiters)-1]
	s.tidy(e)
}

// learnRealm records that the client of a waiter uses the same Redis as the client whose hold refused
// the waiter. A waiter that queued behind other waiters of this process was refused by no hold.
func (t *table) learnRealm(w *waiter) {
	if w.blockedBy == "" || clientID(w.blockedBy) == w.client {
		return
	}
	for i := range w.keys {
		for _, h := range t.ofKey(w.name(i)) {
			if h.field == w.blockedBy {
				t.realms.unite(w.client, h.client)
			}
		}
	}
}

// behindWriter reports whether w is a reader that queues behind a writer. Like that writer, it waits for
// the readers that hold the lock.
func (t *table) behindWriter(w *waiter) bool {
	if w.rule.kind != core.KindRead {
		return false
	}
	s := t.shardOf(w.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.keys[w.key]
	if e == nil {
		return false // w ended a moment ago
	}
	for _, other := range e.waiters {
		if other.rule.kind == core.KindWrite && other.start.Before(w.start) && t.realms.same(other.client, w.client) {
			return true
		}
	}
	return false
}

// ofKey returns the holds of a key.
func (t *table) ofKey(key string) []*hold {
	s := t.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.keys[key]; e != nil {
		return slices.Clone(e.holds)
	}
	return nil
}

// ofField returns the hold of this process that has the key under a holder field, or nil.
func (t *table) ofField(key, field string) (found *hold) {
	for _, h := range t.ofKey(key) {
		if h.field == field && (found == nil || h.supersedes(found)) {
			found = h
		}
	}
	return found
}

// line is the state of one key in one Redis at one instant.
type line struct {
	key       string
	client    string // one of the clients that use this Redis
	holds     []*hold
	waiters   []*waiter
	blockedBy string // holder field that one of the waiters found; empty: none did
}

// snapshot copies the table, one shard after the other.
func (t *table) snapshot() []line {
	var all []line
	for i := range t.parts {
		all = t.parts[i].copyTo(all, &t.realms)
	}
	return all
}

func (s *shard) copyTo(all []line, realms *realms) []line {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, e := range s.keys {
		first := len(all)
		lineOf := func(client string) *line {
			for i := first; i < len(all); i++ {
				if realms.same(all[i].client, client) {
					return &all[i]
				}
			}
			all = append(all, line{key: key, client: client})
			return &all[len(all)-1]
		}
		for _, h := range e.holds {
			l := lineOf(h.client)
			l.holds = append(l.holds, h)
		}
		for _, w := range e.waiters {
			l := lineOf(w.client)
			l.waiters = append(l.waiters, w)
		}
	}
	return all
}

// realms groups clients that are known to use the same Redis: a client that is refused because of a hold
// of another client uses the Redis of that client. Redis is not asked. Until two clients are in one
// group, their equal keys count as different locks.
type realms struct {
	mu   sync.RWMutex
	next map[string]string // from a client to another client of its group
}

// same reports whether two clients are known to use one Redis.
func (r *realms) same(a, b string) bool {
	if a == b {
		return true
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.root(a) == r.root(b)
}

// unite puts two clients and their groups into one group.
func (r *realms) unite(a, b string) {
	if r.same(a, b) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if from, to := r.root(a), r.root(b); from != to {
		if r.next == nil {
			r.next = make(map[string]string)
		}
		r.next[from] = to
	}
}

// root returns the client that represents the group of a client. The caller holds the mutex.
func (r *realms) root(client string) string {
	for {
		next, ok := r.next[client]
		if !ok {
			return client
		}
		client = next
	}
}
