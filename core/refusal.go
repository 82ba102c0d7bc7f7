package core

import (
	"context"
	"math"
	"strconv"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Refusal reports why an acquisition of any single lock would fail at once, as far as that is known
// without asking Redis: [ErrInvalid], [ErrClosed], [ErrUnavailable] while Redis is known to be down, or
// [ErrTooManyWaiters] where the call may wait. Nil means that Acquire would get further. It is for
// callers for which the name of the lock is costly to find out, such as from the body of a request.
// Nothing is reserved: the answer may differ a moment later. A call under a lock of this or another
// client, which it may enter again, is not refused for the number of waiters.
func (c *Client) Refusal(ctx context.Context, opts ...AcquireOption) error {
	var req request
	if err := c.readRequest(&req, c.kinds.Reentrant, opts); err != nil {
		return err
	}
	if c.isClosing() {
		return ErrClosed
	}
	if !c.store.Clustered() { // there the node of the key counts
		if err := c.failFast(ctx, ""); err != nil {
			return err
		}
	}
	if req.mayWait() && innermost(ctx) == nil && c.queues.Full() {
		return ErrTooManyWaiters
	}
	return nil
}

// mayWait reports whether the caller would join a queue.
func (r *request) mayWait() bool { return r.forever || r.wait > 0 }

// readRequest fills r with what is asked of the lock.
func (l Lock) readRequest(r *request, opts []AcquireOption) error {
	err := l.client.readRequest(r, l.kind, opts)
	if err == nil && r.token {
		err = l.checkToken()
	}
	switch {
	case err != nil:
		return err
	case l.kind.Holds == redisstore.Unheld:
		r.operation = l.demand
	case l.demand != "":
		r.demand = l.demand
		if _, err = strconv.ParseUint(l.demand, 10, 31); err != nil {
			return invalidf("Semaphore(%.40q, %s): want 0 to %d permits", l.name, l.demand, math.MaxInt32)
		}
	}
	return nil
}
