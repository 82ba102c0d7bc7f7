// Package redisstore contains all code that depends on the layout of a lock in Redis: the scripts of each
// kind of lock, one embedded Lua file per operation, and typed calls of them. Layouts, channels and
// messages are compatible with Redisson. Package core and the packages below core call redisstore.
// Package wire sends the calls. Redisstore contains no logic about waiters or deadlines.
//
// Every script can safely run twice, because the callers of this package may send an unanswered command
// again. The package comment of core lists the promises that follow from the scripts.
//
// An ACL may lose a command while the locks are in use. If Redis refuses a command of a script, the script leaves the keys as
// they were, except that what has expired may be removed, and answers with the error. A script that only notifies, shortens a
// TTL or deletes what expires by itself does not fail because of that. For this purpose a script reads before it writes. If a
// write is refused, the script undoes the earlier ones, and only with commands that it has executed already. If the only
// command for that comes later, such as HDEL after HSET, the script first runs it on a name that does not exist.
//
// Each line of this list uses the lines above it:
//
//	errors, script, names, grouphash values
//	kind                             the description of a kind of lock
//	reentrant, fair, readwrite,      one file per kind: its keys, its channel, its scripts
//	permits, counts, group
//	kinds                            all kinds
//	store, slots, call               a Redis, the names that it accepts, and one typed call
//	operations, renew, clear         the operations on a lock
//	inspect, evict, listing          inspection of keys of any kind
//	subscriptions, preflight         messages; the questions of a preflight to the servers
//
// # A slot that moves
//
// While a slot of a Cluster moves, the keys of one lock may be on two nodes. A command over several declared keys then
// gets TRYAGAIN until they are together. A script that declares one key runs where that key is. For the other keys that
// it names, a command fails on the old node. On the new node it finds nothing, without an error. So the scripts that
// create or clear up something declare all keys, or ask by an EXISTS over two keys, and wait. The scripts of a holder
// declare the key of the lock only, because a release or a renewal must not wait for the slot. The other keys of a lock,
// and what half a lock does:
//
//	queue, deadlines     acquire and clear declare them. A release, a hand-off and a force do not find the head, so they
//	of a fair lock       notify no waiter; waiters poll. An inspection shows no waiters
//	times of its         as above. A note about a waiter of Redisson that was notified may stay: it names one wait
//	waiters              and does not count for a later one
//	timeout keys of      a renewal, a refresh, a re-entry, a hand-off to a marker, a force and a clear wait. A partial release
//	readers              does not: it leaves the count and the timeout keys to the release. Nor does a release: it removes
//	                     the holder, and reports that a timeout key, or too long a TTL of the lock, may be left. The reaper
//	                     then calls clear. A timeout key without its holder in the hash means nothing. A reader whose
//	                     timeout key is not found counts as alive
//	mark of a waiting    readers may overtake the writer, or wait for a mark that is out of date, for at most [LongestMark]
//	writer
//	fencing tokens       acquire and hand-off declare the counter, so a token is never drawn from half a lock
//	leases of permits    acquire, release, count and force declare the permits and the leases, so a count that they do not find has
//	                     expired. The scripts of one existing lease declare the leases only and do not use the other key. An
//	                     inspection shows a plain semaphore
//	operations of        every script that changes the count asks for both keys first, and waits. Only the force of a latch
//	a count              deletes the count alone
//
// A lock of several keys and a group have no other keys: the keys of a lock of several keys are separate locks, which
// acquire_all declares, and a group is one hash. A debounce marker is a holder.
package redisstore
