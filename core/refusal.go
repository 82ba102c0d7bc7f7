package core

import "context"

// Refusal reports why Acquire would fail at once, as far as that is known without asking
// Redis: [ErrInvalid], [ErrClosed], [ErrUnavailable] while Redis is known to be down, or
// [ErrTooManyWaiters] where the call may wait. Nil means that Acquire would get further.
// It is for callers that have something costly to do before they wait, such as reading a
// request. Nothing is reserved: the answer may differ a moment later.
func (l Lock) Refusal(ctx context.Context, opts ...AcquireOption) error {
	c := l.client
	var req request
	if err := c.readRequest(&req, l.kind, opts); err != nil {
		return err
	}
	keys, err := l.keys()
	if err != nil {
		return err
	}
	if c.isClosing() {
		return ErrClosed
	}
	for _, key := range keys {
		if err := c.failFast(ctx, key); err != nil {
			return err
		}
	}
	for _, key := range keys {
		if err := c.queues.Check(key, req.kind.Name); err != nil {
			return notQueued(err, key, req.kind)
		}
	}
	if len(keys) == 1 && req.mayWait() && c.owned(ctx, keys[0]) == nil && c.queues.FullFor(keys[0], req.maxWaiters) {
		return ErrTooManyWaiters
	}
	return nil
}

// Refusal is [Lock.Refusal] for a lock whose name is not known yet: what is true of
// every single one. A call under a lock of this or another client, which it may enter
// again, is not refused for the number of waiters.
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
