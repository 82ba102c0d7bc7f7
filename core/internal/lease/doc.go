// Package lease keeps the leases that a client has in Redis. Each claim has a [Lease] with its deadline, its
// phase and the schedule of its renewals. One scheduler, the [Watchdog], looks after all of them. The package
// knows nothing of holds, re-entries or waiters. Package holding makes the leases.
//
// It reaches Redis only by a [Renewer]. It calls upward by [Holder]: Lost, which has consequences, and Renewed,
// a report that changes nothing in this package. Neither is called under a mutex.
//
// Mutexes, from outer to inner: Watchdog, Lease.
package lease
