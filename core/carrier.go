package core

import (
	"context"
	"reflect"
	"slices"
	"sync/atomic"
)

// carriers are the keys given to [Client.FindThrough].
type carriers struct{ keys atomic.Pointer[[]any] }

// FindThrough is for frameworks whose own context type is passed on as a
// context.Context and does not lead to the context of its request. Under key it has to
// answer with the request: a value with a method Context() context.Context, such as an
// *http.Request. Where such a context carries no ownership itself, an Acquire with it
// has that of the request, as it is then. A key that was given before changes nothing.
//
// Adapters call it when they are made. [Held] and [MustHold] know no client and do not
// look there.
func (c *Client) FindThrough(key any) {
	for {
		known := c.carriers.keys.Load()
		var next []any
		if known != nil {
			next = *known
		}
		if slices.Contains(next, key) {
			return
		}
		next = append(slices.Clip(next), key)
		if c.carriers.keys.CompareAndSwap(known, &next) {
			return
		}
	}
}

// requestOf is the context of the request to which ctx leads by a carrier, nil if there
// is none, or if [Detach] has hidden it.
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
