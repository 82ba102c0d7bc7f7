package core

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
)

// lifetime tracks whether a client is open, the callers inside it, and its background work.
//
//	open ── beginClose ──▶ closing ── endWork ──▶ closed
//
// While the client is open, callers enter it and spawn starts work. Once the client is closing, waiting callers leave
// and new callers are refused. Work continues until endWork, because releases need it. A closed client runs no work.
type lifetime struct {
	callers callers
	service context.Context //nolint:containedctx // canceled by beginClose
	closing <-chan struct{} // service.Done()
	shut    context.CancelFunc
	life    context.Context //nolint:containedctx // canceled by endWork, which stops the work
	end     context.CancelFunc

	mu           sync.Mutex
	closeStarted bool // beginClose was called
	workers      sync.WaitGroup
}

func (l *lifetime) open() {
	l.life, l.end = context.WithCancel(context.Background()) //nolint:forbidigo // the client's own context
	l.callers.drained = make(chan struct{})
	l.service, l.shut = context.WithCancel(context.Background()) //nolint:forbidigo // as above
	l.closing = l.service.Done()
}

// spawn runs work in a goroutine that endWork waits for. After endWork it does nothing.
func (l *lifetime) spawn(work func(ctx context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.Err() == nil {
		l.workers.Go(func() { work(l.life) })
	}
}

// isClosing reports whether callers are refused.
func (l *lifetime) isClosing() bool { return l.service.Err() != nil }

// beginClose refuses new callers, waits until the last caller has left, and returns true. Later calls return false at
// once.
func (l *lifetime) beginClose() bool {
	l.mu.Lock()
	if l.closeStarted {
		l.mu.Unlock()
		return false
	}
	l.closeStarted = true
	l.shut()
	l.mu.Unlock()
	<-l.callers.refuse()
	return true
}

// endWork stops all work and waits for it.
func (l *lifetime) endWork() {
	l.mu.Lock()
	l.end()
	l.mu.Unlock()
	l.workers.Wait()
}

// callers counts the callers inside the client: goroutines that have entered a method and not exited. Close waits for
// them. The count is one atomic because every acquisition uses it.
type callers struct {
	n       atomic.Int64
	once    sync.Once
	drained chan struct{} // closed when callers are refused and the last one has left
}

// refused is added to the count when no more callers may enter.
const refused = math.MinInt64 / 2

// enter counts a caller, or returns ErrClosed if callers are refused.
func (c *callers) enter() error {
	if c.n.Add(1) < 0 {
		c.exit()
		return ErrClosed
	}
	return nil
}

// exit records that a caller has left.
func (c *callers) exit() {
	if c.n.Add(-1) == refused {
		c.closeDrained()
	}
}

// refuse makes enter refuse callers and returns a channel that is closed when the last caller has left. It must be
// called only once.
func (c *callers) refuse() <-chan struct{} {
	if c.n.Add(refused) == refused {
		c.closeDrained()
	}
	return c.drained
}

// closeDrained closes drained. It may be called again when a later caller is refused.
func (c *callers) closeDrained() {
	c.once.Do(func() { close(c.drained) })
}
