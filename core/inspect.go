package core

import (
	"context"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// maxListed is how many holders, and how many waiters, a [LockEntry] names at most.
const maxListed = redisstore.MostFound

// LockEntry is what a Redis key is as a lock, whoever has made it: this client, another one or
// Redisson. It is read from the master in one instant.
type LockEntry struct {
	// Key is the Redis key.
	Key string

	// Exists says that there is such a key. A lock that nobody holds has none; its queue, if it is fair, has
	// another one.
	Exists bool

	// Kind is the kind of lock, as far as the layout tells; empty: the key is no lock, or is not there.
	//
	// [KindReentrant] stands for the spin lock too, for a fair lock for which nobody waits, and for what one
	// server has of a Redlock. [KindFenced] is one beside which there is a counter of fencing tokens.
	// [KindRead] and [KindWrite] say who has the read/write lock. [KindSemaphore] is one of which permits
	// are out. [KindPlainSemaphore] stands for every other number: a semaphore, whose permits nobody owns or
	// are all there, a latch, or something that is no lock at all.
	Kind Kind

	// Holders are those who have it, 50 at most; empty when it is free. HolderCount is how many
	// there are. Of a read/write lock with very many readers, dead ones are among them.
	Holders     []Holder
	HolderCount int

	// TTL is what is left of the lease, of a semaphore of the one that ends first: 0 when it is free,
	// negative when there is no end.
	TTL time.Duration

	// Waiters are the fields of those in the queue of a fair lock, the next one first, 50 at most.
	// Some may have died. WaiterCount is how many there are. Who waits for a lock of another kind is not
	// in Redis.
	Waiters     []string
	WaiterCount int

	// Token is the fencing token that was drawn last, 0 if none ever was, or if the user has no right to
	// its counter.
	Token int64

	// Available is how many permits are left, or what a latch counts.
	Available int64
}

// Holder is one who has a lock.
type Holder struct {
	// Field is what names the holder in Redis: "<client id>:<n>", of a writer with ":write" behind it, of
	// a semaphore the permit id. Callers of one client that pass the lock on in memory are one holder here,
	// with one field: see [Hold.Field].
	Field string

	// Count is how often the holder has it.
	Count int64

	// TTL is what is left of the lease of this holder; negative when it has no end. Where a kind has one
	// lease for all, it is that.
	TTL time.Duration
}

// ClientID is the id of the client that has the lock, see [Client.ID]; empty where the field does not tell,
// as that of a semaphore.
func (h Holder) ClientID() string {
	field := strings.TrimSuffix(h.Field, ":write")
	if i := strings.LastIndexByte(field, ':'); i > 0 {
		return field[:i]
	}
	return ""
}

// Inspect tells what a Redis key is as a lock, of whatever kind: the key as it is in Redis, not the name of
// a lock of this client. A key that is no lock, or is not there, has no kind, and is no error. It costs one
// round trip, and Redis about ten microseconds; some tenths of a millisecond where thousands have the lock.
//
// The error matches [ErrUnavailable], [ErrClosed], or [ErrInvalid] for a key that is empty, or that no lock
// of a Cluster can have.
func (c *Client) Inspect(ctx context.Context, key string) (LockEntry, error) {
	if err := c.enterKey(ctx, key); err != nil {
		return LockEntry{}, err
	}
	defer c.callers.exit()
	found, err := c.inspect(ctx, key)
	if err != nil {
		return LockEntry{}, err
	}
	return entryOf(&found), nil
}

// enterKey admits a caller with a question about a key, until it exits.
func (c *Client) enterKey(ctx context.Context, key string) error {
	if key == "" {
		return invalidf("empty key")
	}
	if err := c.store.CheckName(key); err != nil {
		return invalidf("%v", err)
	}
	return c.enterAny(ctx)
}

// enterAny admits a caller with a question about no lock of its own, until it exits.
func (c *Client) enterAny(ctx context.Context) error {
	if err := c.callers.enter(); err != nil {
		return err
	}
	if err := c.store.Detect(ctx, c.detectLimit(time.Now())); err != nil {
		c.callers.exit()
		return unavailable(err)
	}
	return nil
}

func (c *Client) inspect(ctx context.Context, key string) (redisstore.Found, error) {
	return waitOut(ctx, c, key, func(now time.Time) redisstore.Call[redisstore.Found] { return c.store.Inspect(now, key) })
}

// absentTTL is that of a key that is not there.
const absentTTL = -2 * time.Millisecond

// entryOf is what was found, for callers.
func entryOf(f *redisstore.Found) LockEntry {
	e := LockEntry{
		Key: f.Key, Exists: f.TTL != absentTTL, Kind: Kind(f.What), HolderCount: f.Held, Waiters: f.Waiters, WaiterCount: f.Waiting,
		Token: f.Token, Available: f.Left,
	}
	if f.What != "" && e.Exists {
		e.TTL = f.TTL
	}
	for _, h := range f.Holders {
		e.Holders = append(e.Holders, Holder{Field: h.Field, Count: h.Count, TTL: h.TTL})
	}
	return e
}
