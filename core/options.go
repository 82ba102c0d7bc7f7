package core

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/missingunit"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// Defaults of a [Client].
const (
	// DefaultWatchdog is the lease of a lock acquired without [LeaseTime]. The watchdog renews it
	// every third of that time. It is the default of Redisson's lockWatchdogTimeout.
	DefaultWatchdog = 30 * time.Second

	// DefaultBackendTimeout is how long Redis may be silent before operations fail with
	// [ErrUnavailable].
	DefaultBackendTimeout = time.Second

	// DefaultMaxWaitersPerKey is how many callers may wait for one key in one client.
	DefaultMaxWaitersPerKey = 1_000

	// DefaultMaxWaiters is how many callers may wait in one client.
	DefaultMaxWaiters = 10_000

	// DefaultMaxKeyLength is the longest key in bytes, prefix included.
	DefaultMaxKeyLength = 1_024
)

// MaxDuration is the longest wait time and the longest lease. A longer duration is an error, because it can only come
// from a wrong unit or an overflow.
const MaxDuration = 10 * 365 * 24 * time.Hour

// PubSub selects how wake-up messages are sent in a Redis Cluster. It must be the same in all programs that share the
// locks, including Java programs (Redisson's shardedSubscriptionMode). It has no effect outside a Cluster.
type PubSub int

// The modes of [WithPubSub].
const (
	// PubSubAuto is the default: sharded if the server supports sharded pub/sub (Redis 7), like
	// Redisson since 3.22.
	PubSubAuto PubSub = iota
	// PubSubSharded always uses SPUBLISH and SSUBSCRIBE.
	PubSubSharded
	// PubSubClassic always uses PUBLISH and SUBSCRIBE.
	PubSubClassic
)

// Option configures a [Client].
type Option func(*config) error

type config struct {
	prefix           string
	mapper           func(name string) string // nil: the key is prefix + name
	groupCodec       func(value string) []byte
	watchdog         time.Duration
	backendTimeout   time.Duration
	maxWaitersPerKey int
	maxWaiters       int
	maxKeyLength     int
	pubSub           PubSub
	namesConnections bool
	lossNotice       bool
	replication      wire.Replication
	observers        observers
}

// renewTimeout returns the time limit of one renewal. Several of them fit into a lease.
func (c *config) renewTimeout() time.Duration { return c.watchdog / 6 }

