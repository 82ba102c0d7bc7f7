package redisstore

import (
	"errors"
	"time"
)

// Refusal tells who was in the way of an acquire.
type Refusal struct {
	TTL    time.Duration // what is left of the holder's lease; negative when it has none
	Holder string        // a holder's field
	Index  int           // which of several keys
}

// Operations take now, the time at which they are sent, from the caller, who has
// just looked at the clock and derives deadlines from it: it may be a little early,
// never late.

// Acquire prepares an attempt to take key for a field that was never used before.
func (s *Store) Acquire(now time.Time, key, field string, lease time.Duration) Call {
	return s.call(now, &s.scripts.acquire, key, 1, key, field, lease.Milliseconds())
}

// AcquireAll prepares an attempt to take all keys or none.
func (s *Store) AcquireAll(now time.Time, keys []string, field string, lease time.Duration) Call {
	args := make([]any, 0, len(keys)+3)
	args = append(args, len(keys))
	for _, key := range keys {
		args = append(args, key)
	}
	args = append(args, field, lease.Milliseconds())
	return s.call(now, &s.scripts.acquireAll, keys[0], args...)
}

// Granted reads the reply of Acquire and AcquireAll: nil when the lock was taken.
func Granted(reply any) (*Refusal, error) {
	switch v := reply.(type) {
	case int64:
		if v == 1 {
			return nil, nil //nolint:nilnil // no refusal and no error: granted
		}
	case []any:
		if r, ok := refusal(v); ok {
			return r, nil
		}
	}
	return nil, unexpected("acquire", reply)
}

func refusal(v []any) (*Refusal, bool) {
	if len(v) == 0 {
		return nil, false
	}
	ttl, ok := v[0].(int64)
	r := &Refusal{TTL: time.Duration(ttl) * time.Millisecond}
	if len(v) > 1 {
		r.Holder, _ = v[1].(string) //nolint:errcheck // absent when the key expired in between
	}
	if len(v) > 2 {
		index, _ := v[2].(int64) //nolint:errcheck // as above
		r.Index = int(index) - 1
	}
	return r, ok
}

// SetHold prepares a new hold count for a holder, and raises the TTL to lease if that
// is more.
func (s *Store) SetHold(now time.Time, key, field string, count int, lease time.Duration) Call {
	return s.call(now, &s.scripts.setHold, key, 1, key, field, count, lease.Milliseconds())
}

// Refresh prepares a new TTL, higher or lower. A lower one is published.
func (s *Store) Refresh(now time.Time, key, field string, lease time.Duration) Call {
	return s.call(now, &s.scripts.refresh, key, 1, key, field, lease.Milliseconds(), Channel(key), s.publishVerb())
}

// Handoff prepares the passing of the lock from one field to another. A lower TTL is
// published.
func (s *Store) Handoff(now time.Time, key, from, to string, lease time.Duration) Call {
	return s.call(now, &s.scripts.handoff, key, 1, key, from, to, lease.Milliseconds(), Channel(key), s.publishVerb())
}

// Mine reads the reply of SetHold, Refresh and Handoff.
func Mine(reply any) (bool, error) {
	v, ok := reply.(int64)
	if !ok {
		return false, unexpected("lock script", reply)
	}
	return v > 0, nil
}

// Fell says whether Refresh or Handoff has lowered the TTL, and published that.
func Fell(reply any) bool { return reply == int64(2) }

// Release prepares the freeing of the lock if field holds it.
func (s *Store) Release(now time.Time, key, field string) Call {
	return s.call(now, &s.scripts.release, key, 1, key, field, Channel(key), s.publishVerb())
}

// Released reads the reply of Release: whether it was held, and how many
// subscribers were told.
func Released(reply any) (mine bool, told int, err error) {
	v, ok := reply.(int64)
	if !ok {
		return false, 0, unexpected("release", reply)
	}
	return v > 0, int(v) - 1, nil
}

// Force prepares the freeing of the lock whoever holds it.
func (s *Store) Force(now time.Time, key string) Call {
	c := s.call(now, &s.scripts.force, key, 1, key, Channel(key), s.publishVerb())
	c.patient = true
	return c
}

// ErrNotALock says that the key has a hash which is not that of a plain lock.
var ErrNotALock = errors.New("the hash is not that of a plain lock")

// Freed reads the reply of Force: whether the lock was held.
func Freed(reply any) (bool, error) {
	v, ok := reply.(int64)
	switch {
	case !ok:
		return false, unexpected("force", reply)
	case v < 0:
		return false, ErrNotALock
	default:
		return v == 1, nil
	}
}

// Snapshot is a lock at one instant.
type Snapshot struct {
	TTL     time.Duration // as of PTTL: -1 ms without a TTL, -2 ms when absent
	Holders map[string]string
}

// State prepares a question for a Snapshot.
func (s *Store) State(now time.Time, key string) Call {
	c := s.call(now, &s.scripts.state, key, 1, key)
	c.patient = true
	return c
}

// ReadState reads the reply of State.
func ReadState(reply any) (Snapshot, error) {
	v, ok := reply.([]any)
	if !ok || len(v)%2 != 1 {
		return Snapshot{}, unexpected("state", reply)
	}
	ttl, ok := v[0].(int64)
	if !ok {
		return Snapshot{}, unexpected("state", reply)
	}
	snap := Snapshot{TTL: time.Duration(ttl) * time.Millisecond, Holders: make(map[string]string, len(v)/2)}
	for i := 1; i < len(v); i += 2 {
		field, okField := v[i].(string)
		count, okCount := v[i+1].(string)
		if !okField || !okCount {
			return Snapshot{}, unexpected("state", reply)
		}
		snap.Holders[field] = count
	}
	return snap, nil
}
