package core

import (
	"cmp"
	"context"
	"errors"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

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
