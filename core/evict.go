package core

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// evictAttempts is how often a lock is looked at again that has become one of another kind meanwhile.
const evictAttempts = 3

// Evict frees a lock by its Redis key, of whatever kind, whoever holds it: as [Lock.ForceRelease] and
// RLock.forceUnlock do. It notifies those who wait, and tells what was there in the instant before: its
// Holders are those who have lost it. Without any it was free, and nothing was done. Of a read/write lock all
// readers lose it, or the writer with the readers inside; of a semaphore whose permits have leases, all come
// back.
//
// With fields, it is freed only if one of them is among its holders, of whom no more than [MaxListed] are
// looked at: so an operator who has seen a holder takes the lock from that one, and from no other who has got
// it since. Else nothing is done: the error is [ErrNotHeld], and the entry is what is there.
//
// A holder of this client finds out at once, another one at its next renewal, or if its lease is fixed, when
// it releases, re-enters or refreshes. For operators: the work that the lock guarded may still go on.
//
// The error matches [ErrUnavailable], also when what is there changes its kind again and again, [ErrClosed], or
// [ErrInvalid] for a key that is no lock, and for a number: nobody holds a plain semaphore or a latch, and
// their own methods give permits back or open it. Then nothing is done, and the entry is what is there. After
// ErrUnavailable the lock may be freed, or not.
func (c *Client) Evict(ctx context.Context, key string, fields ...string) (LockEntry, error) {
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
			return entryOf(&found), notEvicted(&found, fields)
		}
		before := found
		var done redisstore.Evicted
		done, err = waitOut(ctx, c, key, func(now time.Time) redisstore.Call[redisstore.Evicted] {
			return c.store.Evict(now, kind, &before, fields)
		})
		found = done.Before
		switch {
		case err == nil && done.Others:
			return entryOf(&found), fmt.Errorf("%w by one of the given fields", ErrNotHeld)
		case err == nil && !done.Changed:
			c.evicted(key)
			return entryOf(&found), nil
		}
	}
	if err != nil {
		return LockEntry{}, err
	}
	return entryOf(&found), unavailable(fmt.Errorf("key %q has become a lock of another kind, several times", key))
}

// evicted has this client find out that a lock was freed.
func (c *Client) evicted(key string) {
	c.queues.Wake(key, "")
	c.doubt(c.queues.Holders(key))
}

// notEvicted says why what was found cannot be freed by force; nil: there is nothing, and nobody had to
// hold it.
func notEvicted(f *redisstore.Found, fields []string) error {
	switch {
	case f.Absent && len(fields) > 0:
		return fmt.Errorf("%w by one of the given fields", ErrNotHeld)
	case f.Absent:
		return nil
	case f.What == "":
		return invalidf("the key %.100q is no lock", f.Key)
	default:
		return invalidf("the key %.100q is a number: nobody holds a semaphore without leases, or a latch, so that nobody can lose it; "+
			"Semaphore.Release gives permits back, and CountDownLatch.CountDown opens a latch", f.Key)
	}
}
