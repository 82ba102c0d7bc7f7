package core

import "slices"

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
	KindGroup     Kind = "group"     // RedissonFasterMultiLock: [Client.GroupLock]

	KindSemaphore      Kind = "semaphore"       // RPermitExpirableSemaphore: [Client.Semaphore]
	KindPlainSemaphore Kind = "plain_semaphore" // RSemaphore: [Client.PlainSemaphore]
	KindLatch          Kind = "latch"           // RCountDownLatch: [Client.CountDownLatch]
)

// Lock returns the reentrant lock with a name. It shares its layout in Redis with Redisson's RLock. Acquire checks the
// name.
func (c *Client) Lock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Reentrant, name: name}
}

// FencedLock returns a lock whose holds have a fencing token. It shares its layout in Redis and the counter of tokens
// with Redisson's RFencedLock. [Hold.Token] is larger for every later holder. A store that records the largest token
// that it has seen can refuse the late write of a holder that was paused beyond its lease. A re-entry has the token of
// the hold that it re-enters. Otherwise the lock is like [Client.Lock]. A FencedLock and a Lock must not share a name:
// within one client that is [ErrInvalid] while the name is in use.
//
// The counter is a separate key, "redisson_lock_token:{name}", without a TTL. A token is at least the time of the
// server in microseconds, so tokens continue to rise after the counter was deleted or lost. Redisson only increments
// the counter, so its tokens continue from there.
func (c *Client) FencedLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Fenced, name: name}
}

// SpinLock returns a lock without messages. It shares its layout in Redis with Redisson's RedissonSpinLock. While
// another process holds the lock, a waiter attempts again after 1 ms, and then less and less often, down to once every
// 50 ms, with jitter. Callers of one client wait in a queue and pass the lock on like callers of a [Client.Lock]. Use
// it for very many locks with little contention, where subscriptions and messages would be a burden. A SpinLock must
// not share a name with another kind, because its release does not wake the waiters of that kind.
func (c *Client) SpinLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Spin, name: name}
}

// MultiLock returns a lock over several names, which are acquired together or not at all. Names may come in any order
// and repeat; at least one is needed. Callers that name the same locks in different orders do not deadlock. If all
// names share a slot, which is always so outside a Cluster, one script takes them. Otherwise, or if an endpoint in
// front of several servers refuses that script, the client takes the keys one by one.
//
// While it waits, a MultiLock holds none of its keys and does not block callers of the free ones. Among the callers of
// one client, a MultiLock keeps the place in the queue that its age gives it. But while one of its keys is taken, later
// callers may acquire the other keys.
//
// After other callers were first 16 times, or for a second, the MultiLock takes the locks one after the other. While it
// waits for the next lock, it holds the locks that it has. It waits so for a quarter of the time that it has waited so
// far, at most 1 s. This limit starts again when the next lock gets another holder; in all, the wait is at most four
// times as long. Then the MultiLock gives all locks back and again waits without holding a key.
//
// The lease starts when the last lock is acquired. A MultiLock has no fencing token: with several names [WithToken] is
// [ErrInvalid].
func (c *Client) MultiLock(names ...string) Lock {
	sorted := append([]string{}, names...) // not nil, which marks a MultiLock even without names
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	if len(sorted) == 1 {
		return c.Lock(sorted[0])
	}
	return Lock{client: c, kind: c.kinds.Reentrant, names: sorted}
}

// GroupLock returns a lock over some values of a group, which are acquired together or not at all. Locks of one group
// exclude each other if they have a value in common. It shares its layout in Redis with Redisson's
// getMultiLock(group, values): all values are in one hash, whose key is the group, and one script takes them. In a
// Cluster a group is on one node. Use it to share such locks with Java. Otherwise use [Client.MultiLock], whose names
// need no group.
//
// Values may come in any order and repeat. At least one is needed. An empty value, and a value that is not UTF-8, is
// [ErrInvalid]. In Java the values have to be Strings; [WithGroupCodec] sets the codec of the Java programs. The group must
// not be the name of a lock of another kind: the two would not exclude each other.
//
// Redisson compares the end of a lease with the clock of each Java process, and this library compares it with the clock
// of Redis. So these clocks have to agree within the margin of the lease, which is 1 % and 2 ms: 302 ms for a lease of
// 30 s. If the clock of a Java process is ahead by more, it can take a value whose holder is cut off from Redis before the
// context of that holder ends.
//
// A GroupLock waits and is renewed like a MultiLock, and has no fencing token. A release of any value wakes the
// waiters for all values of the group. [Hold.Key] is "{group}#" and a hash of the value; if the key of the group
// contains a brace, it is that key, "@" and the hash. [Held] does not find the lock by a name. [Lock.State] and
// [Lock.ForceRelease] need a lock of one value. [Client.Locks], [Client.Inspect], [Client.Evict] and
// [Client.Preflight] do not know group locks.
func (c *Client) GroupLock(group string, values ...string) Lock {
	sorted := append([]string{}, values...) // not nil, which marks several values even without values
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	if len(sorted) == 1 {
		return Lock{client: c, kind: c.kinds.Group, group: group, name: sorted[0]}
	}
	return Lock{client: c, kind: c.kinds.Group, group: group, names: sorted}
}

