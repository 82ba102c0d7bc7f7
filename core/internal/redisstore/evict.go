package redisstore

import (
	"regexp"
	"time"
)

// Evicted is the answer to an eviction.
type Evicted struct {
	Before  Found    // the lock before the eviction
	Lost    []string // the fields that lost the lock
	Changed bool     // the key no longer contained the kind of lock that was found, so the script did nothing
}

// holder matches the fields of holders: of reentrant holds, of writers, and of permits.
var holder = regexp.MustCompile(`^(?:[[:xdigit:]]{8}(?:-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}:-?[0-9]+(?::write)?|[[:xdigit:]]{32})$`)

// IsHolder reports whether a field can belong to a holder of any kind.
func IsHolder(field string) bool { return holder.MatchString(field) }

// eviction returns a script that inspects the key and then runs the release of the kind for some
// holders.
func (k *Kind) eviction() script {
	return scriptFrom(sourceOf(scriptOf("rw", "rw_others", "holder", "inspect")) +
		"local function release(KEYS, ARGV)\n" + sourceOf(k.release) + "\nend\n" + sourceOf(scriptOf("evict")))
}

// Evicts returns the kind of a found lock, and reports whether the lock can be taken from its holders.
func (s *Store) Evicts(f *Found) (*Kind, bool) {
	for _, k := range s.kinds.Keyed() {
		if k.Name == f.What && k.Holds != Unheld {
			return k, true
		}
	}
	return nil, false
}

// Evict prepares a script that takes a found lock from the holders with some fields.
func (s *Store) Evict(now time.Time, k *Kind, f *Found, fields []string) Call[Evicted] {
	args := append(k.keyArgs(f.Key), k.Channel(f.Key), s.publishVerb(), f.What)
	args = append(args, inspectArgs(f.Key)...)
	for _, field := range fields {
		args = append(args, k.Holds.wire(field))
	}
	sc := k.eviction()
	return newCall(s, s.call(now, &sc, f.Key, args...), func(reply any) (Evicted, error) { return readEvicted(f.Key, fields, reply) }).sendOnce()
}

func readEvicted(key string, fields []string, reply any) (Evicted, error) {
	r := replyReader{rest: elementsOf(reply), ok: true}
	before, err := readFound(key, r.next())
	if err != nil {
		return Evicted{}, err
	}
	e := Evicted{Before: before, Changed: len(r.rest) == 0}
	if e.Changed {
		return e, nil
	}
	lost := replyReader{rest: r.list(), ok: true}
	if !r.ok {
		return Evicted{}, unexpected("evict", reply)
	}
	for len(lost.rest) > 0 {
		i := lost.number()
		if !lost.ok || i < 0 || i >= int64(len(fields)) {
			return Evicted{}, unexpected("evict", reply)
		}
		e.Lost = append(e.Lost, fields[i])
	}
	return e, nil
}
