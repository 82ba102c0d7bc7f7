// Package breaker is a circuit breaker for each node of Redis: it spares callers the wait
// for one that is known to be silent. They fail at once, until it answers again.
//
// Who is about to send something asks Check. Who sees all commands and all answers, which is
// redisstore, calls Trip and Reset. There is no half-open state in which callers are let
// through to try: the one who tripped the breaker asks the node until it answers.
//
// Guaranteed is that a Check which begins after Trip has returned fails, and that one which
// begins after Reset does not. Not guaranteed is that the node still is as it was when Check
// answers. While no circuit is open, Check costs one atomic load, and the name of the node
// is not asked for.
//
// Its mutex guards memory only; nothing is called under it.
package breaker

import (
	"context"
	"sync"
	"sync/atomic"
)

// Breaker has a circuit for each node.
//
//	closed ── Trip ──▶ open ── Reset ──▶ closed
//
// It is safe for concurrent use.
type Breaker struct {
	nodeOf func(ctx context.Context, key string) string
	open   atomic.Int32 // how many circuits; 0 on the hot path

	mu     sync.Mutex
	causes map[string]error // by node, of the open circuits
}

// New makes a breaker whose circuits are closed. nodeOf names the node that owns a key, as
// Trip and Reset name it.
func New(nodeOf func(ctx context.Context, key string) string) *Breaker {
	return &Breaker{nodeOf: nodeOf, causes: make(map[string]error)}
}

// Check is nil while the circuit of the node that owns key is closed, and else the cause
// for which it is open.
func (b *Breaker) Check(ctx context.Context, key string) error {
	if b.open.Load() == 0 {
		return nil
	}
	node := b.nodeOf(ctx, key)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.causes[node]
}

// Trip opens the circuit of a node. The cause, which is not nil, replaces an earlier one.
func (b *Breaker) Trip(node string, cause error) { b.set(node, cause) }

// Reset closes the circuit of a node.
func (b *Breaker) Reset(node string) { b.set(node, nil) }

// set changes the state of a circuit: open with a cause, closed without.
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
