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
package redisstore
