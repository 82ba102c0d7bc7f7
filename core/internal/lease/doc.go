// Package lease keeps what a client holds in Redis: for each claim a [Lease] with its
// deadline, its phase and the schedule of its renewals, and for all of them one scheduler,
// the [Watchdog]. It knows nothing of holds, re-entries or waiters.
//
// Redis is reached by a [Renewer] only. Two calls run upward, by [Holder]: Lost, which has
// consequences, and Renewed, a report that changes nothing. Neither runs under a mutex.
//
// Mutexes, from outer to inner: Watchdog, Lease.
package lease
