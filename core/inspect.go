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

// State is the state of a lock on the master at one instant.
type State struct {
	// Key is the Redis key.
	Key string
	// Holders maps the holder fields ("<client id>:<n>", see [Hold.Field]) to their hold counts. It is empty if
	// the lock is free.
	Holders map[string]int
	// TTL is the rest of the lease: 0 if the lock is free, negative if the key has no TTL.
	TTL time.Duration
}

// State reads the holders of the lock from Redis. If the key is not a lock of this kind, the error is [ErrUnavailable].
// For a MultiLock or a Redlock it is [ErrInvalid].
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

// ForceRelease takes the lock from all its present holders, like RLock.forceUnlock, and reports whether the lock was
// held. To take the lock only from the holders that an operator has seen, use [Client.Evict], whose comment describes
// how a holder is notified. ForceRelease is for operators, because the work under the lock may still go on. For a
// MultiLock or a Redlock the error is [ErrInvalid].
//
// ForceRelease deletes the key only if it is a lock. If the key has another type, or is a hash that a plain lock cannot
// have, the key stays, and the error is [ErrUnavailable]. A holder is "<UUID>:<number>". Keys without such holders
// stay, such as Redisson's read-write lock, semaphores and latches. Redisson's fair, fenced and spin locks have the
// hash of a plain lock and are freed, but only waiters of the kind of this Lock are notified.
func (l Lock) ForceRelease(ctx context.Context) (bool, error) {
	freed, key, err := ask(ctx, l, "ForceRelease", (*redisstore.Store).Force)
	if err != nil {
		return false, err
	}
	l.client.checkEvicted(key)
	return freed, nil
}

