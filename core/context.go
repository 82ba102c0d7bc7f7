package core

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core/internal/acquire"
	"github.com/interlock-go/interlock/core/internal/holding"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// ContextKey is the key under which the context of a hold returns its hold. It is for frameworks whose own context type
// looks values up by string. Store ctx.Value(ContextKey) in the framework's context under this key, and an Acquire with
// that context finds the hold.
const ContextKey = "github.com/interlock-go/interlock/core.hold"

// holdContext is the context of one hold. Its Err compares the lease with the clock, and its Value leads to the hold.
type holdContext struct {
	context.Context //nolint:containedctx // this type is a context
	hold            *Hold
	parent          context.Context //nolint:containedctx // as above; the search for outer holds continues there
}

// Err returns the error of the context. Unlike other contexts it compares the deadline of the lock with the
// clock, so a process that was stopped for longer than the lease does not continue before a timer has fired.
func (c *holdContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	c.hold.handle.Hold.CheckClock(time.Now())
	return c.Context.Err()
}

// Value returns c itself for [ContextKey].
func (c *holdContext) Value(key any) any {
	if key == ContextKey {
		return c
	}
	return c.Context.Value(key)
}

// String returns a description of the context for logs.
func (c *holdContext) String() string {
	return fmt.Sprintf("%v.WithLock(%s)", c.parent, c.hold.Key())
}

// innermost returns the nearest hold on the way up from ctx.
func innermost(ctx context.Context) *holdContext {
	h, ok := ctx.Value(ContextKey).(*holdContext)
	if !ok {
		return nil
	}
	return h
}

// carriers finds the holds of a client that a context carries.
type carriers struct {
	holdings *holding.Holdings
	keys     atomic.Pointer[[]any] // the keys given to forAdapters.FindThrough
}

// find returns the holder of a key that ctx carries and that has the lock: the nearest holder of the given kind, or
// else the nearest holder of another kind. It looks in ctx and then in the request of a framework to which ctx leads.
// It follows only one request, because the context of the request may lead back to ctx.
func (c *carriers) find(ctx context.Context, key string, kind *redisstore.Kind) *holding.Holder {
	o, outermost := c.search(ctx, key, kind)
	if o != nil && o.Kind() == kind {
		return o
	}
	if request := c.requestOf(outermost); request != nil {
		if further, _ := c.search(request, key, kind); further != nil && (o == nil || further.Kind() == kind) {
			return further
		}
	}
	return o
}

// findCarried decides what an acquisition does with a holder of the key that ctx carries. again is a holder to
// re-enter. under is a holder that lets its caller acquire the lock once more, such as a writer that wants to read. The
// error is [ErrInvalid] if the wanted lock is not reentrant, if a reader wants to write, if the holder's kind does not
// share the name with the wanted kind, or if the holder lacks the token that the caller wants.
func (c *carriers) findCarried(ctx context.Context, key string, w *acquire.Wish) (again, under *holding.Holder, err error) {
	kind, o := w.Kind, c.find(ctx, key, w.Kind)
	switch {
	case o == nil:
		return nil, nil, nil
	case o.Kind() == kind && kind.Holds != redisstore.Reentrant:
		return nil, nil, nil
	case o.Kind() == kind && w.Once:
		return nil, nil, invalidf("the context holds %q already, and a non-reentrant lock is not re-entered: call this code with the context from before the acquisition, or use Lock or FairLock where a second acquisition is intended", key)
	case o.Kind() == kind && w.Token && o.Token() == 0:
		return o, nil, invalidf("WithToken: the context holds %q without a token, and a re-entry has the token of the hold that it re-enters: ask for the token there", key)
	case o.Kind() == kind:
		return o, nil, nil
	case o.Kind().Family != kind.Family:
		return nil, nil, invalidf("the context holds %q as a %s; one name is for one kind: use that kind here too, or another name for the %s", key, o.Kind().Noun(), kind.Noun())
	case kind.Shared():
		return nil, o, nil
	default:
		return nil, nil, invalidf("the context holds %q as a %s, which cannot become a %s, since others that hold it may want the same: release it first, or take the %s from the start", key, o.Kind().Noun(), kind.Noun(), kind.Noun())
	}
}

