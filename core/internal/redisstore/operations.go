package redisstore

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// Claim is a lock and a field. The field probably holds the lock, or the caller tries to acquire the lock for it.
type Claim struct {
	Kind       *Kind
	Key, Field string
}

// In all operations, now is the time of sending, from which the caller derives deadlines. now may be a
// little early, but never late.

// Grant is the answer to an attempt.
type Grant struct {
	Refusal *Refusal // nil when the lock was acquired
	Token   int64    // the fencing token; 0 if the kind does not have one
}

func (g Grant) given() bool { return g.Refusal == nil }

// Refusal describes the holder that keeps an attempt from succeeding.
type Refusal struct {
	TTL    time.Duration // the rest of the holder's lease; negative if it has no lease
	Holder string        // the field of a holder
	Index  int           // index of the refused key among several
}

// Acquire prepares an attempt to take a lock for a field that was never used before.
func (s *Store) Acquire(now time.Time, c Claim, t Terms) Call[Grant] {
	k := c.Kind
	if t.Token || k.Fenced || k.beside != nil || k.terms != nil {
		return s.acquireBy(now, c, t)
	}
	return newCall(s, s.call(now, &k.acquire, c.Key, 1, k.hash(c.Key), k.holder(c.Key, c.Field), t.Lease.Milliseconds()), readGrant).withAcks(Grant.given)
}

// acquireBy prepares an attempt with more terms than a lease. It is separate, so that the usual attempt
// does not pay for these terms.
func (s *Store) acquireBy(now time.Time, c Claim, t Terms) Call[Grant] {
	k := c.Kind
	token := t.Token || k.Fenced
	var others []any
	if k.beside != nil {
		others = k.beside(c.Key)
	}
	args := append(grantKeys(k.hash(c.Key), others, token), k.holder(c.Key, c.Field), t.Lease.Milliseconds())
	if k.terms != nil {
		t.channel, t.verb, t.count = k.Channel(c.Key), s.publishVerb(), s.countVerb()
		args = k.terms(args, &t)
	}
	read := readGrant
	if token {
		read = readTokenGrant
	}
	return newCall(s, s.call(now, &k.acquire, c.Key, args...), read).withAcks(Grant.given)
}

// AcquireAll prepares an attempt to take all keys or none. See [Kind.TakesSeveral].
func (s *Store) AcquireAll(now time.Time, k *Kind, keys []string, field string, lease time.Duration) Call[Grant] {
	args := make([]any, 0, len(keys)+3)
	if k.members {
		args = append(args, 1, k.hash(keys[0]), k.holder(keys[0], field), lease.Milliseconds())
		for _, key := range keys[1:] {
			args = append(args, k.holder(key, field))
		}
	} else {
		args = append(args, len(keys))
		for _, key := range keys {
			args = append(args, key)
		}
		args = append(args, field, lease.Milliseconds())
	}
	return newCall(s, s.call(now, &k.acquireAll, keys[0], args...), readGrant).withAcks(Grant.given)
}

func readGrant(reply any) (Grant, error) {
	g, err := readTokenGrant(reply)
	if err == nil && g.Refusal == nil && g.Token != 1 {
		return Grant{}, unexpected("acquire", reply)
	}
	g.Token = 0
	return g, err
}

func readTokenGrant(reply any) (Grant, error) {
	switch v := reply.(type) {
	case int64:
		return Grant{Token: v}, nil
	case []any:
		if r, ok := refusal(v); ok {
			return Grant{Refusal: r}, nil
		}
	}
	return Grant{}, unexpected("acquire", reply)
}

func refusal(v []any) (*Refusal, bool) {
	if len(v) == 0 {
		return nil, false
	}
	ttl, ok := v[0].(int64)
	r := &Refusal{TTL: time.Duration(ttl) * time.Millisecond}
	if len(v) > 1 {
		r.Holder, _ = v[1].(string) //nolint:errcheck // absent if the key expired since
	}
	if len(v) > 2 {
		index, _ := v[2].(int64) //nolint:errcheck // as above
		r.Index = int(index) - 1
	}
	return r, ok
}

// Hold prepares a new hold count for a holder. A TTL below lease is raised to lease. The answer
// reports whether the field is the holder.
func (s *Store) Hold(now time.Time, c Claim, count int, lease time.Duration) Call[bool] {
	call := newCall(s, s.call(now, &c.Kind.hold, c.Key, 1, c.Kind.leaseKey(c.Key), c.Kind.holder(c.Key, c.Field), count, lease.Milliseconds()), readMine)
	if lease <= 0 {
		return call
	}
	return call.withAcks(isTrue)
}

func isTrue(b bool) bool { return b }

func readMine(reply any) (bool, error) {
	v, ok := reply.(int64)
	if !ok {
		return false, unexpected("hold", reply)
	}
	return v > 0, nil
}

