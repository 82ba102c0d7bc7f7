package core

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core/internal/breaker"
	"github.com/interlock-go/interlock/core/internal/reaper"
	"github.com/interlock-go/interlock/core/internal/wakeup"
)

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
		Cleared: func(key string) { c.queues.Wake(key) },
		Spawn:   c.spawn,
	})
}

func newSubscriber(c *Client) *wakeup.Subscriber {
	return wakeup.New(wakeup.Config{Wire: wire{c}, Woken: c.woken, Spawn: c.spawn})
}

// woken is notified of what has happened to the subscription of a key.
func (c *Client) woken(key string, why wakeup.Reason) {
	switch why {
	case wakeup.Message, wakeup.Confirmed:
		c.doubt(c.queues.Message(key, time.Now()))
	case wakeup.Interrupted:
		c.queues.Look(key)
	case wakeup.Closed:
		c.queues.Wake(key)
	}
}

// wire is the way of the subscriptions to Redis.
type wire struct{ client *Client }

// NodeOf names the master of key, if channels belong to masters.
func (w wire) NodeOf(ctx context.Context, key string) string {
	if !w.client.store.Sharded() {
		return ""
	}
	return w.client.store.NodeName(ctx, key)
}

// Connect opens a subscription connection.
func (w wire) Connect(ctx context.Context, key string) (wakeup.Connection, error) {
	return w.client.store.Subscriptions(ctx, key)
}
