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
	"github.com/interlock-go/interlock/core/internal/notify"
	"github.com/interlock-go/interlock/core/internal/reaper"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/resend"
	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/redis/go-redis/v9"
)

// Client takes locks on one Redis. It is safe for concurrent use. One per process
// and Redis is enough, and best: callers of one client queue among themselves and
// hand locks over without asking Redis who is next.
type Client struct {
	lifetime
	rooms

	cfg      config
	id       identity.Identity
	backend  backend
	carriers carriers
	spare    sync.Pool             // of *acquisition
	ownRedis redis.UniversalClient // of Open; closed with this client
	borrowed bool                  // the store is another client's, which closes it
	closed   []func()              // of the observers

	oneScript func(keys []string) bool // reports whether one script may use all keys: that of the store, except in tests
}

// newClient makes a client without a store.
func newClient(cfg config) *Client {
	c := &Client{cfg: cfg, id: identity.Identity{ID: identity.NewID()}}
	c.lifetime.open()
	c.rooms.open(&c.cfg, &c.lifetime)
	c.backend = backend{observers: &c.cfg.observers, clientID: c.id.ID, timeout: cfg.backendTimeout}
	return c
}

// startOn gives the client its store, and starts its background work.
func (c *Client) startOn(store *redisstore.Store) {
	c.store, c.kinds, c.oneScript = store, store.Kinds(), store.SameSlot
	c.sender = &resend.Sender{Timeout: c.cfg.backendTimeout, Closing: c.closing, GaveUp: store.GaveUp}
	c.watchdog = lease.NewWatchdog(lease.Config{
		Start: time.Now(), TTL: c.cfg.watchdog, Timeout: c.cfg.renewTimeout(), Landing: reaper.SettleTime,
		Renewer: store, Spawn: c.spawn, Over: failure.LeaseExpired, Gone: failure.NotMine,
	})
	c.connect()
	c.spawn(c.watchdog.Run)
}

// connect makes the parts that take, hold and count locks.
func (c *Client) connect() {
	c.holdings = holding.New(holding.Config{
		ClientID: c.id.ID, Redis: c.store, Sender: c.sender, Queues: c.queues, Graves: c.reaper, Watchdog: c.watchdog,
		Watcher: &watcher{&c.cfg.observers, c.id.ID},
		KeyOf:   c.cfg.mapped, NextField: c.id.NextField, FailFast: c.failFast, Spawn: c.spawn, Life: c.life,
		Acks: c.cfg.replication.Acks != wire.NoAcks,
	})
	c.carriers.holdings = c.holdings
	c.counter = counting.New(counting.Config{Redis: c.store, Sender: c.sender, Graves: c.reaper, NextField: c.id.NextField})
	c.acquirer = acquire.New(acquire.Config{
		Redis: c.store, Sender: c.sender, Queues: c.queues, Wakeups: c.wakeups, Graves: c.reaper, Holdings: c.holdings, Operations: c.counter,
		Service: c.service, NextField: c.id.NextField, FailFast: c.failFast,
		OneScript: func(keys []string) bool { return c.oneScript(keys) },
		Carried:   c.carriers.forWish, Lost: c.carriers.lost, Tried: c.backend.note,
	})
}

// New makes a client on rdb: a [*redis.Client] (single server, or by
// redis.NewFailoverClient a Sentinel's master) or a [*redis.ClusterClient]. Others
// are refused: a *redis.Ring moves a held key to another shard, and the client of
// redis.NewFailoverClusterClient takes the servers of Sentinels for a Cluster. rdb stays the
// caller's: close it after the Client. Nothing is sent yet: Redis may be down; see
// [Client.Ready].
//
// Hooks that rdb has by now (AddHook; of a ClusterClient its own and, by OnNewNode, those of
// its nodes) see the commands of locks; those that are added later do not. Each command
// runs through them by itself, also where several share a pipeline, in a context that has
// the values of the caller's, such as its span, but does not end with it: a command that was
// sent is not taken back. A hook sees the outcome that the caller has; when the caller leaves
// before the answer, that is an error. One that fails makes [ErrUnavailable]; one that runs
// the command again gets the first outcome, because go-redis never repeats lock commands. A
// command is not sent, and the error matches [ErrUnavailable], if a hook replaces it or changes its
// keys: set a prefix by [WithPrefix] or [WithNameMapper].
// Commands name keys, as all commands that hooks see. A command that replicas have to
// acknowledge is seen as a pipeline with its WAIT. Renewals are seen as pipelines, in the
// context of no caller; so is, without its caller's context, a command that a Cluster has
// redirected. Of subscriptions hooks see the dial only, and of questions whether Redis is
// there nothing. A connection for lock commands is made with rdb's options (Dialer, TLSConfig, credentials,
// DB, ClientName, OnConnect), beside its pool and its Limiter, and not through its dial hooks. It uses RESP2. When a
// StreamingCredentialsProvider sends new credentials, connections are replaced before the old ones expire; with
// a CredentialsProvider set ConnMaxLifetime below the life of its credentials. To a ClusterClient New adds a hook of its own, which lets
// all else pass.
func New(rdb redis.UniversalClient, opts ...Option) (*Client, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	c := newClient(cfg)
	store, err := redisstore.New(rdb, c.storeConfig(&c.cfg, c.id.ID))
	if err != nil {
		return nil, invalidf("New: %w", err)
	}
	c.startOn(store)
	c.closed = c.cfg.observers.observeClient(c)
	return c, nil
}

