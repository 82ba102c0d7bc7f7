package lockz

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/core"
)

// shards is how many parts a table has, each with a mutex of its own.
const shards = 64

// table knows which holds and waiters there are, by key. Every operation but snapshot takes one
// mutex of many for a moment.
type table struct {
	seed   maphash.Seed
	parts  [shards]shard
	realms realms
}

type shard struct {
	mu   sync.Mutex
	keys map[string]*entry
	free []*entry // for the next keys
}

// freeEntries is how many entries a shard keeps for the next keys.
const freeEntries = 32

// entry is one key with those who hold it or wait for it here.
type entry struct {
	shard   *shard
	key     string
	holds   []*hold
	waiters []*waiter

	oneHold   [1]*hold // room for the usual single one
	oneWaiter [1]*waiter
}

func newTable() *table {
	t := &table{seed: maphash.MakeSeed()}
	for i := range shards {
		t.parts[i].keys = make(map[string]*entry)
	}
	return t
}

func (t *table) shardOf(key string) *shard { return &t.parts[maphash.String(t.seed, key)%shards] }

// entryOf is that of a key, made when it is not there. The mutex of the shard is held.
func (s *shard) entryOf(key string) *entry {
	if e := s.keys[key]; e != nil {
		return e
	}
	var e *entry
	if last := len(s.free) - 1; last >= 0 {
		e, s.free = s.free[last], s.free[:last]
	} else {
		e = &entry{shard: s}
	}
	e.key, e.holds, e.waiters = key, e.oneHold[:0], e.oneWaiter[:0]
	s.keys[key] = e
	return e
}

// tidy forgets an entry that nobody is in. The mutex is held.
func (e *entry) tidy() {
	if len(e.holds)+len(e.waiters) > 0 {
		return
	}
	delete(e.shard.keys, e.key)
	if len(e.shard.free) < freeEntries {
		*e = entry{shard: e.shard}
		e.shard.free = append(e.shard.free, e)
	}
}

// addHold takes a hold in.
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

// removeHold takes a hold out, once.
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
		e.tidy()
	}
}

// addWaiter takes a waiter in.
func (t *table) addWaiter(w *waiter) {
	s := t.shardOf(w.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.entry = s.entryOf(w.key)
	w.at = len(w.entry.waiters)
	w.entry.waiters = append(w.entry.waiters, w)
}

// removeWaiter takes a waiter out, once.
func (t *table) removeWaiter(w *waiter) {
	if !w.done.CompareAndSwap(false, true) {
		return
	}
	e := w.entry
	e.shard.mu.Lock()
	defer e.shard.mu.Unlock()
	last := e.waiters[len(e.waiters)-1]
	e.waiters[w.at], last.at = last, w.at
	e.waiters[len(e.waiters)-1] = nil
	e.waiters = e.waiters[:len(e.waiters)-1]
	e.tidy()
}

// sameRedis notes that the client of a waiter and the client of the hold that has refused it use
// one Redis. No hold has refused a waiter that queues behind other waiters of this process.
func (t *table) sameRedis(w *waiter) {
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

// behindWriter reports whether w is a reader that came after a writer, which waits for those who
// read: then w does, too.
func (t *table) behindWriter(w *waiter) bool {
	if w.rule.kind != core.KindRead {
		return false
	}
	s := t.shardOf(w.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.keys[w.key]
	if e == nil {
		return false // it has just left
	}
	for _, other := range e.waiters {
		if other.rule.kind == core.KindWrite && other.start.Before(w.start) && t.realms.same(other.client, w.client) {
			return true
		}
	}
	return false
}

// ofKey gives the holds of a key.
func (t *table) ofKey(key string) []*hold {
	s := t.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.keys[key]; e != nil {
		return slices.Clone(e.holds)
	}
	return nil
}

// ofField gives the hold of a key that has a field in Redis; nil: none here has it.
func (t *table) ofField(key, field string) (found *hold) {
	for _, h := range t.ofKey(key) {
		if h.field == field && (found == nil || h.outer(found)) {
			found = h
		}
	}
	return found
}

// line is one key of one Redis as it was at one instant.
type line struct {
	key       string
	client    string // one of those that use this Redis
	holds     []*hold
	waiters   []*waiter
	blockedBy string // field of who is in the way, as far as one of the waiters has seen it
}

// snapshot copies the table, shard by shard.
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

// realms knows which clients lock in the same Redis, without asking it: a client that was refused
// because of a holder of another client uses the same Redis. Equal keys of other clients may be
// different locks.
type realms struct {
	mu sync.RWMutex
	of map[string]string // from a client to another one of its realm
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

// unite notes that two clients use one Redis.
func (r *realms) unite(a, b string) {
	if r.same(a, b) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if from, to := r.root(a), r.root(b); from != to {
		if r.of == nil {
			r.of = make(map[string]string)
		}
		r.of[from] = to
	}
}

// root is the client that stands for the realm of another one. The mutex is held.
func (r *realms) root(client string) string {
	for {
		next, ok := r.of[client]
		if !ok {
			return client
		}
		client = next
	}
}
