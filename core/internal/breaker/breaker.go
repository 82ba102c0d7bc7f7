// Package breaker provides a circuit breaker for each node of Redis. Callers do not wait for a node that is
// known to be silent: they fail at once, until it answers again.
//
// Operations on locks call Check first; renewals do not. Package wire decides when a node is silent, by the rule at its
// type health, and when it answers again. It calls Trip and Reset, which package core passes to it. The breaker counts no
// failures and has no half-open state in which callers try the node. Instead, package wire pings a silent node until
// the node answers.
//
// A Check that begins after Trip has returned fails. A Check that begins after Reset has returned
// succeeds. The state of the node may change before Check returns. While no circuit is open, Check costs
// one atomic load and does not call nodeOf.
//
// The mutex guards memory only. The breaker calls no function while it holds it.
package breaker

import (
	"context"
	"sync"
	"sync/atomic"
)

// Breaker holds a circuit for each node.
//
//	closed ── Trip ──▶ open ── Reset ──▶ closed
//
// It is safe for concurrent use.
type Breaker struct {
	nodeOf func(ctx context.Context, key string) string
	open   atomic.Int32 // the number of open circuits; 0 on the hot path

	mu     sync.Mutex
	causes map[string]error // the causes of the open circuits, by node
}

// New returns a breaker whose circuits are closed. nodeOf returns the name of the node that owns a key.
// Trip and Reset take the same names.
func New(nodeOf func(ctx context.Context, key string) string) *Breaker {
	return &Breaker{nodeOf: nodeOf, causes: make(map[string]error)}
}

// Check returns nil while the circuit of the node that owns key is closed. Otherwise it returns the
// cause of the last Trip.
func (b *Breaker) Check(ctx context.Context, key string) error {
	if b.open.Load() == 0 {
		return nil
	}
	node := b.nodeOf(ctx, key)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.causes[node]
}

// Trip opens the circuit of a node. The cause must not be nil. It replaces an earlier cause.
func (b *Breaker) Trip(node string, cause error) { b.set(node, cause) }

// Reset closes the circuit of a node.
func (b *Breaker) Reset(node string) { b.set(node, nil) }

// set opens a circuit if it gets a cause and closes it otherwise.
func (b *Breaker) set(node string, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cause != nil {
		b.causes[node] = cause
	} else {
		delete(b.causes, node)
	}
	b.open.Store(int32(len(b.causes)))
}