// ask sends one query about a single lock.
func ask[T any](
	ctx context.Context, l Lock, what string, send func(*redisstore.Store, time.Time, *redisstore.Kind, string) redisstore.Call[T],
) (answer T, key string, err error) {
	switch {
	case l.isZero():
		return answer, "", errZero
	case l.names != nil && l.kind.HasMembers():
		return answer, "", invalidf("%s of a GroupLock: ask for one value at a time", what)
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

// askWithin sends a query and sends it again while Redis refuses it for a reason that passes by itself.
func askWithin[T any](ctx context.Context, c *Client, key string, prepare func(now time.Time) redisstore.Call[T]) (T, error) {
	answer, err := resend.WaitOut(ctx, c.sender, key, prepare)
	return answer, publicError(err)
}

// admit returns the key of a single lock and lets a caller enter the client (see callers). The caller has to exit.
func (l Lock) admit() (key string, err error) {
	if key, err = l.keyOf(l.name); err != nil {
		return "", err
	}
	return key, l.client.callers.enter()
}

// LockEntry describes a Redis key as a lock, whether this client, another client or Redisson created it. It is read
// from the master at one instant.
type LockEntry struct {
	// Key is the Redis key.
	Key string

	// Exists reports whether there is such a key. A lock without a holder has no key; the queue of a fair lock is
	// another key.
	Exists bool

	// Kind is the kind of lock, as far as the layout in Redis reveals the kind. It is empty if the key is not a lock,
	// or does not exist.
	//
	// [KindReentrant] also stands for the spin lock, for a fair lock without waiters, and for the part of a Redlock on
	// one server. [KindFenced] is a lock that also has a counter of fencing tokens. [KindRead] and [KindWrite] show
	// whether readers or a writer hold the read/write lock. [KindSemaphore] is a semaphore with permits that are held.
	// [KindPlainSemaphore] stands for every other number: a semaphore without holders, a semaphore whose permits are
	// all free, a latch, or a number that is not a lock at all.
	Kind Kind

	// Holders are at most 50 of the holders; empty if the lock is free. HolderCount is the number of holders. For a
	// read/write lock with very many readers, both may include dead ones.
	Holders     []Holder
	HolderCount int

	// TTL is the rest of the lease; for a semaphore, of the lease that ends first. It is 0 if the lock is free,
	// negative if the lease has no end.
	TTL time.Duration

	// Waiters are at most 50 of the fields in the queue of a fair lock, the next one first. Some of the waiters may
	// have died. WaiterCount is the number of waiters. Waiters for a lock of another kind are not in Redis.
	Waiters     []string
	WaiterCount int

	// Token is the last fencing token; 0 if the lock never had one, or if the user may not read the counter of tokens.
	Token int64

	// Available is the number of free permits, or the count of a latch.
	Available int64
}

// Holder is a holder of a lock in Redis.
type Holder struct {
	// Field is the name of the holder in Redis: "<client id>:<n>", for a writer followed by ":write", for a semaphore
	// the permit id. Callers of one client that pass the lock on in memory are one holder here, with one field: see
	// [Hold.Field].
	Field string

	// Count is the number of holds: how often the holder has entered the lock.
	Count int64

	// TTL is the rest of the lease of this holder; negative if it has no end. If a kind has one lease for all
	// holders, it is the rest of that lease.
	TTL time.Duration
}

// ClientID returns the id of the client that has the lock, see [Client.ID]. It returns "" if the field does not contain
// an id, as in a semaphore.
func (h Holder) ClientID() string {
	field := strings.TrimSuffix(h.Field, ":write")
	if i := strings.LastIndexByte(field, ':'); i > 0 {
		return field[:i]
	}
	return ""
}

// Inspect reads a Redis key as a lock, of whatever kind. key is the key in Redis, not the name of a lock of this
// client. If the key is not a lock, or does not exist, the entry has no kind, and the error is nil. Inspect
// costs one round trip, and in Redis about ten microseconds, or some tenths of a millisecond if the lock has
// thousands of holders.
//
// The error matches [ErrUnavailable], [ErrClosed], or [ErrInvalid] for a key that is empty, or that no lock of a
// Cluster can have.
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

// enterKey lets a caller with a query about a key enter the client. The caller has to exit.
func (c *Client) enterKey(ctx context.Context, key string) error {
	if key == "" {
		return invalidf("empty key")
	}
	if err := c.store.CheckName(key); err != nil {
		return invalidf("%v", err)
	}
	return c.enterAny(ctx)
}

// enterAny lets a caller with a query about any lock enter the client. The caller has to exit.
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

// absentTTL is the TTL that Redis returns for a key that does not exist.
const absentTTL = -2 * time.Millisecond

// entryOf converts the result of an inspection to an entry.
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

// LockQuery selects the locks that [Client.Locks] lists.
type LockQuery struct {
	// Prefix is the prefix of the Redis keys; the prefix of the client is not added. The default is the prefix of
	// the client. If that is empty, too, Locks looks at all keys of the database.
	Prefix string

	// Cursor is the cursor of the previous page; empty for the first page.
	Cursor string

	// Limit is the number of keys that Locks looks at for one page, whether they are locks or not. 0 means 1000.
	Limit int

	// Counts also lists keys of [KindPlainSemaphore]. Every number that is not a semaphore with
	// holders has this kind, even if the key is not a lock.
	Counts bool
}

// LockPage is a part of a list of locks.
type LockPage struct {
	// Locks are the locks that were found, in no order. A page that is not the last one may have none.
	Locks []LockEntry

	// Cursor is for the next page; empty if this is the last one.
	Cursor string

	// Looked is the approximate number of keys that Locks looked at for this page. Keys is the number of keys on all
	// masters, locks or not. Over all pages, Looked adds up to about Keys.
	Looked, Keys int64
}

// defaultLimit is the Limit of a [LockQuery] with 0.
const defaultLimit = 1000

// Locks lists the locks in Redis whose keys begin with a prefix, page by page, whichever client holds them: keys
// of every kind that have a holder, and fair locks that are free and have waiters. It leaves out keys that are
// not a lock by their layout, and keys that belong to a lock, such as queues and counters of tokens, whose
// contents are in the entry of the lock.
//
// A lock that exists from the first page to the last is listed at least once. A lock that appears, ends or changes its
// holder in between may be missing. A page has no key twice, but two pages may have the same key. In a Cluster, Locks
// looks at one master after the other. If a replica takes over for a master, or a master restarts, Locks scans that
// master again from the beginning. Locks detects this by INFO. If the Redis user may not use INFO, Locks detects only a
// new address, so behind a Sentinel or after a restart locks may be missing. A lock whose slot moves to another node in
// between may be missing.
//
// Locks does not block Redis: SCAN looks at 100 keys at a time, and one pipeline asks for all keys that match. A
// command costs Redis about a tenth of a millisecond; see [Client.Inspect] for locks with very many holders. The
// commands go through the pool of the Redis client, without its Limiter and not on the connections for locks,
// and hooks do not see them. Never more than one page is in memory.
//
// The error matches [ErrUnavailable], [ErrClosed], or [ErrInvalid] for a limit below 0 or a wrong cursor. If one
// master of a Cluster does not answer, the page is ErrUnavailable. After that, the same page can be asked for
// again.
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
		return LockPage{}, invalidf("LockQuery.Cursor %.40q: want the cursor of the page before, or an empty one", q.Cursor)
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

// evictAttempts is how often Evict looks again at a lock that has become a lock of another kind.
const evictAttempts = 3

// Evict takes a lock of any kind from the holders with the given fields: for instance the holders that an operator has
// seen by [Client.Inspect]. key is the Redis key. Other holders keep the lock, such as a reader that came later. When
// the last holder has lost the lock, the lock is free, and Evict notifies the waiters.
//
// In the returned entry, Holders are the holders that have lost the lock, and HolderCount is the number of holders
// immediately before. So HolderCount less len(Holders) holders still have the lock. Of a holder that is not among the
// first 50, only the field is known. If none of the fields holds the lock, Evict does nothing: the error is
// [ErrNotHeld], and the entry shows the lock as it is.
//
// Callers of one client that pass the lock on in memory have one field, one after the other ([Hold.Field]). The caller
// that has the lock when the command is executed loses it, even if the operator has seen an earlier caller. Earlier
// callers have released the lock, and are not notified.
//
// A holder of this client learns of the loss at once. A holder of another client learns of it at its next renewal or,
// if its lease is fixed, when it releases, re-enters or refreshes. Evict is for operators, because the work under the
// lock may still go on.
//
// The error matches [ErrUnavailable], also if the key changes its kind again and again, or [ErrClosed]. It matches
// [ErrInvalid] if the lock is held and no field is given, if a field cannot belong to a holder, or if the key is not a
// lock. It also matches ErrInvalid for a plain semaphore and a latch, which have no holders: use their methods to give
// permits back or to open the latch. After ErrInvalid nothing has changed, and the entry shows the lock as it is. After
// ErrUnavailable the lock may or may not have been taken away.
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
			c.checkEvicted(key)
			c.clearEvicted(kind, key, done.Lost, found.TTL)
			return entryOfLost(&found, done.Lost), nil
		}
	}
	if err != nil {
		return LockEntry{}, err
	}
	return entryOf(&found), unavailable(fmt.Errorf("key %q has become a lock of another kind, several times", key))
}

