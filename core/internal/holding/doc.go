// Package holding manages the locks that the callers of one client hold, from the grant of a lock to its release or loss.
//
// There are two main types. A [Holder] is one field in Redis, with a key and a [lease.Lease]. One or more holds share it.
// A [Hold] is what one caller got by an acquisition or a re-entry. It has one Holder, or several if the lock has several
// keys or servers. This is the life of a lock in this package:
//
//	a grant ─▶ Holder ── Begin ──▶ Hold ──┬── Reenter, Refresh, Move ──▶ the same Holder
//	                                      ├── Release of an inner hold: the count in Redis falls
//	                                      ├── Release of the last hold ──▶ passed on in memory, handed off, or freed
//	                                      ├── Leave ──▶ a marker stays in Redis
//	                                      └── the lease is lost ──▶ the context ends
//
// This package runs a few scripts in Redis ([Redis]), asks the queue of the key for the next waiter, and leaves
// commands without an answer to the reaper. It does not depend on how a lock is acquired, or on the contexts and
// observers of callers. Package core creates the contexts, and its [Watcher] notifies the observers. Package acquire
// opens Holders for grants and re-enters Holders. Package core begins and ends Holds.
//
// A goroutine locks mutexes in this order: Holders (several of them in the order of sortForLocking), the watchdog, a
// lease. While it holds the mutex of operations, it holds no other mutex. The packages that this package calls do not
// call it back while they hold a mutex.
package holding
