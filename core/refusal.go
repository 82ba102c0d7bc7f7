package core

import "context"

// Refusal tells why Acquire would fail at once, as far as that is known without asking
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
	if len(keys) == 1 && req.mayWait() && c.owned(ctx, keys[0]) == nil && c.lines.isFull(keys[0], &req) {
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
	if req.mayWait() && innermost(ctx) == nil && c.waiters.Load() >= int64(c.cfg.maxWaiters) {
		return ErrTooManyWaiters
	}
	return nil
}

// mayWait reports whether the caller would join a queue.
func (r *request) mayWait() bool { return r.forever || r.wait > 0 }

// isFull reports whether one more caller could not wait for key.
func (l *lines) isFull(key string, req *request) bool {
	if l.client.waiters.Load() >= int64(l.client.cfg.maxWaiters) {
		return true
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := s.lines[key]
	return ln != nil && ln.waiting >= l.limit(req)
}

// limit is how many callers may wait for one key.
func (l *lines) limit(req *request) int {
	if req.maxWaiters > 0 {
		return min(l.client.cfg.maxWaitersPerKey, req.maxWaiters)
	}
	return l.client.cfg.maxWaitersPerKey
}
