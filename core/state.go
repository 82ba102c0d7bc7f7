package core

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// State is a lock as Redis has it at one instant, asked of the master.
type State struct {
	// Key is the Redis key.
	Key string
	// Holders maps the holder fields ("<client id>:<n>", see [Hold.Field]) to their hold counts.
	// Empty when the lock is free.
	Holders map[string]int
	// TTL is what is left of the lease: 0 when the lock is free, negative when the
	// key has no TTL.
	TTL time.Duration
}

// State reads who holds the lock. A key that is not a lock of this kind is [ErrUnavailable]. Of a MultiLock or
// a Redlock it is [ErrInvalid].
func (l Lock) State(ctx context.Context) (State, error) {
	snap, key, err := ask(ctx, l, "State", (*redisstore.Store).State)
	if err != nil {
		return State{}, err
	}
	state := State{Key: key, Holders: make(map[string]int, len(snap.Holders))}
	if len(snap.Holders) == 0 {
		return state, nil
	}
	state.TTL = snap.TTL
	for field, count := range snap.Holders {
		n, err := strconv.Atoi(count)
		if err != nil || !redisstore.IsHolder(field) {
			return State{}, unavailable(fmt.Errorf("key %q is not a lock of this kind: field %q has the value %q", key, field, count))
		}
		state.Holders[field] = n
	}
	return state, nil
}

// ForceRelease frees the lock from every holder that it has at that moment, as
// RLock.forceUnlock, and says whether it was held. To take it only from the holders that an
// operator has seen, use [Client.Evict]. A holder finds out as described there. For operators:
// the work that the lock guarded may still go on. Of a MultiLock or a Redlock it is [ErrInvalid].
//
// Only a lock is freed. A key of another type, or a hash that is not a plain lock's, stays
// and is [ErrUnavailable]: a holder is "<UUID>:<number>", anything else is not a lock. That includes Redisson's read-write lock, semaphores and
// latches. Its fair, fenced and spin locks have the plain lock's hash and are freed, but
// only waiters of the kind of this Lock are notified.
func (l Lock) ForceRelease(ctx context.Context) (bool, error) {
	freed, key, err := ask(ctx, l, "ForceRelease", (*redisstore.Store).Force)
	if err != nil {
		return false, err
	}
	l.client.evicted(key)
	return freed, nil
}

// ask sends one question about a single lock.
func ask[T any](
	ctx context.Context, l Lock, what string, send func(*redisstore.Store, time.Time, *redisstore.Kind, string) redisstore.Call[T],
) (answer T, key string, err error) {
	switch {
	case l.names != nil:
		return answer, "", invalidf("%s of a MultiLock: ask for each of its locks", what)
	case l.clients != nil:
		return answer, "", invalidf("%s of a Redlock: ask each of its clients, by Lock", what)
	}
	if key, err = l.client.key(l.kind, l.name); err == nil {
		err = l.client.enterAny(ctx)
	}
	if err != nil {
		return answer, "", err
	}
	defer l.client.callers.exit()
	answer, err = waitOut(ctx, l.client, key, func(now time.Time) redisstore.Call[T] {
		return send(l.client.store, now, l.kind, key)
	})
	return answer, key, err
}

// admit admits a caller with an operation on a single lock until it exits, and returns the key.
func (l Lock) admit() (key string, err error) {
	if key, err = l.client.key(l.kind, l.name); err != nil {
		return "", err
	}
	return key, l.client.callers.enter()
}
