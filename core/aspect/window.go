package aspect

import (
	"context"
	"sync/atomic"

	"github.com/interlock-go/interlock/core"
)

// CancelDebounce marks a call that succeeds without having done its work, such as an order that is declined with
// status 200. No rule around the caller then begins a debounce window; the locks are freed. ctx is the context of
// the handler or of the wrapped function, or a context derived from it; gin's own context works too. Without a
// debounced rule CancelDebounce does nothing.
func CancelDebounce(ctx context.Context) {
	for w := windowOf(ctx); w != nil; w = w.outer {
		w.canceled.Store(true)
	}
}

// window is the debounce window of a run. It begins when the run succeeds. The context of the handler carries it.
type window struct {
	outer    *window // the window of a run around this one
	canceled atomic.Bool
}

type windowKey struct{}

// windowOf returns the window of the innermost run around ctx that has a window, nil if none has. The context of a
// framework, such as gin's, may give access only to the lock. Then windowOf looks in the context of the lock.
func windowOf(ctx context.Context) *window {
	w, ok := ctx.Value(windowKey{}).(*window)
	if owner, carries := ctx.Value(core.ContextKey).(context.Context); !ok && carries {
		w, _ = owner.Value(windowKey{}).(*window) //nolint:errcheck // nil is the answer
	}
	return w
}
