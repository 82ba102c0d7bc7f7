package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/acquire"
	"github.com/interlock-go/interlock/core/internal/counting"
	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/holding"
	"github.com/interlock-go/interlock/core/internal/identity"
	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/notice"
	"github.com/interlock-go/interlock/core/internal/notify"
	"github.com/interlock-go/interlock/core/internal/reaper"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/resend"
	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/redis/go-redis/v9"
)

// Client takes locks on one Redis. It is safe for concurrent use. Use one per process and Redis: callers of one
// client wait in one queue and hand locks to each other.
type Client struct {
	lifetime
	components

	cfg          config
	id           identity.ID
	availability availability
	unobserved   *unobserved
	carriers     carriers
	spare        sync.Pool             // *acquisition values
	shared       sync.Map              // values of adapters: key -> func() any; see forAdapters.Shared
	ownRedis     redis.UniversalClient // created by Open; closed with this client
	borrowed     bool                  // the store belongs to another client, which closes it
	closed       []func()              // functions of the observers, called at the end of Close

	oneScript func(keys []string) bool // reports whether one script may use all keys; tests replace it
}

// newClient returns a client without a store.
func newClient(cfg config) *Client {
	c := &Client{cfg: cfg, id: identity.NewID(), unobserved: newUnobserved()}
	c.lifetime.open()
	c.components.open(&c.cfg, &c.lifetime, func(err error) { c.unobserved.warnOfPolling(c.ID(), err) })
	c.availability = availability{observers: &c.cfg.observers, clientID: c.ID(), timeout: cfg.backendTimeout, unobserved: c.unobserved}
	return c
}

// startOn sets the store and starts the background work.
func (c *Client) startOn(store *redisstore.Store) {
	c.store, c.kinds, c.oneScript = store, store.Kinds(), store.SameSlot
	c.sender = &resend.Sender{Timeout: c.cfg.backendTimeout, Closing: c.closing, Ended: c.life.Done(), ReportSilence: store.RecordTimeout}
	c.watchdog = lease.NewWatchdog(lease.Config{
		Start: time.Now(), TTL: c.cfg.watchdog, Timeout: c.cfg.renewTimeout(), Landing: reaper.SettleTime,
		Renewer: store, Spawn: c.spawn, Over: failure.LeaseExpired, Gone: failure.NotMine,
	})
	c.connect()
	c.spawn(c.watchdog.Run)
	if c.cfg.lossNotice {
		notices := notice.New(notice.Config{Wire: noticing{&c.components}, Leases: c.watchdog.Leases, Channel: store.NoticeChannel, Spawn: c.spawn})
		c.spawn(notices.Run)
	}
}

// connect creates the components that acquire, hold and count.
func (c *Client) connect() {
	c.holdings = holding.New(holding.Config{
		ClientID: c.ID(), Redis: c.store, Sender: c.sender, Queues: c.queues, Reaper: c.reaper, Watchdog: c.watchdog,
		Watcher: &watcher{&c.cfg.observers, c.ID(), c.unobserved},
		KeyOf:   c.cfg.keyOf, NextField: c.id.NextField, FailFast: c.failFast, Spawn: c.spawn, Life: c.life,
		Acks: c.cfg.replication.Acks != wire.NoAcks,
	})
	c.carriers.holdings = c.holdings
	c.counter = counting.New(counting.Config{Redis: c.store, Sender: c.sender, Reaper: c.reaper, NextField: c.id.NextField})
	c.acquirer = acquire.New(acquire.Config{
		Redis: c.store, Sender: c.sender, Queues: c.queues, Wakeups: c.wakeups, Reaper: c.reaper, Holdings: c.holdings, Operations: c.counter,
		Service: c.service, NextField: c.id.NextField, FailFast: c.failFast,
		OneScript:   func(keys []string) bool { return c.oneScript(keys) },
		FindCarried: c.carriers.findCarried, FindLoss: c.carriers.findLoss, AfterAcquire: c.availability.record,
	})
}

