package core

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core/internal/reaper"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// failFast is nil unless the node of key is known to be silent.
func (c *Client) failFast(ctx context.Context, key string) error {
	if cause := c.breaker.Check(ctx, key); cause != nil {
		return fmt.Errorf("%w: failing fast until it answers again: %w", ErrUnavailable, cause)
	}
	return nil
}

// answers is told that a node which was silent answers again.
func (c *Client) answers(node string) {
	c.breaker.Reset(node)
	c.reaper.Resume()
}

// nodeName names the node of key, as the store does that tells of silent nodes.
func (c *Client) nodeName(ctx context.Context, key string) string { return c.store.NodeName(ctx, key) }

func (c *Client) newReaper() *reaper.Reaper {
	return reaper.New(reaper.Config{
		Redis:   clearing{c},
		Silent:  func(ctx context.Context, key string) bool { return c.breaker.Check(ctx, key) != nil },
		Cleared: c.lines.kick,
		Spawn:   c.spawn,
	})
}

// abandon leaves a field to the reaper, in all keys of one command. call is that command if
// it was not answered, nil if it was, or if only its effect is in doubt.
func (c *Client) abandon(keys []string, field string, call *redisstore.Call, lease time.Duration) {
	var late reaper.LateAnswer
	if call != nil {
		call.Settle()
		late = lateAnswer{call}
	}
	c.reaper.Abandon(keys, field, late, lease)
}
