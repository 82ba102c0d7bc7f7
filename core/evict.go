package core

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// evictAttempts is how often Evict looks again at a lock that has become one of another kind.
const evictAttempts = 3

// Evict takes a lock, of whatever kind and by its Redis key, from the holders with these fields: those that
// an operator has seen, by [Client.Inspect] for instance. A holder that is not among them keeps it, such as a
// reader that came later. When the last holder has lost the lock it is free, and Evict notifies the waiters.
//
// The Holders of the entry are those that have lost it. HolderCount is how many held it in the instant before,
// so that the difference still holds it. Of a holder that is not among the first 50 only the field is
// known. If none of the fields holds the lock, nothing is done: the error is [ErrNotHeld], and the entry is
// what is there.
//
// A field may stand for several holders, one after the other: callers of one client that pass the lock on in
// memory ([Hold.Field]). The holder that has the lock when the command is executed loses it, even if the operator
// has seen an earlier holder. Earlier holders have released, and hear nothing.
//
// A holder of this client finds out at once. Another one finds out at its next renewal or, if its lease is
// fixed, when it releases, re-enters or refreshes. For operators: the work that the lock guarded may still go on.
//
// The error matches [ErrUnavailable], also when the key changes its kind again and again, or [ErrClosed]. It
// matches [ErrInvalid] if the lock is held and no field is given, if a field cannot belong to a holder, or if
// the key is not a lock or is a number: a plain semaphore and a latch have no holders, and their own methods
// give permits back or open it. Then nothing is done, and the entry is what is there. After ErrUnavailable the
// lock may be taken, or not.
func (c *Client) Evict(ctx context.Context, key string, fields ...string) (LockEntry, error) {
	if err := checkHolders(fields); err != nil {
		return LockEntry{}, err
	}
	if err := c.enterKey(ctx, key); err != nil {
		return LockEntry{}, err
	}
	defer c.callers.exit()
	found, err := c.inspect(ctx, key)
	for range evictAttempts {
		if err != nil {
			return LockEntry{}, err
		}
		kind, can := c.store.Evicts(&found)
		if !can {
			return entryOf(&found), notEvicted(&found)
		}
		if len(fields) == 0 && found.Held > 0 {
			return entryOf(&found), invalidf("no holder: name the fields of the holders that lose the lock, as Client.Inspect lists them")
		}
		before := found
		var done redisstore.Evicted
		done, err = waitOut(ctx, c, key, func(now time.Time) redisstore.Call[redisstore.Evicted] {
			return c.store.Evict(now, kind, &before, fields)
		})
		found = done.Before
		switch {
		case err != nil || done.Changed:
		case len(done.Lost) == 0:
			return entryOf(&found), errNotTheirs
		default:
			c.evicted(key)
			return lostBy(&found, done.Lost), nil
		}
	}
	if err != nil {
		return LockEntry{}, err
	}
	return entryOf(&found), unavailable(fmt.Errorf("key %q has become a lock of another kind, several times", key))
}

// checkHolders refuses what cannot be the fields of holders.
func checkHolders(fields []string) error {
	for _, field := range fields {
		if !redisstore.IsHolder(field) {
			return invalidf("%.60q is not a holder: want a field such as 71b96ce8-2746-4f0e-8c1a-0d6a1f9f5d11:57, or a permit id, as Client.Inspect lists it", field)
		}
	}
	return nil
}

func lostBy(f *redisstore.Found, lost []string) LockEntry {
	e := entryOf(f)
	e.Holders = slices.DeleteFunc(e.Holders, func(h Holder) bool { return !slices.Contains(lost, h.Field) })
	for _, field := range lost {
		if !slices.ContainsFunc(e.Holders, func(h Holder) bool { return h.Field == field }) {
			e.Holders = append(e.Holders, Holder{Field: field})
		}
	}
	return e
}

// evicted makes this client check its holds of a lock that was taken away.
func (c *Client) evicted(key string) {
	c.queues.Wake(key, "")
	c.doubt(c.queues.Holders(key))
}

var errNotTheirs = fmt.Errorf("%w by one of the given fields", ErrNotHeld)

// notEvicted says why what was found has no holder that could lose it.
func notEvicted(f *redisstore.Found) error {
	switch {
	case f.Absent:
		return errNotTheirs
	case f.What == "":
		return invalidf("the key %.100q is not a lock", f.Key)
	default:
		return invalidf("the key %.100q is a number: a semaphore without leases, or a latch, has no holder that could lose it; "+
			"PlainSemaphore.Release gives permits back, and CountDownLatch.CountDown opens a latch", f.Key)
	}
}