// New returns a client on rdb. rdb is a [*redis.Client] for a single server, or for the master of a Sentinel
// (redis.NewFailoverClient), or a [*redis.ClusterClient]. New refuses other clients: a *redis.Ring would move a held
// key to another shard, and redis.NewFailoverClusterClient would treat the servers of a Sentinel as a Cluster. The
// caller closes rdb after the Client. New sends nothing, so Redis may be down: see [Client.Ready].
//
// The client opens its own connections for lock commands, with the options of rdb (Dialer, TLSConfig, credentials, DB,
// ClientName, OnConnect). These connections use RESP2. The pool, the Limiter and the dial hooks of rdb do not affect
// them. When a StreamingCredentialsProvider sends new credentials, the client replaces connections before the old
// credentials expire. With a CredentialsProvider, set ConnMaxLifetime below the lifetime of its credentials.
//
// To use a database other than 0 of a Cluster of Valkey 9, select it in redis.ClusterOptions.OnConnect: go-redis ignores
// redis.UniversalOptions.DB there.
//
// Hooks that rdb has when New is called see lock commands: the hooks of AddHook and, for a ClusterClient, the hooks
// that OnNewNode adds to its nodes. Hooks that are added later do not see them.
//
//   - Each command passes the hooks separately, also if several commands share a pipeline. The context has
//     the values of the caller's context, such as its span, but does not end with it, because a command that
//     was sent cannot be taken back.
//   - A hook sees the outcome of its command. If the caller leaves before the answer, the outcome is an error. A
//     command that a Cluster redirects appears twice: the first time with the redirection as its error, the
//     second time with its outcome.
//   - If a hook fails, the error matches [ErrUnavailable]. If a hook runs the command again, the hook gets the outcome
//     of the first run, because lock commands are never repeated by go-redis.
//   - If a hook replaces a command or changes its keys, the command is not sent, and the error matches
//     [ErrUnavailable]. Set a prefix by [WithPrefix] or [WithNameMapper].
//   - Commands contain the keys of locks. A command that replicas have to acknowledge appears as a pipeline
//     with its WAIT. Renewals appear as pipelines in a context without values.
//   - Of subscriptions, hooks see only the dial. They do not see the pings by which the client checks whether Redis
//     answers.
//
// New adds a hook to a ClusterClient. The hook does not change the commands of other callers.
func New(rdb redis.UniversalClient, opts ...Option) (*Client, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	c := newClient(cfg)
	store, err := redisstore.New(rdb, c.storeConfig(&c.cfg, c.ID()))
	if err != nil {
		return nil, invalidf("New: %w", err)
	}
	c.startOn(store)
	c.warnOfPrefix()
	c.closed = c.cfg.observers.observeClient(c)
	return c, nil
}

// ID returns the client id: a UUID, which is the first part of the holder fields in Redis. Processes that were restored
// from one snapshot of a running machine have the same id.
func (c *Client) ID() string { return string(c.id) }

// Address returns the address and the database of the client's Redis. For a Cluster it returns the addresses that the
// ClusterClient was given. The result contains neither a user name nor a password.
func (c *Client) Address() string { return c.store.Address() }

// Prefix returns the prefix of [WithPrefix]. It is empty with a [WithNameMapper].
func (c *Client) Prefix() string { return c.cfg.prefix }

// Ready asks Redis whether it answers, within the backend timeout. The error matches [ErrUnavailable] or [ErrClosed].
// Use it for the readiness probe of a service that can do nothing without Redis: when Redis is down, all instances fail
// the probe at once. Do not use it for liveness probes. Ready is cheap. Until the client has acquired a lock, Ready
// also reports a server that is a replica. It does not detect missing rights, channels on which other clients do not
// listen, eviction, or an endpoint that cannot serve several slots: see [Client.Preflight].
func (c *Client) Ready(ctx context.Context) error {
	if err := c.callers.enter(); err != nil {
		return err
	}
	defer c.callers.exit()
	limit := time.Now().Add(c.cfg.backendTimeout)
	if err := c.store.Detect(ctx, limit); err != nil {
		return unavailable(err)
	}
	ctx, cancel := context.WithDeadline(ctx, limit)
	defer cancel()
	return unavailable(c.store.Ping(ctx, "ready"))
}

// Holds lists the holds of this client that have not ended.
func (c *Client) Holds() []HoldInfo {
	var list []HoldInfo
	for _, h := range c.holdings.List() {
		list = append(list, infoOf(h))
	}
	return list
}

// Stats is a cheap snapshot of a client, for gauges.
type Stats struct {
	// Holds is the number of held locks.
	Holds int
	// Waiters is the number of callers in an Acquire that may wait, including callers that get the lock at once.
	Waiters int
	// OldestWait is how long the oldest of these callers has waited.
	OldestWait time.Duration
	// OldestHold is the age of the oldest hold.
	OldestHold time.Duration
}

