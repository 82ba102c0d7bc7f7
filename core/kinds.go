package core

import (
	"slices"
)

// Kind names a kind of lock, as it appears in rules, spans and metrics.
type Kind string

// The kinds of lock.
const (
	KindReentrant Kind = "reentrant" // Redisson's RLock: [Client.Lock] and [Client.MultiLock]
	KindFenced    Kind = "fenced"    // RFencedLock: [Client.FencedLock]
	KindSpin      Kind = "spin"      // RedissonSpinLock: [Client.SpinLock]
	KindRead      Kind = "read"      // the read lock of RReadWriteLock: [Client.ReadLock]
	KindWrite     Kind = "write"     // its write lock: [Client.WriteLock]
	KindFair      Kind = "fair"      // RedissonFairLock: [Client.FairLock]
	KindRedlock   Kind = "redlock"   // RedissonRedLock: [Redlock]

	KindSemaphore      Kind = "semaphore"       // RPermitExpirableSemaphore: [Client.Semaphore]
	KindPlainSemaphore Kind = "plain_semaphore" // RSemaphore: [Client.PlainSemaphore]
	KindLatch          Kind = "latch"           // RCountDownLatch: [Client.CountDownLatch]
)

// Lock names a reentrant lock: Redisson's RLock, with which it shares the layout
// in Redis. Whether the name is usable is checked by Acquire.
func (c *Client) Lock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Reentrant, name: name}
}

// FencedLock names a lock whose holds carry a fencing token: Redisson's RFencedLock, with
// which it shares the layout in Redis and the counter of tokens. [Hold.Token] is a number
// that is larger for every later holder, so that a store which remembers the largest one
// that it has seen can refuse the late write of a holder that was paused beyond its lease.
// A re-entry has the token of the hold that it re-enters. Else it is as [Client.Lock]; the
// two must not share a name, which within one client is [ErrInvalid] while the name is in
// use.
//
// The counter is a key of its own, "redisson_lock_token:{name}", without a TTL. A token is at
// least the time of the server in microseconds, so that tokens go on to rise when the counter
// was deleted or lost; Redisson's, which only count, go on from there.
func (c *Client) FencedLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Fenced, name: name}
}

// SpinLock names a lock without messages: Redisson's RedissonSpinLock, with which it shares
// the layout in Redis. Who waits in another process attempts again after 1 ms, and then less
// and less often, up to every 50 ms, jittered; the callers of one client queue and pass the
// lock on as those of [Client.Lock]. It is for very many locks with little contention, where
// subscriptions and messages would be a burden. It must not share a name with another kind,
// whose waiters it would not wake.
func (c *Client) SpinLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Spin, name: name}
}

// MultiLock names several locks that are taken together or not at all. Names may
// come in any order and repeat; at least one is needed. Several callers that name
// the same locks in different orders do not deadlock. Where all names share a slot,
// which is always so outside a Cluster, they are taken by one script. An endpoint in front of
// several servers that refuses the script gets the keys one by one, as a Cluster does.
//
// Who waits for several locks holds none of them meanwhile, and stands in nobody's way
// at those that are free. Among the callers of one client it keeps its place by its age,
// but lets others pass at one lock while another one is taken. When others were first 16
// times, or for a second, it takes the locks one after the other and holds what it has
// while it waits for the next: for a quarter of the time that it has waited so far, 1 s
// at most, and up to four times as long while the next one passes from holder to holder.
// Then it gives all back and waits with empty hands again.
//
// A lease or a watchdog counts from the moment when the last lock is acquired. There is no
// fencing token: [WithToken] is [ErrInvalid] for several names.
func (c *Client) MultiLock(names ...string) Lock {
	sorted := append([]string{}, names...) // not nil: a MultiLock, if an empty one
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	if len(sorted) == 1 {
		return c.Lock(sorted[0])
	}
	return Lock{client: c, kind: c.kinds.Reentrant, names: sorted}
}

// ReadLock names the lock of the readers of name, which is shared with [Client.WriteLock]: any
// number of readers hold it at a time, or one writer. It is Redisson's RReadWriteLock.readLock,
// with which it shares the layout in Redis. Every reader has a lease of its own, with a key of
// its own beside the lock; a reader that has died keeps nobody out when its lease is over,
// whatever the others do. One of Redisson's without those keys may live, since some versions do not
// renew them all: it keeps writers out as long as the lock lasts, up to half a minute after others.
//
// Readers and writers of one client queue together, first come first served; readers that are
// next to each other get in together. Writers do not starve, in whatever process: when one
// waits for readers, no more of them are let in, also by a [WaitTime] of 0, until it has had its
// turn, or 0.9 s after it gave up. After a writer the readers that wait have theirs. Redisson's
// readers know nothing of that: they pass a writer that waits.
//
// A reader cannot become a writer: who holds the lock as a reader, by its context, and wants
// to write gets [ErrInvalid] at once, since another reader may want the same. A writer can read:
// with the context of the write lock the read lock is acquired in one round trip, by whoever
// waits. It is another hold, which goes on when the write lock is released, as a reader's. Its
// context ends with the one that it was acquired with; so one that is to go on is moved by
// [Hold.Handover]:
//
//	writing, w, err := locks.WriteLock("map").Acquire(ctx)
//	…
//	_, r, err := locks.ReadLock("map").Acquire(writing)
//	…
//	reading, r := r.Handover()
//	err = w.Release(ctx) // waiting readers get in, writers do not
//
// Each of the two has its own lease, and neither makes that of the other longer or shorter. When
// the lease of the writer is over, or it has left ([Hold.Leave]), the reader inside goes on as one
// whose writer was released. Nobody notifies others of that moment: waiting readers of this
// library find out by themselves, those of Redisson when the reader ends. Who acquires the read
// lock with the context of a writer that was taken away in Redis gets [ErrLost].
//
// A plain lock of the name is in the way of readers and writers. It is not in the way of
// Redisson's, which does not see it: one name is for one kind of lock. [WithToken] is not for
// readers. [Lock.State] tells the readers and the writer, whose field ends in ":write";
// [Lock.ForceRelease] of the read lock frees it from readers only, and that of the write lock from
// a writer, with the readers inside of it.
func (c *Client) ReadLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Read, name: name}
}

