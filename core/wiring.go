package core

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core/internal/breaker"
	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/reaper"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wakeup"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// rooms are the parts of a client. Each is a package that does not know of the others, nor of
// this one; what they call here is in this file and in holder.go:
//
//	wakeup  -> woken: the queue of the key looks, and a holder of this client is asked for
//	lease   -> Lost, Renewed: the holds of the lease learn of it
//	reaper  -> a lock was freed: the queue of the key wakes
//	redisstore -> a node falls silent, or answers: the circuit breaker
//
// Mutexes are taken from outer to inner: an ownership's (of several in the order
// of [inOrder]), the watchdog's, a lease's. That of an ownership's operations, of a queue's shard and
// those of the other rooms stand by themselves. No room calls under one of its own.
type rooms struct {
	store    *redisstore.Store
	queues   *queue.Queues
	wakeups  *wakeup.Subscriber
	breaker  *breaker.Breaker
	reaper   *reaper.Reaper
	watchdog *lease.Watchdog
}

// newClient makes a client whose rooms lack the store.
func newClient(cfg config) *Client {
	c := &Client{cfg: cfg, identity: identity{id: newID()}, start: time.Now()}
	c.open()
	c.backend.client = c
	c.queues = queue.New(queue.Config{PerKey: cfg.maxWaitersPerKey, InAll: cfg.maxWaiters})
	c.breaker, c.reaper, c.wakeups = newBreaker(c), newReaper(c), newSubscriber(c)
	return c
}

// storeConfig returns the configuration of the store, which reports to the rooms.
func (c *Client) storeConfig() redisstore.Config {
	cfg := redisstore.Config{
		Config: wire.Config{
			Timeout: c.cfg.backendTimeout, Replication: c.cfg.replication,
			Reports: wire.Reports{Silent: c.breaker.Trip, Answers: c.answers},
		},
		RenewTimeout: c.renewTimeout(),
	}
	if c.cfg.namesConnections {
		cfg.Owner = c.id
	}
	if c.cfg.pubSub != PubSubAuto {
		cfg.Sharded = new(c.cfg.pubSub == PubSubSharded)
	}
	return cfg
}

// furnish gives the client its store, and starts what works in the background.
func (c *Client) furnish(store *redisstore.Store) {
	c.store, c.kinds, c.oneScript = store, store.Kinds(), store.SameSlot
	c.watchdog = lease.NewWatchdog(lease.Config{
		Start: c.start, TTL: c.cfg.watchdog, Timeout: c.renewTimeout(), Landing: reaper.SettleTime,
		Renewer: store, Spawn: c.spawn, Over: errLeaseOver, Gone: errNotMine,
	})
	c.spawn(c.watchdog.Run)
}

// failFast is nil unless the node of key is known to be silent.
func (c *Client) failFast(ctx context.Context, key string) error {
	if cause := c.breaker.Check(ctx, key); cause != nil {
		return fmt.Errorf("%w: failing fast until it answers again: %w", ErrUnavailable, cause)
	}
	return nil
}

// answers is notified that a node which was silent answers again.
func (c *Client) answers(node string) {
	c.breaker.Reset(node)
	c.reaper.Resume()
}

// newBreaker names nodes as the store does, which says that they are silent.
func newBreaker(c *Client) *breaker.Breaker {
	return breaker.New(func(ctx context.Context, key string) string { return c.store.NodeName(ctx, key) })
}

func newReaper(c *Client) *reaper.Reaper {
	return reaper.New(reaper.Config{
		Redis:   clearing{c},
		Silent:  func(ctx context.Context, key string) bool { return c.breaker.Check(ctx, key) != nil },
		Cleared: func(key string) { c.queues.Wake(key, "") },
		Spawn:   c.spawn,
	})
}

func newSubscriber(c *Client) *wakeup.Subscriber {
	return wakeup.New(wakeup.Config{Wire: subscribing{c}, Woken: c.woken, Spawn: c.spawn})
}

// woken is notified of what has happened to the subscription of a topic.
func (c *Client) woken(about wakeup.Topic, why wakeup.Reason) {
	key := about.Key
	if about.Lane == "" {
		c.queues.WakeLanes(key) // they have no messages of their own
	}
	switch {
	case why == wakeup.Interrupted, why == wakeup.Confirmed && about.Lane != "":
		c.queues.Look(key, about.Lane)
	case about.Lane != "":
		c.queues.Wake(key, about.Lane)
		if why == wakeup.Message {
			c.doubt(c.queues.Holders(key))
		}
	case why == wakeup.Message:
		c.hinted(c.queues.Message(key, time.Now()))
	case why == wakeup.Confirmed:
		c.hinted(c.queues.Confirmed(key, time.Now()))
	default:
		c.queues.Wake(key, "")
	}
}

// subscribing is the way of the subscriptions to Redis.
type subscribing struct{ client *Client }

// NodeOf names the master of key, if channels belong to masters.
func (w subscribing) NodeOf(ctx context.Context, key string) string {
	if !w.client.store.Sharded() {
		return ""
	}
	return w.client.store.NodeName(ctx, key)
}

// Connect opens a subscription connection.
func (w subscribing) Connect(ctx context.Context, key string) (wakeup.Connection, error) {
	return w.client.store.Subscriptions(ctx, key)
}
