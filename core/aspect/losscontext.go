package aspect

import (
	"context"

	"github.com/interlock-go/interlock/failpolicy"
)

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

// Value is that of the hold's context.
func (c owning) Value(key any) any { return c.hold.Value(key) }
