package redisstore

import "time"

// Evicted is the answer to an eviction.
type Evicted struct {
	Before  Found // what was there
	Freed   bool
	Changed bool // it was something else by then, and stays
	Others  bool // none of the fields held it, and it stays
}

// eviction is the force of a kind behind a look at what is there, in one step.
func (k *Kind) eviction() script {
	return scriptFrom(sourceOf(scriptOf("rw", "rw_others", "inspect")) +
		"local function force()\n" + sourceOf(k.force) + "\nend\n" + sourceOf(scriptOf("evict")))
}

func sourceOf(s script) string { return s.source.(string) } //nolint:errcheck,forcetypeassert // scriptOf makes one

// Evicts reports whether what was found can be freed by force, and as which kind. Of a count nobody knows
// what it is.
func (s *Store) Evicts(f *Found) (*Kind, bool) {
	for _, k := range s.kinds.All() {
		if k.Name == f.What && k != s.kinds.PlainSemaphore && k != s.kinds.Latch {
			return k, true
		}
	}
	return nil, false
}

// Evict prepares the freeing of a lock that was found, whoever holds it, or only one of some fields.
func (s *Store) Evict(now time.Time, k *Kind, f *Found, fields []string) Call[Evicted] {
	args := append(k.both(f.Key), k.Channel(f.Key), s.publishVerb(), f.What)
	args = appendTexts(append(args, besides(f.Key)...), fields)
	sc := k.eviction()
	return typed(s.call(now, &sc, f.Key, args...), func(reply any) (Evicted, error) { return readEvicted(f.Key, reply) })
}

func readEvicted(key string, reply any) (Evicted, error) {
	v := elementsOf(reply)
	if len(v) != 2 {
		return Evicted{}, unexpected("evict", reply)
	}
	before, err := readFound(key, v[1])
	done, ok := v[0].(int64)
	switch {
	case err != nil:
		return Evicted{}, err
	case !ok:
		return Evicted{}, unexpected("evict", reply)
	case done == -1:
		return Evicted{}, &unreadableError{ErrNotALock}
	}
	return Evicted{Before: before, Freed: done == 1, Changed: done == -2, Others: done == -3}, nil
}
