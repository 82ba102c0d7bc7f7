package core

import (
	"math"
	"sync"
	"sync/atomic"
)

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
