package core

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/missingunit"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// Acks says how many replicas of the master that has a lock have to acknowledge it, for
// [WithReplicaAcks]: Acks(n) is a number of them.
type Acks int

// The numbers that depend on how many replicas there are. The largest number that the client
// has seen in its life counts.
const (
	// AcksNone asks no replica. It is the default.
	AcksNone Acks = Acks(wire.NoAcks)
	// AcksMajority wants a majority of the servers that have the data, the master among them:
	// of 1 replica 1, of 2 replicas 1, of 3 or 4 replicas 2.
	AcksMajority Acks = Acks(wire.MajorityAcks)
	// AcksAll wants all replicas. Where the master has none, that is nobody.
	AcksAll Acks = Acks(wire.AllAcks)
)

// maxAcks is more replicas than any master has.
const maxAcks = 1000

// WithReplicaAcks has replicas acknowledge every acquisition, re-entry, refresh, renewal and
// [Hold.Leave], and every operation that changes the count of a semaphore or a latch, each within
// timeout, by WAIT. Default: [AcksNone].
//
// Without it a lock that the master has given is forgotten when the master dies before a
// replica has it, and somebody else can take it from the new master. With it, Acquire succeeds
// only if so many replicas have the lock; else it gives the lock back and fails with a
// [*ReplicationError], which matches [ErrUnavailable]. The deadline of a hold is raised only by
// a renewal that so many replicas have acknowledged; one that fewer did counts as failed
// (Err of [Renewal]) and is tried again, and the hold is lost at its deadline. A Refresh or
// re-entry that too few acknowledge is a ReplicationError, too, and the hold goes on as it
// was. An operation on a count that too few acknowledge is a ReplicationError, and goes on in the
// background until they have it. Releases and forced releases wait for no replica: after a failover
// such a lock may be there again, until its lease ends.
//
// What that guarantees: with [AcksAll] a hold survives the promotion of any replica that has
// acknowledged it and has kept its data. With fewer it survives only if one of those that
// acknowledged is promoted. Sentinel takes the replica that has received most, among those
// that it reaches and that have the best replica-priority; so with AcksMajority keep the
// priorities equal. WAIT narrows the window and does not close it: an acknowledgement is not
// a vote, Redis promotes without asking, a replica that restarts without its data and is
// promoted before it has synchronised anew knows nothing, and a master that is cut off and
// not dead can go on giving locks (set min-replicas-to-write there). Where two holders must
// not both write, use the token of a [Client.FencedLock].
//
// How many replicas there are the master says (INFO replication), once before the first
// acquisition and then once a second at most, behind a command that is sent anyway. With
// AcksAll and AcksMajority a replica that is disconnected still counts: otherwise the promise
// would become weaker just when that matters. So after a failover from a master with two
// replicas AcksAll fails until the old master is back as a replica; and when a replica is taken
// away for good, restart the clients, or use Acks(n). In a Cluster the number is that of the
// master of the slot, also over its failovers. A client that begins while a replica is missing
// cannot know of it; Acks(n) does not depend on that. An n of more than there are fails every
// acquisition, after timeout.
//
// What it costs: the same one round trip, and what the replicas need. A command has a connection, beside
// the caller's pool, for itself until it is acknowledged. There are at most half as many as
// redis.Options.PoolSize: set that for the acquisitions that are on their way at the same time. Within the client no lock is passed on, or handed off, to the next waiter: the lock is
// freed, and the waiter acquires it by a command of its own. Redis has to
// allow the user WAIT and INFO, in a Cluster also ASKING.
//
// timeout is 1 ms to a tenth of [WithWatchdog], so that several renewals fit into a lease. An
// acquisition with a shorter wait time ends with that.
func WithReplicaAcks(acks Acks, timeout time.Duration) Option {
	return func(c *config) error {
		c.replication = wire.Replication{Acks: wire.Acks(acks), Timeout: timeout}
		if acks < AcksAll || acks > maxAcks {
			return invalidf("WithReplicaAcks(%d, …): want AcksAll, AcksMajority, AcksNone or Acks(n) with n up to %d", acks, maxAcks)
		}
		return nil
	}
}

// checkReplication checks what depends on the order of options otherwise.
func (c *config) checkReplication() error {
	timeout, most := c.replication.Timeout, c.watchdog/10
	if c.replication.Acks == wire.NoAcks || timeout >= time.Millisecond && timeout <= most {
		return nil
	}
	return invalidf("WithReplicaAcks(…, %s): want a timeout of 1ms to %s, a tenth of WithWatchdog(%s)%s", timeout, most, c.watchdog, missingunit.Hint(timeout))
}
