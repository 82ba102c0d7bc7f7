package core

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
)

// lifetime is the life of a client, of the callers inside it, and of its background work.
//
//	open ── beginClose ──▶ closing ── endWork ──▶ closed
//
// While it is open, callers enter, and work is spawned. While it is closing, waiting callers leave, because
// closing is closed, and others are refused. Work goes on, because releases need it. A closed client has none.
type lifetime struct {
	callers callers
	service context.Context //nolint:containedctx // ends when the client begins to close
	closing <-chan struct{} // closed at the same time
	shut    context.CancelFunc
	life    context.Context //nolint:containedctx // ends with the work
	end     context.CancelFunc

	mu      sync.Mutex
	begun   bool // it closes, or is closed
	workers sync.WaitGroup
}

func (l *lifetime) open() {
	l.life, l.end = context.WithCancel(context.Background()) //nolint:forbidigo // the client's own
	l.callers.gone = make(chan struct{})
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

// beginClose refuses callers and waits until the last one has left. It reports whether it is the first call.
func (l *lifetime) beginClose() bool {
	l.mu.Lock()
	if l.begun {
		l.mu.Unlock()
		return false
	}
	l.begun = true
	l.shut()
	l.mu.Unlock()
	<-l.callers.refuse()
	return true
}

// endWork ends all work and waits for it.
func (l *lifetime) endWork() {
	l.mu.Lock()
	l.end()
	l.mu.Unlock()
	l.workers.Wait()
}

// callers counts the callers inside the client, so that Close can wait for them. It is one atomic counter,
// because every acquisition passes through it.
type callers struct {
	n    atomic.Int64
	once sync.Once
	gone chan struct{} // closed when callers are refused and the last one has left
}

// refused is added to the count when no more callers are admitted.
const refused = math.MinInt64 / 2

// enter admits a caller, unless callers are refused.
func (c *callers) enter() error {
	if c.n.Add(1) < 0 {
		c.exit()
		return ErrClosed
	}
	return nil
}

// exit lets a caller go.
func (c *callers) exit() {
	if c.n.Add(-1) == refused {
		c.leaveLast()
	}
}

// refuse admits no more callers, and returns a channel that is closed when the last caller has left. It is
// called once.
func (c *callers) refuse() <-chan struct{} {
	if c.n.Add(refused) == refused {
		c.leaveLast()
	}
	return c.gone
}

// leaveLast closes gone. Callers that come too late may call it again.
func (c *callers) leaveLast() {
	c.once.Do(func() { close(c.gone) })
}