// ReadLock returns the read side of a read/write lock. [Client.WriteLock] returns the write side. Either any number of
// readers or one writer holds the lock. It shares its layout in Redis with Redisson's RReadWriteLock.readLock. Every
// reader has a separate lease, in a key beside the lock. A reader that has died keeps no other holder out after its
// lease has expired. Some versions of Redisson do not renew all of these keys, so a Redisson reader may be alive
// although its keys are gone. Such a reader keeps writers out until the lock expires, up to half a minute after other
// readers have gone.
//
// Readers and writers of one client wait in one queue, first come first served. Readers that are next to each other in
// the queue get the lock together. Writers do not starve, in whatever process. While a writer waits for readers, no
// further reader gets the lock, even with a [WaitTime] of 0. This ends when the writer has had its turn, or 0.9 s after
// the writer gave up. After a writer it is the turn of the waiting readers. Redisson's readers do not follow this rule:
// they overtake a waiting writer.
//
// A reader cannot become a writer: if a context holds the lock as a reader, acquiring the write lock is [ErrInvalid] at
// once, because two readers that both want to write would wait for each other. A writer can read: with the context of
// the write lock, the read lock is acquired in one round trip, even if others wait. The read lock has a separate hold.
// When the write lock is released, this hold continues as the hold of a reader. Its context is derived from the context
// of the writer and ends with it. Therefore use [Hold.Handover] to keep the read lock after the release:
//
//	writing, w, err := locks.WriteLock("map").Acquire(ctx)
//	…
//	_, r, err := locks.ReadLock("map").Acquire(writing)
//	…
//	reading, r := r.Handover()
//	err = w.Release(ctx) // waiting readers get the lock, writers do not
//
// The two holds have separate leases, and neither changes the lease of the other. When the lease of the writer has
// expired, or the writer has left ([Hold.Leave]), the reader continues as if the writer had released. No message is
// sent at that moment. Waiting readers of this library notice the change by themselves; Redisson's readers notice it
// when the reader ends. If the write lock was deleted or forced away in Redis, acquiring the read lock with the
// writer's context is [ErrLost].
//
// A plain lock of the same name blocks the readers and writers of this library. Redisson's readers and writers do not
// see the plain lock, so use one name for one kind of lock. For a ReadLock, [WithToken] is [ErrInvalid]. [Lock.State]
// shows the readers and the writer, whose field ends in ":write". [Lock.ForceRelease] of the read lock takes the lock
// only from the readers. ForceRelease of the write lock takes it from the writer and from the readers that acquired it
// with the writer's context.
func (c *Client) ReadLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Read, name: name}
}

// WriteLock returns the write side of a read/write lock: see [Client.ReadLock]. It shares its layout in Redis with
// Redisson's RReadWriteLock.writeLock. It has one writer at a time. In a run the lock is handed off from one writer of
// the client to the next. Once a hold has extended the lease, no other hold of the same writer shortens it.
func (c *Client) WriteLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Write, name: name}
}

