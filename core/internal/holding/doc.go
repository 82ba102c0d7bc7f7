// Package holding manages the locks that the callers of one client hold, from the grant of a lock to its end.
//
// There are two types. A [Holder] is one field in Redis: it has a key, a [lease.Lease], and the holds that share
// both. A [Hold] belongs to one caller: it is an acquisition or a re-entry. It has one Holder, or several if the lock
// has several keys or servers. The life of a lock in this package:
//
//	a grant ─▶ Holder ── Begin ──▶ Hold ──┬── Reenter, Refresh, Move ──▶ the same Holder
//	                                      ├── Release of an inner hold: the count in Redis falls
//	                                      ├── Release of the last hold ──▶ passed on in memory, handed off, or freed
//	                                      ├── Leave ──▶ a marker stays in Redis
//	                                      └── the lease is lost ──▶ the context ends
//
// This package runs a few scripts in Redis ([Redis]), asks the queue of the key for the next waiter, and leaves
// commands without an answer to the reaper. It does not depend on how a lock is acquired, or on the contexts and
// observers of callers: package core creates the contexts, and its [Watcher] notifies the observers. Package acquire
// opens Holders, as a hand-off does, and re-enters them. Package core begins and ends Holds.
//
// Mutexes are locked from outer to inner: of Holders (several of them in the order of inOrder), of the watchdog, of a
// lease. The mutex of operations is never held together with another one. The packages below call no function of this
// package while they hold a mutex.
package holding