// ID is the client id: a UUID, the first half of the holder fields in Redis.
func (c *Client) ID() string { return c.id.ID }

// Address returns, for people, where the client's Redis is: the address and the database, or the
// addresses that the client of a Cluster was given. It has neither a user name nor a password.
func (c *Client) Address() string { return c.store.Address() }

// Prefix is what [WithPrefix] said; empty with a [WithNameMapper].
func (c *Client) Prefix() string { return c.cfg.prefix }

// Ready asks Redis whether it answers, within the backend timeout. The error matches
// [ErrUnavailable] or [ErrClosed]. It is for the readiness probe of a service that can do nothing
// without Redis: all instances fail it at once when Redis is down. It is not for liveness
// probes. Ready is cheap, and does not see missing rights, channels that others do not hear,
// eviction, or an endpoint that cannot serve several slots: [Client.Preflight] does.
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
	// Holds is how many locks are held.
	Holds int
	// Waiters is how many callers are in an Acquire that may wait, those included that
	// get the lock at once.
	Waiters int
	// OldestWait is how long the one who came first has been waiting.
	OldestWait time.Duration
	// OldestHold is how long the hold that has lasted longest has been held.
	OldestHold time.Duration
}

// Stats reads the counters of the client. No request is made. It looks at every hold.
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

// Close ends the client. New and waiting acquisitions get [ErrClosed] at once, one
// whose command is at Redis when that is answered, within the backend timeout.
// Holds are waited for until ctx ends; then their contexts are cancelled with the
// cause ErrClosed, renewal stops, and their keys are left to expire: a lock is
// never freed under a running handler. The Redis client given to [New] is not
// closed.
//
// With a Redis that does not answer, Close takes a few backend timeouts, even if ctx
// ends before: commands on their way are waited for.
//
// The order of a shutdown: the server, then this, then the Redis client. A Close beside the
// Shutdown of the server ends calls that wait for a lock, for which Shutdown would wait. Close
// returns ErrClosed joined with the cause of ctx if holds were left. A second call
// returns ErrClosed alone.
func (c *Client) Close(ctx context.Context) error {
	if !c.beginClose() {
		return ErrClosed
	}

	var err error
	select {
	case <-c.watchdog.Drained():
	case <-ctx.Done():
		err = c.leaveHolds(ctx)
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

// drainReaper gives abandoned fields the time of one question each. Redis that does not
// answer is not waited for: what is left then ends with its lease.
func (r *rooms) drainReaper(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.sender.Timeout)
	defer cancel()
	r.reaper.Drain(ctx)
}

// leaveHolds ends the contexts of the holds that are left.
func (r *rooms) leaveHolds(ctx context.Context) error {
	left := r.holdings.LeaveAll()
	if left == 0 {
		return nil
	}
	held := "1 lock held, which is left to its lease"
	if left > 1 {
		held = fmt.Sprintf("%d locks held, which are left to their leases", left)
	}
	return fmt.Errorf("%w with %s: %w", ErrClosed, held, failure.Inside(context.Cause(ctx)))
}

// Open is [New] with a client of its own, made from a URL as redis.ParseURL
// understands it: redis://user:password@host:6379/0 or rediss://… . Close closes
// it. The error never shows the user or the password.
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

// withoutCredentials says what is wrong with a URL. The parsers of net/url and
// go-redis quote the part that they do not understand, which with a raw % or / in a
// password is the password, so the URL is parsed again without it.
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
	errNoScheme    = errors.New("no :// behind the scheme")
	errCredentials = errors.New("user or password has a character that must be percent-encoded, such as %25 for % and %2F for /")
)
