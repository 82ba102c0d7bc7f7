// Package redisstore is the only code that knows how a lock looks in Redis: the scripts of each kind
// of lock, one embedded Lua file per operation, and typed calls of them. Layouts, channels and messages
// are Redisson's. Package core and the rooms below it call it; package wire carries the calls. It knows
// neither waiters nor deadlines.
//
// Every script is harmless when it is executed twice, because the callers of this package send a
// command without an answer again. Core keeps the promises that follow from the scripts; its package
// comment lists them.
//
// The files build on each other, from the bottom to the top:
//
//	errors, script, names            values
//	kind                             the description of a kind of lock
//	reentrant, fair, readwrite,      one file per kind: its keys, its channel, its scripts
//	permits, counts
//	kinds                            all kinds
//	store, slots, call               a Redis, the names that it accepts, and one typed call
//	operations, renew, clear         the operations on a lock
//	inspect, evict, listing          what keys are, whichever kind made them
//	subscriptions, preflight         messages; what a preflight asks the servers
package redisstore
