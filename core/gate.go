package core

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// gate spares callers the wait for a node of Redis that is known to be silent: they fail
// at once, until it answers again. Who finds that out is the store, which sees all
// commands and all answers.
type gate struct {
	client *Client
	shut   atomic.Int32 // how many nodes; 0 on the hot path

	mu    sync.Mutex
	nodes map[string]error // why a node is taken to be down
}

func newGate(c *Client) *gate {
	return &gate{client: c, nodes: make(map[string]error)}
}

// check is nil unless the node of key is down.
func (g *gate) check(ctx context.Context, key string) error {
	if g.shut.Load() == 0 {
		return nil
	}
	name := g.client.store.NodeName(ctx, key)
	g.mu.Lock()
	defer g.mu.Unlock()
	if cause := g.nodes[name]; cause != nil {
		return fmt.Errorf("%w: failing fast until it answers again: %w", ErrUnavailable, cause)
	}
	return nil
}

// trip is told that a node is down.
func (g *gate) trip(node string, cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.nodes[node] = cause
	g.shut.Store(int32(len(g.nodes)))
}

// open is told that it answers again.
func (g *gate) open(node string) {
	g.mu.Lock()
	delete(g.nodes, node)
	g.shut.Store(int32(len(g.nodes)))
	g.mu.Unlock()
	g.client.resolver.look()
}
