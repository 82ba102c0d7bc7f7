package aspect

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/interlock-go/interlock/core"
)

// CancelDebounce says that a call did not count, though it will succeed: an order that was declined
// with status 200, or a request that only asked. No debounce window begins after the call, neither
// of its own rule nor of a rule around it; its locks are freed. ctx is the context of the handler
// or of the function, or one made of it; gin's own context will do. Where no rule has a debounce it
// changes nothing.
func CancelDebounce(ctx context.Context) {
	for w := windowOf(ctx); w != nil; w = w.outer {
		w.canceled.Store(true)
	}
}

// window is the debounce window of a run, which begins after it. The context of the handler leads
// to it.
type window struct {
	outer    *window // of a run around this one
	canceled atomic.Bool
}

type windowKey struct{}

// windowOf is the window of the innermost run around ctx that has one, nil without any. The
// context of a framework may lead to the lock only.
func windowOf(ctx context.Context) *window {
	w, ok := ctx.Value(windowKey{}).(*window)
	if owner, carries := ctx.Value(core.ContextKey).(context.Context); !ok && carries {
		w, _ = owner.Value(windowKey{}).(*window) //nolint:errcheck // nil is the answer
	}
	return w
}

// openWindow lets the handler cancel the debounce, if a rule has one.
func (r *run) openWindow() {
	if slices.ContainsFunc(r.point.rules, func(c *compiled) bool { return c.Debounce > 0 }) {
		r.window = &window{outer: windowOf(r.ctx)}
		r.ctx = context.WithValue(r.ctx, windowKey{}, r.window)
	}
}

// counts reports whether a debounce window begins after the run.
func (r *run) counts() bool {
	return r.returned && r.out.Err == nil && (r.window == nil || !r.window.canceled.Load())
}
