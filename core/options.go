package core

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/missingunit"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// Defaults of a [Client].
const (
	// DefaultWatchdog is the lease of a lock acquired without [LeaseTime]. It is
	// renewed every third of it. The same as Redisson's lockWatchdogTimeout.
	DefaultWatchdog = 30 * time.Second

	// DefaultBackendTimeout is how long Redis may say nothing at all before operations
	// are [ErrUnavailable].
	DefaultBackendTimeout = time.Second

	// DefaultMaxWaitersPerKey is how many callers may wait for one key in one client.
	DefaultMaxWaitersPerKey = 1_000

	// DefaultMaxWaiters is how many callers may wait in one client.
	DefaultMaxWaiters = 10_000

	// DefaultMaxKeyLength is the longest key in bytes, prefix included.
	DefaultMaxKeyLength = 1_024
)

// MaxDuration is the longest wait and lease accepted: longer ones are mistakes (a
// unit confused, an overflow) and an error.
const MaxDuration = 10 * 365 * 24 * time.Hour

// PubSub says how wake-up messages travel in a Redis Cluster. It must be the same
// for everybody who shares the locks, Java included (Redisson's
// shardedSubscriptionMode). It has no effect outside a Cluster.
type PubSub int

// The modes of [WithPubSub].
const (
	// PubSubAuto is the default: sharded where the server has it (Redis 7), as
	// Redisson since 3.22.
	PubSubAuto PubSub = iota
	// PubSubSharded is SPUBLISH and SSUBSCRIBE always.
	PubSubSharded
	// PubSubClassic is PUBLISH and SUBSCRIBE always.
	PubSubClassic
)

// Option configures a [Client].
type Option func(*config) error

type config struct {
	prefix           string
	mapper           func(name string) string // nil: the prefix goes in front
	watchdog         time.Duration
	backendTimeout   time.Duration
	maxWaitersPerKey int
	maxWaiters       int
	maxKeyLength     int
	pubSub           PubSub
	namesConnections bool
	replication      wire.Replication
	observers        observers
}

// renewTimeout is how long one renewal may take, so that several fit into a lease.
func (c *config) renewTimeout() time.Duration { return c.watchdog / 6 }

func newConfig(opts []Option) (config, error) {
	cfg := config{
		watchdog:         DefaultWatchdog,
		backendTimeout:   DefaultBackendTimeout,
		maxWaitersPerKey: DefaultMaxWaitersPerKey,
		maxWaiters:       DefaultMaxWaiters,
		maxKeyLength:     DefaultMaxKeyLength,
	}
	var errs []error
	for _, opt := range opts {
		if opt == nil {
			errs = append(errs, invalidf("nil Option"))
			continue
		}
		errs = append(errs, opt(&cfg))
	}
	errs = append(errs, cfg.checkPrefix(), cfg.checkMapper(), cfg.checkReplication())
	return cfg, errors.Join(errs...)
}

// minNameLength is the room that a prefix has to leave: names of a few words fit, and
// those of rules, which end in a hash of 34 bytes where they are too long.
const minNameLength = 64

func (c *config) checkPrefix() error {
	length, limit := len(c.prefix), c.maxKeyLength
	if length == 0 || limit < 1 || limit-length >= minNameLength {
		return nil
	}
	advice := fmt.Sprintf("write WithMaxKeyLength(%d) or more", length+minNameLength)
	if limit > minNameLength {
		advice = fmt.Sprintf("write a prefix of at most %d bytes, or WithMaxKeyLength(%d)", limit-minNameLength, length+minNameLength)
	}
	return invalidf("WithPrefix(%.40q): its %d bytes leave less than %d of the %d of a key (WithMaxKeyLength) for the names of locks: %s",
		c.prefix, length, minNameLength, limit, advice)
}

// WithPrefix puts prefix before every lock name as it is: the Redis key of Lock("order:42")
// is then prefix + "order:42". No separator is added: end the prefix with one, "shop:" and not
// "shop". It has to leave 64 bytes of [WithMaxKeyLength] for
// names, and what rules need for theirs. Where Java's names differ by more than a prefix:
// [WithNameMapper]. Default: none.
//
// Clients that share a Redis and should not meet need prefixes of which none begins
// with another: a client with the prefix "shop:" and the name "a:order:42" means the
// lock of a client with "shop:a:" and "order:42".
func WithPrefix(prefix string) Option {
	return func(c *config) error {
		c.prefix = prefix
		return nil
	}
}

// WithWatchdog sets the lease of locks acquired without [LeaseTime]; it is renewed
// every third of it. At least 100 ms. Use the same value as the Java fleet's
// lockWatchdogTimeout. Default: [DefaultWatchdog].
func WithWatchdog(lease time.Duration) Option {
	return func(c *config) error {
		c.watchdog = lease
		if lease < 100*time.Millisecond || lease > MaxDuration {
			return invalidf("WithWatchdog(%s): want 100ms to %s, such as 30s%s", lease, MaxDuration, missingunit.Hint(lease))
		}
		return nil
	}
}

// WithBackendTimeout sets how long Redis may say nothing at all before operations end
// with [ErrUnavailable], whatever the wait time; others then fail at once, until it
// answers again. Slow is not silent: while Redis answers anything, an operation that
// needs several round trips, for a connection, say, may take longer than this: up to its
// wait time, and eight times this where it has none. To tell the two apart, a client that
// has had no answer for some milliseconds pings on a connection of its own. 10 ms to 1 minute, and
// more than a round trip takes. Default: [DefaultBackendTimeout].
func WithBackendTimeout(d time.Duration) Option {
	return func(c *config) error {
		c.backendTimeout = d
		if d < 10*time.Millisecond || d > time.Minute {
			return invalidf("WithBackendTimeout(%s): want 10ms to 1m, such as 1s%s", d, missingunit.Hint(d))
		}
		return nil
	}
}

