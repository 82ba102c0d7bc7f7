// Package holding keeps what the callers of one client hold: from the grant of a lock to its end.
//
// There are two types. A [Holder] is one field in Redis: it has a key, a [lease.Lease], and the holds that share
// both. A [Hold] is what one caller has: an acquisition or a re-entry. It has one Holder, or several if the lock
// has several keys or servers. The life of a lock in this package:
//
//	a grant ─▶ Holder ── Begin ──▶ Hold ──┬── Reenter, Refresh, Move ──▶ the same Holder
//	                                      ├── Release of an inner hold: the count in Redis falls
//	                                      ├── Release of the last hold ──▶ passed on in memory, handed off, or freed
//	                                      ├── Leave ──▶ a marker stays in Redis
//	                                      └── the lease is lost ──▶ the context ends
//
// This package knows Redis by a few scripts ([Redis]), the queue of the key, to choose and to serve the next
// waiter, and the reaper, to which it leaves what has no answer. It does not know how a lock is acquired, nor the
// contexts and observers of callers: package core makes the former and is the [Watcher] of the latter. Package
// acquire opens Holders, as a hand-off does, and re-enters; package core begins and ends Holds.
//
// Mutexes are taken from outer to inner: of Holders (of several in the order of inOrder), of the watchdog, of a
// lease. The mutex of operations stands alone. A room below calls nothing of this package under its mutex.
package holding