// Stats returns a snapshot of the client. It sends nothing to Redis, but looks at every hold.
func (c *Client) Stats() Stats {
	s := Stats{Holds: c.watchdog.Count(), Waiters: c.queues.Waiting()}
	if oldest := c.queues.Oldest(); !oldest.IsZero() {
		s.OldestWait = time.Since(oldest)
	}
	if oldest := c.holdings.Oldest(); !oldest.IsZero() {
		s.OldestHold = time.Since(oldest)
	}
	return s
}

// Close closes the client. New and waiting acquisitions fail with [ErrClosed] at once. An acquisition whose command was
// already sent ends with the answer, and may still get the lock. Close waits until the holds have ended or ctx is done.
// When ctx is done, the contexts of the remaining holds end with the cause ErrClosed and their renewal stops. Their
// keys are left to expire, because a lock is never freed while its handler may still run. Close does not close the
// Redis client given to [New].
//
// Close waits for commands that were already sent, such as a release, even if ctx is done. If Redis is silent, that
// takes a few backend timeouts. If Redis answers slowly, each of these commands may take up to eight backend timeouts.
// After that Close cuts them off.
//
// Shut down in this order: the server, the Client, the Redis client. The Shutdown of a server waits for its handlers.
// To make handlers that wait for a lock return, call Close at the same time as Shutdown. If holds remained, Close
// returns ErrClosed joined with the cause of ctx. A second call returns ErrClosed alone.
func (c *Client) Close(ctx context.Context) error {
	if !c.beginClose() {
		return ErrClosed
	}

	var err error
	select {
	case <-c.watchdog.Drained():
	case <-ctx.Done():
		err = c.leaveHolds(ctx)
		c.holdings.AwaitOperations(c.sender.CallLimit(time.Now()))
	}
	c.drainReaper(ctx)
	c.endWork()
	notify.Each(c.cfg.observers.panics, c.closed, func(closed func()) { closed() })
	if !c.borrowed {
		err = errors.Join(err, c.store.Close())
	}
	if c.ownRedis != nil {
		err = errors.Join(err, c.ownRedis.Close())
	}
	return err
}

// drainReaper makes the reaper ask Redis once about each abandoned field, if Redis answers. Fields that remain expire
// with their leases.
func (c *components) drainReaper(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.sender.Timeout)
	defer cancel()
	c.reaper.Drain(ctx)
}

// leaveHolds ends the remaining holds. Its error contains their number and the cause of ctx.
func (c *components) leaveHolds(ctx context.Context) error {
	left := c.holdings.LeaveAll()
	if left == 0 {
		return nil
	}
	held := "1 lock held, which is left to its lease"
	if left > 1 {
		held = fmt.Sprintf("%d locks held, which are left to their leases", left)
	}
	return fmt.Errorf("%w with %s: %w", ErrClosed, held, failure.Inside(context.Cause(ctx)))
}

// Open calls [New] with a Redis client for a URL in the format of redis.ParseURL:
// redis://user:password@host:6379/0 or rediss://… . [Client.Close] closes that Redis client. The error never
// contains the user or the password.
func Open(url string, opts ...Option) (*Client, error) {
	parsed, err := redis.ParseURL(url)
	if err != nil {
		return nil, invalidf("Open: %w; want redis://user:password@host:6379/0", withoutCredentials(url, err))
	}
	rdb := redis.NewClient(parsed)
	c, err := New(rdb, opts...)
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	c.ownRedis = rdb
	return c, nil
}

// withoutCredentials returns the error of a URL without its user and password. The parsers of net/url and go-redis quote
// the part that they do not understand. If a password contains a raw % or /, that part is the password, so
// withoutCredentials parses the URL again without the credentials.
func withoutCredentials(url string, err error) error {
	at := strings.LastIndex(url, "@")
	if at < 0 {
		return err
	}
	scheme, _, found := strings.Cut(url, "://")
	if !found {
		return errNoScheme
	}
	if _, err := redis.ParseURL(scheme + "://" + url[at+1:]); err != nil {
		return err
	}
	return errCredentials
}

var (
	errNoScheme    = errors.New("no :// after the scheme")
	errCredentials = errors.New("user or password has a character that must be percent-encoded, such as %25 for % and %2F for /")
)
