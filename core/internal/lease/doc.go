// Package lease manages the leases that a client has in Redis. Each claim has a [Lease] with its deadline, its phase and
// the schedule of its renewals. One scheduler per client, the [Watchdog], looks after all of them. The package does not
// depend on holds, re-entries or waiters. Package holding opens the leases.
//
// The package reaches Redis only through a [Renewer]. It calls its user only through [Holder]: Lost, which ends holds,
// and Renewed, a report without an effect on the lease. It holds no mutex during these calls.
//
// Mutexes, from outer to inner: Watchdog, Lease.
package lease
