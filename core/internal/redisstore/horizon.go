package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// horizon gives calls of the same moment one shared context: cheaper than a timer
// and a cancellation for each of them.
type horizon struct {
	step time.Duration // for how long one context is given out; it ends after twice that

	mu      sync.Mutex
	current atomic.Pointer[span]
}

type span struct {
	ctx   context.Context //nolint:containedctx // shared by all calls of a moment, that is its purpose
	until time.Time
}

// before returns the shared context, unless limit comes before its end. now is the
// time, or a little before.
func (h *horizon) before(now, limit time.Time) (context.Context, bool) {
	if limit.Sub(now) < 2*h.step {
		return nil, false
	}
	if s := h.current.Load(); s != nil && now.Before(s.until) {
		return s.ctx, true
	}
	return h.renew(now), true
}

func (h *horizon) renew(now time.Time) context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.current.Load(); s != nil && now.Before(s.until) {
		return s.ctx
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // shared, so nobody's child
	time.AfterFunc(2*h.step, cancel)
	h.current.Store(&span{ctx: ctx, until: now.Add(h.step)})
	return ctx
}