func newConfig(opts []Option) (config, error) {
	cfg := config{
		watchdog:         DefaultWatchdog,
		backendTimeout:   DefaultBackendTimeout,
		maxWaitersPerKey: DefaultMaxWaitersPerKey,
		maxWaiters:       DefaultMaxWaiters,
		maxKeyLength:     DefaultMaxKeyLength,
		groupCodec:       redisstore.KryoString,
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

// minNameLength is the length of a name for which a prefix has to leave room. It suffices for names of a few words, and
// for the names of rules: a name that is too long is shortened and ends in a hash of 34 bytes.
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

// WithPrefix puts prefix before every lock name, unchanged: the Redis key of Lock("order:42") is prefix + "order:42".
// No separator is added, so end the prefix with one: "shop:" and not "shop". New logs a warning for a prefix that ends in
// a letter or a digit. The prefix has to leave at least 64 bytes of [WithMaxKeyLength] for names, and more if the names of
// rules are longer. If the names in Java differ by more than a prefix, use [WithNameMapper]. Default: none.
//
// Clients that share a Redis but no locks need prefixes of which none begins with another. A client with the prefix
// "shop:" and the name "a:order:42" takes the lock of a client with "shop:a:" and "order:42".
func WithPrefix(prefix string) Option {
	return func(c *config) error {
		c.prefix = prefix
		return nil
	}
}

// WithWatchdog sets the lease of locks acquired without [LeaseTime]. The watchdog renews it every third of that
// time. It is at least 100 ms. Use the value of the lockWatchdogTimeout of the Java programs. Default:
// [DefaultWatchdog].
func WithWatchdog(lease time.Duration) Option {
	return func(c *config) error {
		c.watchdog = lease
		if lease < 100*time.Millisecond || lease > MaxDuration {
			return invalidf("WithWatchdog(%s): want 100ms to %s, such as 30s%s", lease, MaxDuration, missingunit.Hint(lease))
		}
		return nil
	}
}

// WithBackendTimeout sets how long Redis may be silent before operations end with [ErrUnavailable], whatever their wait
// time. Further operations then fail at once, until Redis answers again. While Redis answers anything at all, it counts
// as slow, not as silent. An operation may then take longer than the timeout, for instance to connect: up to its wait
// time, or eight backend timeouts without a wait time. To distinguish a slow Redis from a silent one, a client that
// waits for an answer opens another connection after 50 ms, or after eight round trips if that is longer, and pings
// Redis on it. The timeout is 10 ms to 1 minute and has to be longer than a round trip. Default:
// [DefaultBackendTimeout].
func WithBackendTimeout(d time.Duration) Option {
	return func(c *config) error {
		c.backendTimeout = d
		if d < 10*time.Millisecond || d > time.Minute {
			return invalidf("WithBackendTimeout(%s): want 10ms to 1m, such as 1s%s", d, missingunit.Hint(d))
		}
		return nil
	}
}

// WithMaxWaitersPerKey limits the number of callers of this client that wait for one key.
// Default: [DefaultMaxWaitersPerKey].
func WithMaxWaitersPerKey(n int) Option {
	return func(c *config) error {
		c.maxWaitersPerKey = n
		return atLeastOne("WithMaxWaitersPerKey", n)
	}
}

// WithMaxWaiters limits the number of callers of this client that wait for any key. A caller that may wait counts until
// it has the lock, even if the lock is free. Default: [DefaultMaxWaiters].
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

// WithPubSub sets how wake-up messages are sent in a Redis Cluster. Default: [PubSubAuto].
func WithPubSub(mode PubSub) Option {
	return func(c *config) error {
		c.pubSub = mode
		if mode < PubSubAuto || mode > PubSubClassic {
			return invalidf("WithPubSub(%d): want PubSubAuto, PubSubSharded or PubSubClassic", mode)
		}
		return nil
	}
}

// WithNamedConnections names the connections on which this client sends lock commands, by CLIENT SETNAME. The name is
// redis.Options.ClientName, or "interlock" if that is empty, then a colon and the client's [Client.ID]. So the field of
// a holder leads to the address of its process: CLIENT LIST in redis-cli shows it, and so does the command interlock
// who. The Redis user needs +client|setname. If a server or a proxy refuses the name, the connection works without it.
// Default: no connection is named.
func WithNamedConnections() Option {
	return func(c *config) error {
		c.namesConnections = true
		return nil
	}
}

// WithLossNotice makes the client listen for changes of the keys that it holds. A holder then learns within milliseconds
// that its lock was deleted, forced away or evicted, also if the lease is fixed. That begins when the hold has lasted for one
// to two seconds. Before that, and without the option, the holder learns of it at the next renewal, or when it releases the
// lock.
//
// The option needs keyspace notifications: set notify-keyspace-events to "Kghzxe" on every server. The Redis user needs
// the channels of notifications, such as &__keyspace@0__:shop:*, which [Client.Preflight] lists. Without the setting the
// option has no effect, and Preflight reports that. With it, Redis publishes a message for every write to a hash or a
// sorted set, also of other programs.
//
// The client subscribes on a further connection to each master. A notification is only a hint: the client asks Redis
// before it ends a hold. It also asks when it subscribes, and when another holder releases the same read lock or
// semaphore, or any value of the same group: at most about 50 times a second for each long hold, and one command asks
// about several holds. Notifications may be missed, and FLUSHALL and FLUSHDB send none, so losses are also found as
// without the option. Default: off.
func WithLossNotice() Option {
	return func(c *config) error {
		c.lossNotice = true
		return nil
	}
}

// WithObserver adds observers. The adapters over this client notify the observers of rules and reloads
// ([Observer.Rules]). The option may be given several times; the order is kept.
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

// WithNameMapper sets the function that maps every lock name to its Redis key, like Redisson's NameMapper: use the same
// mapping on both sides. The other keys of a lock in Redis, and its channel, are named after the key. For a prefix, the
// usual mapping, [WithPrefix] is simpler. The two options together are an error, because Redisson has only one mapping,
// and it would not be obvious which of the two applies first: write the prefix into the mapper.
//
// The mapper must be pure: it always returns the same key for a name, does not block, has no state, and is safe for
// concurrent use. Two names with one key are one lock. Every Acquire and every other call with a name ([Held],
// [Lock.State]) calls the mapper once before anything is sent, so every acquisition pays for it. A mapper that joins
// strings costs as much as a prefix: one allocation. The mapper is never called with an empty name, and never with a
// key. If it returns an empty key, or a key over [WithMaxKeyLength], the error is [ErrInvalid]. In a Redis Cluster the
// error is the same for a key whose braces put the lock and its channel into different slots. Names of 64 bytes have to
// fit: New checks that with one name.
func WithNameMapper(mapper func(name string) string) Option {
	return func(c *config) error {
		c.mapper = mapper
		if mapper == nil {
			return invalidf("WithNameMapper(nil): want a function, or leave the option out")
		}
		return nil
	}
}

// WithGroupCodec sets how the values of a [Client.GroupLock] are encoded before they are hashed. It has to be the codec
// of the Java programs that share these locks. encode must be pure and safe for concurrent use. Default: the encoding of
// Kryo5Codec, which is Redisson's default codec, for a String. For StringCodec write
// func(value string) []byte { return []byte(value) }.
func WithGroupCodec(encode func(value string) []byte) Option {
	return func(c *config) error {
		c.groupCodec = encode
		if encode == nil {
			return invalidf("WithGroupCodec(nil): want a function, or leave the option out")
		}
		return nil
	}
}

// keyOf returns the Redis key of a name. For an empty name with a mapper it returns an empty key.
func (c *config) keyOf(name string) string {
	switch {
	case c.mapper == nil:
		return c.prefix + name
	case name == "":
		return ""
	default:
		return c.mapper(name)
	}
}

// sortKeys returns the keys of sorted names in order and without repetitions. A prefix keeps the order; a mapper need
// not, so its keys are sorted again.
func (c *config) sortKeys(keys []string) []string {
	if c.mapper == nil {
		return keys
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// fits reports whether the key of a name of n bytes is within the limit.
func (c *config) fits(n int) bool { return len(c.keyOf(strings.Repeat("x", n))) <= c.maxKeyLength }

// longestName returns the length of the longest name whose key is within the limit.
func (c *config) longestName() int {
	if c.mapper == nil {
		return c.maxKeyLength - len(c.prefix)
	}
	return sort.Search(c.maxKeyLength, func(n int) bool { return !c.fits(n + 1) })
}

// checkMapper refuses a mapper beside a prefix, and a mapper with which every acquisition would fail.
func (c *config) checkMapper() error {
	switch {
	case c.mapper == nil:
		return nil
	case c.prefix != "":
		return invalidf("WithPrefix(%.40q) and WithNameMapper: want one of them; write the prefix into the mapper", c.prefix)
	case c.maxKeyLength >= minNameLength && !c.fits(minNameLength):
		return invalidf("WithNameMapper: it makes a key of %d bytes of a name of %d, the limit is %d: write WithMaxKeyLength(%[1]d) or more, or shorter keys",
			len(c.keyOf(strings.Repeat("x", minNameLength))), minNameLength, c.maxKeyLength)
	}
	return nil
}

// Acks is the number of replicas of the master that have to acknowledge a lock, for [WithReplicaAcks]. Acks(n) is a
// fixed number.
type Acks int

// These values depend on the number of replicas: the largest number that the client has seen.
const (
	// AcksNone requires no acknowledgement. It is the default.
	AcksNone Acks = Acks(wire.NoAcks)
	// AcksMajority requires a majority of the servers that have the data, including the master: 1
	// acknowledgement with 1 or 2 replicas, 2 with 3 or 4 replicas.
	AcksMajority Acks = Acks(wire.MajorityAcks)
	// AcksAll requires all replicas. If the master has none, no acknowledgement is needed.
	AcksAll Acks = Acks(wire.AllAcks)
)

// maxAcks is more replicas than any master has.
const maxAcks = 1000

// WithReplicaAcks makes replicas acknowledge, by WAIT and within timeout, every acquisition, re-entry, refresh,
// renewal and [Hold.Leave], and every operation that changes the count of a semaphore or a latch. Default:
// [AcksNone].
//
// Without this option, a lock is forgotten if the master dies before a replica has received the lock, and another
// client can take the lock from the new master. With this option, Acquire succeeds only if the required number of
// replicas have the lock. Otherwise Acquire gives the lock back and fails with a [*ReplicationError], which matches
// [ErrUnavailable]. A renewal with too few acknowledgements counts as failed (Err of [Renewal]): it does not extend the
// deadline of the hold, and is tried again until the hold is lost at its deadline. A Refresh or a re-entry with too few
// acknowledgements fails with a ReplicationError, too, and the hold continues unchanged. An operation on a count with
// too few acknowledgements fails with a ReplicationError and continues in the background until enough replicas have it.
// Releases and forced releases wait for no replica: after a failover a released lock may be held again, until its lease
// ends.
//
// The guarantee: with [AcksAll] a hold survives the promotion of any replica that has acknowledged it and has kept its
// data. With fewer acknowledgements it survives only if one of the replicas that acknowledged is promoted. Among the
// replicas that Sentinel reaches and that have the best replica-priority, it promotes the replica that has received
// most, so keep the priorities equal with AcksMajority. WAIT makes the window smaller but does not close it. An
// acknowledgement is not a vote: Redis promotes a replica without asking the others. A replica that restarts without
// its data, and is promoted before it has synchronized again, has no locks. A master that is cut off but not dead can
// continue to grant locks (set min-replicas-to-write on it). Where two holders must not both write, use the token of a
// [Client.FencedLock].
//
// The master reports how many replicas it has (INFO replication). The client asks once before the first acquisition,
// and then at most once a second, together with a command that it sends anyway. With AcksAll and AcksMajority a
// disconnected replica still counts, because otherwise the guarantee would become weaker just when it matters. So after
// a failover from a master with two replicas, AcksAll fails until the old master is back as a replica. When a replica
// is removed for good, restart the clients, or use Acks(n). In a Cluster the replicas of the slot's master count, also
// across failovers of that master. A client that starts while a replica is missing does not count that replica; Acks(n)
// does not depend on this. If n is larger than the number of replicas, every acquisition fails after timeout.
//
// The cost is the same single round trip, plus the time of the replicas. Each command has a separate connection, beside
// the caller's pool, until it is acknowledged. The client opens at most PoolSize/2 such connections
// (redis.Options.PoolSize), so choose a PoolSize that suffices for concurrent acquisitions. Within the client a lock is
// neither passed on nor handed off to the next waiter: it is freed, and the waiter acquires it by its own command.
// Redis has to allow the user WAIT and INFO, in a Cluster also ASKING.
//
// timeout is 1 ms to a tenth of [WithWatchdog], so that several renewals fit into a lease. An acquisition with a
// shorter wait time waits no longer than its wait time.
func WithReplicaAcks(acks Acks, timeout time.Duration) Option {
	return func(c *config) error {
		c.replication = wire.Replication{Acks: wire.Acks(acks), Timeout: timeout}
		if acks < AcksAll || acks > maxAcks {
			return invalidf("WithReplicaAcks(%d, …): want AcksAll, AcksMajority, AcksNone or Acks(n) with n up to %d", acks, maxAcks)
		}
		return nil
	}
}

// checkReplication checks the timeout of WithReplicaAcks against WithWatchdog, in whatever order the two were given.
func (c *config) checkReplication() error {
	timeout, most := c.replication.Timeout, c.watchdog/10
	if c.replication.Acks == wire.NoAcks || timeout >= time.Millisecond && timeout <= most {
		return nil
	}
	return invalidf("WithReplicaAcks(…, %s): want a timeout of 1ms to %s, a tenth of WithWatchdog(%s)%s", timeout, most, c.watchdog, missingunit.Hint(timeout))
}
