package wire

import (
	"context"
	"sync"
)

// life is the lifetime of a component with goroutines. Its mutex also guards the state of the component.
//
//	open ── close ──▶ closed
type life struct {
	ctx context.Context //nolint:containedctx // the context of the goroutines
	end context.CancelFunc

	mu      sync.Mutex
	closed  bool
	workers sync.WaitGroup
}

// begin opens the component.
func (l *life) begin() {
	l.ctx, l.end = context.WithCancel(context.Background()) //nolint:forbidigo // the lifetime of the component
}

// spawn runs work in a goroutine that close waits for. If the component is closed, it returns false.
func (l *life) spawn(work func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.workers.Go(work)
	return true
}

// shut closes the component and cancels its context. It reports whether the component was open.
func (l *life) shut() bool {
	l.mu.Lock()
	open := !l.closed
	l.closed = true
	l.mu.Unlock()
	l.end()
	return open
}

// close closes the component and waits for its goroutines.
func (l *life) close() {
	l.shut()
	l.workers.Wait()
}

// wake wakes the goroutine that waits on a channel. If none waits, the next receive from the channel returns at once.
func wake(who chan struct{}) {
	select {
	case who <- struct{}{}:
	default:
	}
}
