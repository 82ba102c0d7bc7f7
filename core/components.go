package core

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core/internal/acquire"
	"github.com/interlock-go/interlock/core/internal/breaker"
	"github.com/interlock-go/interlock/core/internal/counting"
	"github.com/interlock-go/interlock/core/internal/holding"
	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/reaper"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/resend"
	"github.com/interlock-go/interlock/core/internal/wakeup"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// components contains the components of a client. Nearly each has its own internal package. The upper ones call the
// lower ones:
//
//	acquire, counting    from the wish of a caller to the grant; operations on counts
//	holding              from the grant to the end of a hold
//	queue, reaper        the waiters of this process; commands without an answer
//	lease, wakeup        renewals and deadlines; subscriptions
//	notice               subscriptions to the keys of long holds; see WithLossNotice
//	redisstore, wire     scripts; connections
//
// To report upward, a component calls a function that was passed to it here:
//
//	wakeup           -> handleWakeup: the queue of the key looks, and a holder of this client asks Redis
//	notice           -> the watchdog asks Redis about a lease
//	lease, holding   -> the holds of the lease end; watcher: the observers
//	reaper           -> a lock was freed: the queue of the key wakes
//	redisstore       -> a node falls silent or answers: the circuit breaker
type components struct {
	kinds    redisstore.Kinds
	store    *redisstore.Store
	sender   *resend.Sender
	queues   *queue.Queues
	wakeups  *wakeup.Subscriber
	breaker  *breaker.Breaker
	reaper   *reaper.Reaper
	watchdog *lease.Watchdog
	holdings *holding.Holdings
	acquirer *acquire.Acquirer
	counter  *counting.Counter
}

// open creates the components that do not need the store. It calls rejected later, with each error reply to a
// subscription.
func (c *components) open(cfg *config, life *lifetime, rejected func(error)) {
	c.queues = queue.New(queue.Config{PerKey: cfg.maxWaitersPerKey, InAll: cfg.maxWaiters})
	c.breaker = breaker.New(func(ctx context.Context, key string) string { return c.store.NodeName(ctx, key) })
	c.reaper = reaper.New(reaper.Config{
		Redis:   clearing{c},
		Silent:  func(ctx context.Context, key string) bool { return c.breaker.Check(ctx, key) != nil },
		Cleared: func(key string) { c.queues.Wake(key, "") },
		Spawn:   life.spawn,
	})
	c.wakeups = wakeup.New(wakeup.Config{Wire: subscribing{c}, Notify: c.handleWakeup, Rejected: rejected, Spawn: life.spawn})
}

// storeConfig returns the configuration of the store.
func (c *components) storeConfig(cfg *config, id string) redisstore.Config {
	store := redisstore.Config{
		Config: wire.Config{
			Timeout: cfg.backendTimeout, Replication: cfg.replication,
			Reports: wire.Reports{Silent: c.breaker.Trip, Answers: func(node string) {
				c.breaker.Reset(node)
				c.reaper.Resume()
			}},
		},
		RenewTimeout: cfg.renewTimeout(),
		Notices:      cfg.lossNotice,
	}
	if cfg.namesConnections {
		store.Owner = id
	}
	if cfg.pubSub != PubSubAuto {
		store.Sharded = new(cfg.pubSub == PubSubSharded)
	}
	return store
}

// failFast returns an error while the node of key is known to be silent.
func (c *components) failFast(ctx context.Context, key string) error {
	if cause := c.breaker.Check(ctx, key); cause != nil {
		return fmt.Errorf("%w: failing fast until it answers again: %w", ErrUnavailable, cause)
	}
	return nil
}

// handleWakeup handles an event on the subscription of a topic.
func (c *components) handleWakeup(about wakeup.Topic, why wakeup.Reason) {
	key := about.Key
	if about.Lane == "" {
		c.queues.WakeLanes(key) // the waiters in lanes have no separate messages
	}
	switch {
	case why == wakeup.Interrupted, why == wakeup.Confirmed && about.Lane != "":
		c.queues.WakeToCheck(key, about.Lane)
	case about.Lane != "":
		c.queues.Wake(key, about.Lane)
		if why == wakeup.Message {
			c.holdings.Doubt(c.queues.Holders(key))
		}
	case why == wakeup.Message:
		c.holdings.HandleMessage(c.queues.RecordMessage(key, time.Now()))
	case why == wakeup.Confirmed:
		c.holdings.HandleMessage(c.queues.RecordConfirmation(key, time.Now()))
	default:
		c.queues.Wake(key, "")
	}
}

// subscribing opens the connections of subscriptions.
type subscribing struct{ *components }

// NodeOf returns the name of the master of key if channels belong to masters, and "" otherwise.
func (w subscribing) NodeOf(ctx context.Context, key string) string {
	if !w.store.Sharded() {
		return ""
	}
	return w.store.NodeName(ctx, key)
}

// Connect opens a subscription connection.
func (w subscribing) Connect(ctx context.Context, key string) (wakeup.Connection, error) {
	return w.store.Subscriptions(ctx, key)
}

// noticing opens the connections of package notice.
type noticing struct{ *components }

// NodeOf returns the name of the master of key in a Cluster, and "" otherwise.
func (n noticing) NodeOf(ctx context.Context, key string) string { return n.store.NodeName(ctx, key) }

// Connect opens a subscription connection to the master of key.
func (n noticing) Connect(ctx context.Context, key string) (wakeup.Connection, error) {
	return n.store.Notices(ctx, key)
}

// clearing sends the commands of the reaper.
type clearing struct{ *components }

// Clears returns the largest number of keys of one command.
func (c clearing) Clears() int { return c.store.Clears() }

// Clear sends one command.
func (c clearing) Clear(ctx context.Context, list []redisstore.Suspicion) ([]redisstore.Finding, wire.Fate, error) {
	now, store, sender := time.Now(), c.store, c.sender
	if err := store.Detect(ctx, sender.DetectLimit(now)); err != nil {
		return nil, wire.NotSent, err
	}
	call := store.Clear(now, list)
	if list[0].Kind.Counts() {
		call = store.SettleAll(now, list)
	}
	return call.Wait(ctx, sender.CallLimit(now))
}