// FairLock returns a lock that goes to the waiter that has waited longest, in whatever process and language. It shares
// its layout in Redis with Redisson's RedissonFairLock. Each waiter has a place in a queue in Redis and gets separate
// messages. So callers of one client do not pass the lock on, and under contention a FairLock costs some round trips
// more than a [Client.Lock]. A single attempt ([WaitTime] 0) takes no place in the queue, and fails while the queue has
// waiters.
//
// A waiter that gives up leaves the queue within milliseconds. A waiter asks Redis every 0.5 s, which shows that it is
// alive; behind 300 others it asks every 1.25 s. While the lock is free, a waiter that has stopped asking is passed
// over. If its process has died, that takes 0.75 s. If its process is stopped and its connections are open, that takes
// 1.1 s. Behind 300 others it takes 0.75 s more. The next waiter in the queue passes it over, or a caller with a single
// attempt: the third such caller at the latest, if they come within five minutes of each other. A waiter of Redisson
// whose connection is open is passed over after half a minute, or after a minute if no client asks for the lock every
// 0.6 s. A waiter that was passed over and continues goes to the end of the queue.
//
// If the ACL of a waiter's Redis user allows none of the lock's channels, the waiter keeps its place and gets its turn,
// if its round trip takes less than 0.2 s. The turn may come up to 0.5 s late, while the lock is free. The same delay
// occurs when such a client releases the lock.
//
// The queue lists each waiter with an allowance of 300 s, as Redisson does: Redisson's fairLockWaitTimeout must not be
// more. The lock must not share a name with another kind. It needs Redis 6.0.6 or later.
func (c *Client) FairLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Fair, name: name}
}

// NonReentrantLock returns a [Client.Lock] that its holder cannot acquire again. An acquisition with the context of the
// holder is [ErrInvalid] at once, and nothing is sent. Callers with other contexts wait as usual. Use it where a second
// acquisition would be a mistake in the program. It shares its layout in Redis with Redisson's getNonReentrantLock, and
// excludes a Lock of the same name.
//
// Only the acquisition that comes second counts. An acquisition of a Lock with the context of a NonReentrantLock
// re-enters, as in Redisson. An acquisition of a NonReentrantLock with the context of a Lock is refused.
func (c *Client) NonReentrantLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Reentrant, name: name, once: true}
}

// NonReentrantFairLock returns a [Client.FairLock] that its holder cannot acquire again: see [Client.NonReentrantLock].
// It shares its layout in Redis with Redisson's getNonReentrantFairLock.
func (c *Client) NonReentrantFairLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Fair, name: name, once: true}
}

// Redlock returns a lock on several independent Redis servers, with a client for each. It is held while a majority of
// the servers (n/2+1 of n) has granted it, and continues when the others fail. Acquire returns [ErrInvalid] without a
// client, or if a client is given twice. Acquire does not detect two clients of one Redis, which exclude each other. On
// each server a Redlock is the lock of [Client.Lock]. So a Redlock and a RedissonRedLock over the same servers, in
// whatever order, exclude each other.
//
// Acquire asks all servers at the same time, and waits for each for at most two backend timeouts and at most a quarter
// of the lease. A server that is known not to answer costs no time. [Hold.Remaining] is the time for which a majority
// still grants the lock after that, less the margin for the drift of clocks (1 % of the lease and 2 ms). An attempt
// that fails gives its grants back; commands without an answer are cleared up in the background. A waiter then waits at
// one of the servers that refused, in the queue of that client, where messages wake the waiter. It asks the other
// servers when that server grants the lock, or every second. If an attempt got the lock on some servers only, the
// waiter first pauses for a random time of up to 200 ms. Without contention, Acquire costs one round trip to each
// server.
//
// Every client renews its lease. The hold is lost when fewer than a majority of the leases are left, because a server
// that loses the lock is not asked again. So a rolling restart of servers without persistence ends every hold that
// began before it. If the hold was not lost, [Hold.Release] and [Hold.Leave] return nil when nothing is left on any
// server that granted the lock. If one of these servers does not answer, the error is [ErrUnavailable]. [Hold.Refresh]
// needs a majority. A re-entry needs a majority of the servers on which the context holds the lock. [ErrUnavailable]
// from Acquire means that no majority of servers can answer. [ErrNotAcquired] means that a majority can, but other
// holders have the lock. When one of the clients is closed, Acquire returns [ErrClosed], and a hold loses its lease on
// that server. Acquire notifies the observers of the first client. An outage of a server is reported to the observers
// of its client.
//
// A Redlock has no fencing token: [WithToken] is [ErrInvalid]. It is only as safe as its clocks. As Martin Kleppmann
// has shown, two clients can hold a Redlock at once if a holder pauses, a clock steps, or a server restarts without its
// data. Where that matters, use a [Client.FencedLock] on one server with replicas, which is simpler and faster, and a
// store that refuses smaller tokens.
func Redlock(name string, clients ...*Client) Lock {
	return Lock{name: name, clients: append([]*Client{}, clients...)}
}
