package aspect

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/failpolicy"
)

// CancelDebounce says that a call does not count although it succeeds, such as an order that was
// declined with status 200. No rule around the caller begins a debounce window then; the locks are
// freed. ctx is the context of the handler or of the wrapped function, or a context
// derived from it; gin's own context works too. Without a debounced rule CancelDebounce does nothing.
func CancelDebounce(ctx context.Context) {
	for w := windowOf(ctx); w != nil; w = w.outer {
		w.canceled.Store(true)
	}
}

// window is the debounce window of a run. It begins when the run succeeds. The context of the handler
// leads to it.
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

// handlerContext is what the rest of the call runs with: the context of the hold,
// or, where a loss is ignored, one that only carries the ownership.
func (c *compiled) handlerContext(before, ofHold context.Context) context.Context {
	if c.OnLost == failpolicy.Ignore {
		return owning{Context: before, hold: ofHold}
	}
	return ofHold
}

// owning is a context with the values of a hold's context, and so its ownership,
// but not its end. [context.Cause] of it may tell the loss while its Err is nil.
type owning struct {
	context.Context
	hold context.Context
}

// Value returns the value in the hold's context.
func (c owning) Value(key any) any { return c.hold.Value(key) }
