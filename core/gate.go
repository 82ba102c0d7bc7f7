package core

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// gate spares callers the backend timeout while a node of Redis is known to be
// down. The first one to run into it pays; the others fail at once, until a probe
// gets an answer.
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

// trip marks the node of key as down, and probes it until it answers.
func (g *gate) trip(ctx context.Context, key string, cause error) {
	name := g.client.store.NodeName(ctx, key)
	g.mu.Lock()
	known := g.nodes[name] != nil
	g.nodes[name] = cause
	g.mu.Unlock()
	if known {
		return
	}
	g.shut.Add(1)
	g.client.spawn(func(ctx context.Context) {
		g.probe(ctx, key)
		g.open(name)
	})
}

func (g *gate) open(name string) {
	g.mu.Lock()
	delete(g.nodes, name)
	g.mu.Unlock()
	g.shut.Add(-1)
}

// The pauses between two probes.
const (
	firstProbe   = 20 * time.Millisecond
	longestProbe = 500 * time.Millisecond
)

func (g *gate) probe(ctx context.Context, key string) {
	for pause := firstProbe; ; pause = min(2*pause, longestProbe) {
		if g.client.sleep(ctx, pause) != nil {
			return
		}
		bounded, cancel := context.WithTimeout(ctx, g.client.cfg.backendTimeout)
		err := g.client.store.Ping(bounded, key)
		cancel()
		if err == nil {
			return
		}
	}
}
