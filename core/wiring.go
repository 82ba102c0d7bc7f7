package core

import (
	"context"
	"fmt"
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
	c.resolver.look()
}

// nodeName names the node of key, as the store does that tells of silent nodes.
func (c *Client) nodeName(ctx context.Context, key string) string { return c.store.NodeName(ctx, key) }