// WithMaxWaitersPerKey limits the callers of this client that wait for one key.
// Default: [DefaultMaxWaitersPerKey].
func WithMaxWaitersPerKey(n int) Option {
	return func(c *config) error {
		c.maxWaitersPerKey = n
		return atLeastOne("WithMaxWaitersPerKey", n)
	}
}

// WithMaxWaiters limits the callers of this client that wait for any key. Whoever may
// wait counts until it has the lock, also when nobody is in its way. Default:
// [DefaultMaxWaiters].
func WithMaxWaiters(n int) Option {
	return func(c *config) error {
		c.maxWaiters = n
		return atLeastOne("WithMaxWaiters", n)
	}
}

// WithMaxKeyLength limits the length of a key in bytes, prefix included. Default:
// [DefaultMaxKeyLength].
func WithMaxKeyLength(n int) Option {
	return func(c *config) error {
		c.maxKeyLength = n
		return atLeastOne("WithMaxKeyLength", n)
	}
}

// WithPubSub sets how wake-up messages travel in a Redis Cluster. Default:
// [PubSubAuto].
func WithPubSub(mode PubSub) Option {
	return func(c *config) error {
		c.pubSub = mode
		if mode < PubSubAuto || mode > PubSubClassic {
			return invalidf("WithPubSub(%d): want PubSubAuto, PubSubSharded or PubSubClassic", mode)
		}
		return nil
	}
}

// WithNamedConnections names the connections on which this client sends lock commands, by CLIENT SETNAME: the name
// is redis.Options.ClientName, or else "interlock", then a colon and the client's [Client.ID]. So the field of a
// holder leads to the address of its process: the command interlock who shows it, and so does CLIENT LIST in
// redis-cli. The user of Redis needs +client|setname. Where a server or a proxy refuses the name, the
// connection works without it. Default: no connection is named.
func WithNamedConnections() Option {
	return func(c *config) error {
		c.namesConnections = true
		return nil
	}
}

// WithObserver adds observers. The adapters over this client notify the observers of rules and reloads
// ([Observer.Rules]). May be given several times; the order is kept.
func WithObserver(list ...*Observer) Option {
	return func(c *config) error {
		for _, o := range list {
			if o == nil {
				return invalidf("WithObserver(nil): leave it out")
			}
			c.observers.add(o)
		}
		return nil
	}
}

func atLeastOne(name string, n int) error {
	if n < 1 {
		return invalidf("%s(%d): want 1 or more", name, n)
	}
	return nil
}

// WithNameMapper has mapper make the Redis key of every lock name, as Redisson's NameMapper
// does: use the same mapping on both sides. What belongs to a lock in Redis, such as its
// channel, is named after the key. A prefix, the usual mapping, is simpler with [WithPrefix];
// to give both is an error, because Redisson knows one mapping and nobody would see which of
// the two comes first: write the prefix into the mapper.
//
// The mapper must be pure: of one name it always makes the same key, without waiting and
// without state, and any number of goroutines call it. Two names of one key are one lock. It
// is called once for every Acquire of a name, and once for every other question by name
// ([Held], [Lock.State]), before anything is sent: what it costs every
// acquisition costs. One that puts text together costs the same as a prefix, an allocation.
// It is never called with an empty name, and never with a key. An empty key, or one over
// [WithMaxKeyLength], is [ErrInvalid]; so is, in a Redis Cluster, one whose braces put the
// lock and its channel into different slots. Names of 64 bytes have to fit, which New finds
// out by mapping one.
func WithNameMapper(mapper func(name string) string) Option {
	return func(c *config) error {
		c.mapper = mapper
		if mapper == nil {
			return invalidf("WithNameMapper(nil): want a function, or leave the option out")
		}
		return nil
	}
}

// mapped is what a name is called in Redis.
func (c *config) mapped(name string) string {
	switch {
	case c.mapper == nil:
		return c.prefix + name
	case name == "":
		return ""
	default:
		return c.mapper(name)
	}
}

// inOrder sorts keys of sorted names, and leaves out repetitions. A prefix keeps the order; a
// mapper need not, and everybody who takes several locks has to take them in the same one.
func (c *config) inOrder(keys []string) []string {
	if c.mapper == nil {
		return keys
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// fits reports whether a name of n bytes makes a key within the limit.
func (c *config) fits(n int) bool { return len(c.mapped(strings.Repeat("x", n))) <= c.maxKeyLength }

// longestName is the longest that fits.
func (c *config) longestName() int {
	if c.mapper == nil {
		return c.maxKeyLength - len(c.prefix)
	}
	return sort.Search(c.maxKeyLength, func(n int) bool { return !c.fits(n + 1) })
}

// checkMapper refuses a mapper beside a prefix, and one that every acquisition would run into.
func (c *config) checkMapper() error {
	switch {
	case c.mapper == nil:
		return nil
	case c.prefix != "":
		return invalidf("WithPrefix(%.40q) and WithNameMapper: want one of them; write the prefix into the mapper", c.prefix)
	case c.maxKeyLength >= minNameLength && !c.fits(minNameLength):
		return invalidf("WithNameMapper: it makes a key of %d bytes of a name of %d, the limit is %d: write WithMaxKeyLength(%[1]d) or more, or shorter keys",
			len(c.mapped(strings.Repeat("x", minNameLength))), minNameLength, c.maxKeyLength)
	}
	return nil
}

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