// WriteLock names the lock of the writers of name: see [Client.ReadLock]. It is Redisson's
// RReadWriteLock.writeLock. A writer is alone. In a run the lock is handed off from writer
// to writer of the client. An end of its lease that is put off, by whatever hold of it,
// is never brought forward again by another.
func (c *Client) WriteLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Write, name: name}
}

// FairLock names a lock that goes to who has waited longest, in whatever process and language:
// Redisson's RedissonFairLock, with which it shares the layout in Redis. Each waiter stands in a
// queue in Redis and gets messages for it alone; so callers of one client do not pass the lock on,
// and a lock that is wanted costs some round trips more than [Client.Lock]. One attempt
// ([WaitTime] 0) takes no place in the queue, and fails while others are in it.
//
// A waiter that goes away leaves the queue within milliseconds. One whose process has died is
// passed over after 0.75 s of a free lock, one that hangs after 1.1 s: by who waits behind it, or
// by callers with one attempt, the third of them at the latest, if they come within five minutes
// of each other. One of Redisson's that still seems to listen is passed over after half a minute,
// a minute where somebody looks after it less often than every 0.6 s. A waiter that was stopped
// for so long has lost its place and goes to the end.
//
// To be known as alive, who waits looks every 0.5 s; one who has 300 others before it looks every
// 1.25 s, and is passed over that much later if it has died. One whose ACL has none of the lock's
// channels keeps its place and has its turn (if a round trip takes it less than 0.2 s), but finds
// out late: the lock is free for up to 0.5 s first. So is one that is released by such a client.
//
// The queue lists each waiter with an allowance of 300 s, as Redisson does: its fairLockWaitTimeout
// must not be more. It must not share a name with another kind. Redis 6.0.6 is needed.
func (c *Client) FairLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Fair, name: name}
}

// Redlock names a lock on several independent Redis servers, each reached by a client of its
// own: it is held while a majority of them has granted it, n/2+1 of n, and goes on when the
// others fail. One client given twice, and none, are [ErrInvalid] in Acquire; two clients of
// one Redis are not noticed, and refuse each other. On each server it is the lock that
// [Client.Lock] names there; so a RedissonRedLock over the same servers, in whatever order,
// excludes it, and is excluded.
//
// All servers are asked at the same time, each for at most two of its backend timeouts and a
// quarter of the lease; one that is known not to answer costs nothing. What a majority still
// grants after that, less the margin for the drift of clocks (1 % of the lease and 2 ms), is
// [Hold.Remaining]. An attempt that fails gives back what it has got, and leaves what was not
// answered to be cleared up. A waiter then waits at one of the servers that refused, in the
// queue of that client's callers and woken by messages, and asks the others when it has the
// lock there, or every second; after an attempt that has got a part only, it pauses before
// that, for a random time of up to 200 ms. Uncontended it costs one round trip to each server.
//
// Every client renews its own lease. The hold is lost when fewer than a majority last: a
// server that loses the lock is not asked again. So a rolling restart of servers without
// persistence ends every hold that was there before it. [Hold.Release] and [Hold.Leave] are nil when
// nothing is left on any server that had granted it, as long as the hold lasted; one that
// does not answer is [ErrUnavailable]. [Hold.Refresh] needs a majority. A re-entry needs one,
// too: of the servers that the context holds it on. [ErrUnavailable] from Acquire says that
// no majority of servers can answer, [ErrNotAcquired] that one can, but others have the lock.
// When one of the clients is closed, Acquire is [ErrClosed], and a hold loses its part there.
// Observers of the first client are notified; that a server is unavailable, those of its own.
//
// It has no fencing token ([WithToken] is [ErrInvalid]), and is no safer than its clocks: as
// Martin Kleppmann has shown, a holder that pauses, a clock that steps, or a server that
// restarts without its data lets two hold it at once. Where that matters use a
// [Client.FencedLock] on one server with replicas, which is simpler and faster, and a store
// that refuses smaller tokens.
func Redlock(name string, clients ...*Client) Lock {
	return Lock{name: name, clients: append([]*Client{}, clients...)}
}