// checkHolders refuses strings that cannot be the fields of holders.
func checkHolders(fields []string) error {
	for _, field := range fields {
		if !redisstore.IsHolder(field) {
			return invalidf("%.60q is not a holder: want a field such as 71b96ce8-2746-4f0e-8c1a-0d6a1f9f5d11:57, or a permit id, as Client.Inspect lists it", field)
		}
	}
	return nil
}

func entryOfLost(f *redisstore.Found, lost []string) LockEntry {
	e := entryOf(f)
	e.Holders = slices.DeleteFunc(e.Holders, func(h Holder) bool { return !slices.Contains(lost, h.Field) })
	for _, field := range lost {
		if !slices.ContainsFunc(e.Holders, func(h Holder) bool { return h.Field == field }) {
			e.Holders = append(e.Holders, Holder{Field: field})
		}
	}
	return e
}

// checkEvicted makes this client check its holds of a lock that was taken away.
func (c *Client) checkEvicted(key string) {
	c.queues.Wake(key, "")
	c.holdings.Doubt(c.queues.Holders(key))
}

// clearEvicted makes the reaper remove what may be left of holders if their slot moves: the timeout keys of readers.
func (c *Client) clearEvicted(kind *redisstore.Kind, key string, lost []string, lease time.Duration) {
	if !c.store.Clustered() {
		return
	}
	for _, field := range lost {
		c.reaper.Relinquish(kind, []string{key}, field, lease)
	}
}

var errNotTheirs = fmt.Errorf("%w by one of the given fields", ErrNotHeld)

// notEvicted returns the error for a key without a holder that could lose it.
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
