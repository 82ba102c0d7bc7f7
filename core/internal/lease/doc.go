// Package lease manages the leases that a client has in Redis. A [Lease] has a claim, a deadline, a phase and a schedule of
// renewals. One scheduler per client, the [Watchdog], renews leases and checks their deadlines. The package does not
// depend on holds, re-entries or waiters. Package holding opens the leases.
//
// The package uses Redis only through a [Renewer]. It calls its user only through [Holder]: Lost ends holds, and Renewed
// reports a renewal without an effect on the lease. The package holds no mutex during these calls.
//
// A goroutine locks the mutex of the Watchdog before the mutex of a Lease.
package lease
