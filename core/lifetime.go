package core

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
)

// lifetime is the life of a client, of those who are inside it and of what it does in the
// background.
//
//	open ── beginClose ──▶ closing ── endWork ──▶ closed
//
// While it is open, callers enter and work is spawned. While it is closing, callers that wait
// are sent away by the channel, others are refused, and work goes on: releases need it. When
// it is closed there is none.
type lifetime struct {
	callers callers
	service context.Context //nolint:containedctx // of what ends when it is not open any more
	closing <-chan struct{} // closed then
	shut    context.CancelFunc
	life    context.Context //nolint:containedctx // of the work
	end     context.CancelFunc

	mu      sync.Mutex
	begun   bool // closing has begun
	workers sync.WaitGroup
}

func (l *lifetime) open() {
	l.life, l.end = context.WithCancel(context.Background()) //nolint:forbidigo // the client's own
	l.callers.gone = make(chan struct{})
	l.service, l.shut = context.WithCancel(context.Background()) //nolint:forbidigo // as above
	l.closing = l.service.Done()
}

// spawn runs work in a goroutine that endWork waits for. After that it does nothing.
func (l *lifetime) spawn(work func(ctx context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.Err() == nil {
		l.workers.Go(func() { work(l.life) })
	}
}

// isClosing reports whether callers are refused.
func (l *lifetime) isClosing() bool { return l.service.Err() != nil }

// beginClose refuses callers and waits until the last one has left. It reports whether
// nobody has begun before.
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

// callers counts who is inside the client, so that Close can wait for them. It is
// one atomic counter because every acquisition passes through it.
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

// refuse admits nobody any more, and gives a channel that is closed when the last
// caller has left. It is called once.
func (c *callers) refuse() <-chan struct{} {
	if c.n.Add(refused) == refused {
		c.leaveLast()
	}
	return c.gone
}

// leaveLast may be reached more than once: by callers who come too late.
func (c *callers) leaveLast() {
	c.once.Do(func() { close(c.gone) })
}
