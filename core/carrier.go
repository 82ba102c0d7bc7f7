package core

import (
	"context"
	"reflect"
	"sync/atomic"
)

// carriers are the keys given to forAdapters.FindThrough.
type carriers struct{ keys atomic.Pointer[[]any] }

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
