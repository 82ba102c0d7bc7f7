package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/resend"
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
	if key, err = l.keyOf(l.name); err == nil {
		err = l.client.enterAny(ctx)
	}
	if err != nil {
		return answer, "", err
	}
	defer l.client.callers.exit()
	answer, err = askWithin(ctx, l.client, key, func(now time.Time) redisstore.Call[T] {
		return send(l.client.store, now, l.kind, key)
	})
	return answer, key, err
}

// askWithin sends a question, and sends it again while Redis refuses it for a reason that passes by itself.
func askWithin[T any](ctx context.Context, c *Client, key string, prepare func(now time.Time) redisstore.Call[T]) (T, error) {
	answer, err := resend.WaitOut(ctx, c.sender, key, prepare)
	return answer, public(err)
}

// admit admits a caller with an operation on a single lock until it exits, and returns the key.
func (l Lock) admit() (key string, err error) {
	if key, err = l.keyOf(l.name); err != nil {
		return "", err
	}
	return key, l.client.callers.enter()
}

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
	if err := c.store.Detect(ctx, c.sender.DetectLimit(time.Now())); err != nil {
		c.callers.exit()
		return unavailable(err)
	}
	return nil
}

func (c *Client) inspect(ctx context.Context, key string) (redisstore.Found, error) {
	return askWithin(ctx, c, key, func(now time.Time) redisstore.Call[redisstore.Found] { return c.store.Inspect(now, key) })
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

// LockQuery says which locks [Client.Locks] lists.
type LockQuery struct {
	// Prefix is what the Redis keys begin with; nothing is put in front of it. Empty: the prefix of the
	// client, which may be empty, too: then all keys of the database are looked at.
	Prefix string

	// Cursor is that of the page before; empty: the list begins.
	Cursor string

	// Limit is how many keys are looked at for one page, whether they are locks or not. 0: 1000.
	Limit int

	// Counts lists keys of [KindPlainSemaphore], too. By its layout any number is one.
	Counts bool
}

// LockPage is a part of a list of locks.
type LockPage struct {
	// Locks are those that were found, in no order. A page may have none, and not be the last one.
	Locks []LockEntry

	// Cursor is for the next page; empty: this is the last one.
	Cursor string

	// Looked is about how many keys were looked at for this page, and Keys how many there are in all masters,
	// locks or not. When all pages are there, the former add up to the latter.
	Looked, Keys int64
}

// defaultLimit is the Limit of a [LockQuery] that has none.
const defaultLimit = 1000

// Locks lists the locks in Redis whose keys begin with a prefix, page by page, whoever holds them: keys
// of whatever kind that have a holder, and fair locks that are free and have waiters. What is no lock by its
// layout is left out, and so are the keys that belong to a lock, such as queues and counters of tokens,
// whose contents are in the entry of the lock.
//
// A lock that is there from the first page to the last is listed at least once; one that comes, goes or
// changes its holder meanwhile may be listed or not. No key is twice in one page, but one may be in two. In a
// Cluster, masters are looked at one after the other. One that takes over for another, or was started anew,
// is looked at from its beginning (if the user of Redis may use INFO; else only where its address is another
// one, so that behind a Sentinel or after a restart locks may be missed). A lock whose slot moves to another
// node meanwhile may be missed.
//
// Nothing is held up: SCAN looks at 100 keys at a time, and one pipeline asks for all of them that match.
// A command costs Redis about a tenth of a millisecond; see [Client.Inspect] for locks that very many have.
// They go through the pool of the Redis client, without its Limiter and not on the connections for locks,
// and no hook sees them. In memory there is never more than a page.
//
// The error matches [ErrUnavailable], [ErrClosed], or [ErrInvalid] for a limit below 0 or a cursor that
// is not one. One master of a Cluster that does not answer is ErrUnavailable for all. After that the same page
// can be asked for again.
func (c *Client) Locks(ctx context.Context, q LockQuery) (LockPage, error) {
	if q.Limit < 0 {
		return LockPage{}, invalidf("LockQuery.Limit %d: want 1 or more, or 0 for %d", q.Limit, defaultLimit)
	}
	if err := c.enterAny(ctx); err != nil {
		return LockPage{}, err
	}
	defer c.callers.exit()
	page, err := c.store.List(ctx, redisstore.Query{
		Prefix: cmp.Or(q.Prefix, c.cfg.prefix), Cursor: q.Cursor, Limit: cmp.Or(q.Limit, defaultLimit), Counts: q.Counts,
	})
	if errors.Is(err, redisstore.ErrCursor) {
		return LockPage{}, invalidf("LockQuery.Cursor %.40q: want that of the page before, or an empty one", q.Cursor)
	}
	if err != nil {
		return LockPage{}, unavailable(err)
	}
	list := LockPage{Cursor: page.Cursor, Looked: page.Looked, Keys: page.Keys, Locks: make([]LockEntry, len(page.Found))}
	for i := range page.Found {
		list.Locks[i] = entryOf(&page.Found[i])
	}
	return list, nil
}

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
		done, err = askWithin(ctx, c, key, func(now time.Time) redisstore.Call[redisstore.Evicted] {
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
	c.holdings.Doubt(c.queues.Holders(key))
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