// search looks at the holds on the way up from ctx. If none of them has the kind, outermost is the context at which the
// search ended.
func (c *carriers) search(ctx context.Context, key string, kind *redisstore.Kind) (nearest *holding.Holder, outermost context.Context) {
	outermost = ctx
	for h := innermost(ctx); h != nil; h = innermost(h.parent) {
		outermost = h.parent //nolint:fatcontext // found, not created
		o := h.hold.handle.Hold.HolderOf(c.holdings, key)
		if o != nil && o.Kind() == kind {
			return o, outermost
		}
		if nearest == nil {
			nearest = o
		}
	}
	return nearest, outermost
}

// findLoss returns the loss of one of the keys that ctx carries; nil if none was lost.
func (c *carriers) findLoss(ctx context.Context, keys []string) error {
	for h := innermost(ctx); h != nil; h = innermost(h.parent) {
		if loss := h.hold.handle.Hold.LossOf(c.holdings, keys); loss != nil {
			return loss
		}
	}
	return nil
}

// requestOf returns the context of the request to which ctx leads under one of the keys. It returns nil if there is no
// request or if [Detach] hides it.
func (c *carriers) requestOf(ctx context.Context) context.Context {
	keys := c.keys.Load()
	if keys == nil {
		return nil
	}
	for _, key := range *keys {
		request, ok := ctx.Value(key).(interface{ Context() context.Context })
		if !ok || reflect.ValueOf(request).IsZero() || ctx.Value(detachedKey{}) != nil {
			continue
		}
		return request.Context()
	}
	return nil
}

// Held returns the innermost hold on the lock name that ctx carries, of whichever client. name is the name that was
// given to the client, without its prefix and before its [WithNameMapper]. A hold that was released, lost or handed
// over is not held.
func Held(ctx context.Context, name string) (*Hold, bool) {
	for h := innermost(ctx); h != nil; h = innermost(h.parent) {
		if h.hold.holds(name) {
			return h.hold, true
		}
	}
	return nil, false
}

// HoldsOf returns the holds that ctx carries and that have not ended, of whichever client, the innermost first. If a
// lock was re-entered, the list contains each of its holds. HoldsOf is for observers that report the locks that a
// caller holds while it waits. Like [Held] it does not follow the context of a framework to its request. It sends
// nothing to Redis. Without a hold it does not allocate.
func HoldsOf(ctx context.Context) []HoldInfo {
	var list []HoldInfo
	for h := innermost(ctx); h != nil; h = innermost(h.parent) {
		if h.hold.Remaining() > 0 {
			list = append(list, infoOf(h.hold.handle.Hold))
		}
	}
	return list
}

// holds reports whether the hold has not ended and has the lock name.
func (h *Hold) holds(name string) bool {
	return h.Remaining() > 0 && h.handle.Hold.Covers(name)
}

// MustHold returns the same hold as [Held], but panics if ctx does not carry the lock. It is for code that
// must not run without the lock, such as a handler that must not be called without its middleware.
func MustHold(ctx context.Context, name string) *Hold {
	hold, ok := Held(ctx, name)
	if !ok {
		panic(fmt.Sprintf("core: MustHold: the context does not hold the lock %q; is the middleware or Acquire missing?", name))
	}
	return hold
}

// Detach returns a context for work that outlives its caller. It has the values of ctx, but neither its
// cancellation nor its locks: an Acquire with it does not re-enter. Use [Hold.Handover] to pass a lock on.
func Detach(ctx context.Context) context.Context {
	return detached{context.WithoutCancel(ctx)}
}

type detached struct {
	context.Context //nolint:containedctx // this type is a context
}

// detachedKey is the key under which a detached context is recognized.
type detachedKey struct{}

// Value hides the holds and marks the context as detached.
func (d detached) Value(key any) any {
	switch key {
	case ContextKey:
		return nil
	case detachedKey{}:
		return true
	}
	return d.Context.Value(key)
}
