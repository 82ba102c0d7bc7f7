package aspect

import (
	"context"
	"sync/atomic"

	"github.com/interlock-go/interlock/core"
)

// CancelDebounce says that a call does not count although it succeeds, such as an order that was declined with
// status 200. No rule around the caller then begins a debounce window; the locks are freed. ctx is the context of
// the handler or of the wrapped function, or a context derived from it; gin's own context works too. Without a
// debounced rule CancelDebounce does nothing.
func CancelDebounce(ctx context.Context) {
	for w := windowOf(ctx); w != nil; w = w.outer {
		w.canceled.Store(true)
	}
}

// window is the debounce window of a run. It begins when the run succeeds. The context of the handler leads to it.
type window struct {
	outer    *window // of a run around this one
	canceled atomic.Bool
}

type windowKey struct{}

// windowOf returns the window of the innermost run around ctx that has one, nil if there is none. The context of a
// framework may lead only to the lock, and through the lock to the window.
func windowOf(ctx context.Context) *window {
	w, ok := ctx.Value(windowKey{}).(*window)
	if owner, carries := ctx.Value(core.ContextKey).(context.Context); !ok && carries {
		w, _ = owner.Value(windowKey{}).(*window) //nolint:errcheck // nil is the answer
	}
	return w
}