// Change is the answer to a script that gives the lock another TTL or holder.
type Change struct {
	Mine  bool  // the field was the holder
	Fell  bool  // the TTL fell, and a message was published
	Token int64 // the token of the new holder; 0 if there is none
}

func (c Change) done() bool { return c.Mine }

// Refresh prepares a new TTL, higher or lower. If the TTL falls, the script publishes a message.
func (s *Store) Refresh(now time.Time, c Claim, lease time.Duration) Call[Change] {
	return newCall(s, s.call(now, &c.Kind.refresh, c.Key, 1, c.Kind.leaseKey(c.Key), c.Kind.holder(c.Key, c.Field), lease.Milliseconds(), c.Kind.Channel(c.Key), s.publishVerb()), readChange).withAcks(Change.done)
}

// HandOff prepares a hand-off of the lock to another field. If the TTL falls, the script publishes a message.
func (s *Store) HandOff(now time.Time, c Claim, to string, t Terms) Call[Change] {
	token := t.Token || c.Kind.Fenced
	args := append(grantKeys(c.Kind.leaseKey(c.Key), nil, token), c.Kind.holder(c.Key, c.Field), c.Kind.holder(c.Key, to), t.Lease.Milliseconds(), c.Kind.Channel(c.Key), s.publishVerb())
	read := readChange
	if token {
		read = readTokenChange
	}
	return newCall(s, s.call(now, &c.Kind.handOff, c.Key, args...), read).withAcks(Change.done)
}

func readChange(reply any) (Change, error) {
	change, err := readTokenChange(reply)
	change.Token = 0
	return change, err
}

func readTokenChange(reply any) (Change, error) {
	var token int64
	if list, ok := reply.([]any); ok && len(list) > 0 {
		if len(list) > 1 {
			token, _ = list[1].(int64) //nolint:errcheck // 0 if there is none
		}
		reply = list[0]
	}
	v, ok := reply.(int64)
	if !ok {
		return Change{}, unexpected("lock script", reply)
	}
	return Change{Mine: v > 0, Fell: v == 2, Token: token}, nil
}

// Released is the answer to a release.
type Released struct {
	Mine     bool // the field was the holder
	Kept     bool // other holders remain, and no message was published
	Behind   bool // the slot moves, so something may be left of the holder; a clear removes it
	Notified int  // how many subscribers got the message
}

// Release prepares the release of the lock, if the field holds it.
func (s *Store) Release(now time.Time, c Claim) Call[Released] {
	k := c.Kind
	if k.leases == nil {
		return newCall(s, s.call(now, &k.release, c.Key, 1, k.hash(c.Key), k.holder(c.Key, c.Field), k.Channel(c.Key), s.publishVerb()), readReleased)
	}
	return newCall(s, s.call(now, &k.release, c.Key, append(k.keyArgs(c.Key), k.holder(c.Key, c.Field), k.Channel(c.Key), s.publishVerb())...), readReleased)
}

func readReleased(reply any) (Released, error) {
	list, behind := reply.([]any)
	if len(list) == 1 {
		reply = list[0]
	}
	v, ok := reply.(int64)
	if !ok {
		return Released{}, unexpected("release", reply)
	}
	return Released{Mine: v != 0, Kept: v < 0, Behind: behind, Notified: max(int(v)-1, 0)}, nil
}

// Force prepares the release of the lock, whichever client holds it. The answer reports whether the
// lock was held.
func (s *Store) Force(now time.Time, k *Kind, key string) Call[bool] {
	args := append(k.keyArgs(key), k.Channel(key), s.publishVerb())
	if k.HasMembers() {
		args = append(args, k.holder(key, ""))
	}
	call := newCall(s, s.call(now, &k.force, key, args...), readForced).sendOnce()
	if k.Holds != Unheld {
		return call
	}
	return call.withAcks(func(bool) bool { return true }) // no lease limits this change, so it has to reach the replicas
}

func readForced(reply any) (bool, error) {
	v, ok := reply.(int64)
	switch {
	case !ok:
		return false, unexpected("force", reply)
	case v < 0:
		return false, &wire.UnreadableError{Cause: ErrNotALock}
	default:
		return v == 1, nil
	}
}

// Snapshot is the state of a lock at one instant.
type Snapshot struct {
	TTL     time.Duration // as PTTL gives it: -1 ms without a TTL, -2 ms if the lock is absent
	Holders map[string]string
}

// State prepares a query for a Snapshot.
func (s *Store) State(now time.Time, k *Kind, key string) Call[Snapshot] {
	args := append(make([]any, 0, 3), 1, k.leaseKey(key)) //nolint:mnd // with room for the member
	if k.HasMembers() {
		args = append(args, k.holder(key, ""))
	}
	return newCall(s, s.call(now, &k.state, key, args...), readState).markReadOnly()
}

func readState(reply any) (Snapshot, error) {
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
