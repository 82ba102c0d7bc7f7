package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core/internal/missingunit"
	"github.com/interlock-go/interlock/core/internal/redisstore"
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

// AcquireOption configures one acquisition. Build it with [WaitTime], [LeaseTime],
// [Label], [MaxWaiters], [BeforeWait] or [WithToken]; the zero value changes nothing. It is a value
// so that options cost no allocation.
type AcquireOption struct {
	field acquireField
	d     time.Duration
	n     int
	s     string
	f     func(ctx context.Context) error
}

type acquireField uint8

const (
	fieldNone acquireField = iota
	fieldWait
	fieldLease
	fieldLabel
	fieldMaxWaiters
	fieldBeforeWait
	fieldToken
)

// WaitTime is how long Acquire may take, network included; never longer than the
// context's deadline. 0 is one attempt in one round trip; another one is made, for up to a
// second, while nobody has the lock but an acquire of this client that got no answer, and
// is being cleared up. Without this option it waits until the context ends. Between 0 and
// 1 ms, negative, or over [MaxDuration]: [ErrInvalid].
func WaitTime(d time.Duration) AcquireOption { return AcquireOption{field: fieldWait, d: d} }

// LeaseTime gives the lock a fixed lease: it ends after d unless refreshed, and
// the hold's context with it. Without this option the watchdog renews the lease
// for as long as the process lives and the lock is held. In Redis it may last up to 100 ms
// longer, so that callers of the client can pass the lock on; the hold ends in time. Under 1 ms or over
// [MaxDuration]: [ErrInvalid].
func LeaseTime(d time.Duration) AcquireOption { return AcquireOption{field: fieldLease, d: d} }

// Label gives observers a low-cardinality name for the acquisition, such as the
// rule or the operation: "pay-order", never an id.
func Label(name string) AcquireOption { return AcquireOption{field: fieldLabel, s: name} }

// MaxWaiters refuses with [ErrTooManyWaiters] when n callers of this client already
// wait for the key. 0 leaves the client's limit alone.
func MaxWaiters(n int) AcquireOption { return AcquireOption{field: fieldMaxWaiters, n: n} }

// BeforeWait has prepare called when the acquisition has to wait: when its first attempt was
// refused, or when callers of this client are before it. It is for what costs too much while the
// lock may be free, such as reading a request. While prepare runs the caller is not in the queue,
// so that it delays no other caller; then it takes the place that its age gives it, and attempts
// again. ctx ends with the wait time, with the caller's context, and when the client is closed: let
// prepare return then. An error of prepare ends the acquisition with that error. prepare is called
// once at most, and not with [WaitTime] 0.
func BeforeWait(prepare func(ctx context.Context) error) AcquireOption {
	return AcquireOption{field: fieldBeforeWait, f: prepare}
}

// WithToken asks for a fencing token: see [Hold.Token]. Every lock of one name and one client
// that one holder has at a time can carry one; [Client.FencedLock] always does. It costs no
// round trip, but a second key in the script that takes the lock: the counter that FencedLock
// has too; where somebody has set that to 2^53 or more, nothing is acquired, with
// [ErrUnavailable]. No counter orders the holders of a [Client.MultiLock] of several names, of a
// [Redlock], and of what several hold at a time ([Client.ReadLock], [Client.Semaphore]):
// there it is [ErrInvalid].
//
// Callers of one client do not pass a lock with a token on in memory: a hand-off draws the next one, by a
// script.
//
// A re-entry has the token of the hold that it enters again, asked for or not. Where that has
// none, asking for one is [ErrInvalid], without a command: ask in the outer acquisition.
func WithToken() AcquireOption { return AcquireOption{field: fieldToken} }

// request is what one acquisition asks for.
type request struct {
	kind       *redisstore.Kind
	wait       time.Duration
	forever    bool // no wait time given
	lease      time.Duration
	watchdog   bool // no lease given
	label      string
	maxWaiters int
	beforeWait func(ctx context.Context) error // nil: there is nothing to do, or it was done
	token      bool                            // a fencing token is wanted
	demand     string                          // for its terms
	operation  string                          // what its fields are followed by where they are operations on a count
	under      *ownership                      // of the caller, with which the lock can be shared; nil for none
	member     bool                            // of a Redlock, which has servers beside this one, and notifies the observers
	asksAgain  bool                            // of a member: the Redlock may wait, and asks again
	admitted   bool                            // the limits of waiters have let it in before
}

// terms are those of its attempts.
func (r *request) terms() redisstore.Terms {
	t := redisstore.Terms{Lease: r.lease, Token: r.token, Demand: r.demand}
	if r.under != nil {
		t.Under = r.under.Field()
	}
	return t
}

func (c *Client) readRequest(r *request, kind *redisstore.Kind, opts []AcquireOption) error {
	*r = request{kind: kind, forever: true, watchdog: true, lease: c.cfg.watchdog}
	if kind.Holds == redisstore.Unheld {
		r.watchdog, r.lease = false, operationTime
	}
	for _, o := range opts {
		switch o.field {
		case fieldNone:
		case fieldWait:
			r.wait, r.forever = o.d, false
			if o.d != 0 && (o.d < time.Millisecond || o.d > MaxDuration) {
				return invalidf("WaitTime(%s): want 0, or 1ms to %s%s", o.d, MaxDuration, missingunit.Hint(o.d))
			}
		case fieldLease:
			r.lease, r.watchdog = o.d.Truncate(time.Millisecond), false
			if err := checkLeaseOf(kind, o.d); err != nil {
				return err
			}
		case fieldLabel:
			r.label = o.s
		case fieldMaxWaiters:
			r.maxWaiters = o.n
			if o.n < 0 {
				return invalidf("MaxWaiters(%d): want 0 or more", o.n)
			}
		case fieldBeforeWait:
			r.beforeWait = o.f
		case fieldToken:
			r.token = true
		}
	}
	return nil
}

func checkLeaseOf(kind *redisstore.Kind, d time.Duration) error {
	if kind.Holds == redisstore.Unheld {
		return invalidf("LeaseTime for a %s: nothing is held; want a Semaphore, whose permits have leases", kind.Noun())
	}
	return checkLease("LeaseTime", d)
}

func checkLease(what string, d time.Duration) error {
	if d < time.Millisecond || d > MaxDuration {
		return invalidf("%s(%s): want 1ms to %s, or no lease for the watchdog%s", what, d, MaxDuration, missingunit.Hint(d))
	}
	return nil
}
