package ginlock

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
)

// frame is one guard around the handlers that run now.
type frame struct {
	outer    *frame
	endpoint *endpoint
	hold     *core.Hold
}

// frameKey is where the innermost frame of a request is found.
type frameKey struct{}

func frameOf(c *gin.Context) *frame {
	value, _ := c.Get(frameKey{})
	f, _ := value.(*frame)
	return f
}

// has reports whether the endpoint is one of the guards.
func (f *frame) has(e *endpoint) bool {
	for ; f != nil; f = f.outer {
		if f.endpoint == e {
			return true
		}
	}
	return false
}

// Hold gives the lock under which the handler of c runs: of several the one taken
// last; of further ones [core.Held] tells. It is nil outside a guard and where the
// handler runs without a lock; Release of nil is core.ErrNotHeld.
//
// The handler may release it early, after which its context has ended, or hand it
// over to work that outlives the request. The guard then leaves it alone.
func Hold(c *gin.Context) *core.Hold {
	for f := frameOf(c); f != nil; f = f.outer {
		if f.hold != nil {
			return f.hold
		}
	}
	return nil
}

// publish lets the handlers of c run under f, with ctx as the context of the
// request, and returns what puts everything back.
func publish(c *gin.Context, ctx context.Context, f *frame) (restore func()) {
	before := c.Request.Context()
	c.Request = c.Request.WithContext(ctx)
	undoFrame := replaceKey(c, frameKey{}, f)
	undoOwner := publishOwner(c, ctx)
	return func() {
		undoOwner()
		undoFrame()
		c.Request = c.Request.WithContext(before)
	}
}

// publishOwner lets c itself, passed on as a context, lead to the holds. Where the
// engine has ContextWithFallback it does so already, and must go on to: an entry of
// ours would hide holds that handlers take themselves.
func publishOwner(c *gin.Context, ctx context.Context) (restore func()) {
	owner := ctx.Value(core.ContextKey)
	if owner == nil || c.Value(core.ContextKey) == owner {
		return func() {}
	}
	return replaceKey(c, core.ContextKey, owner)
}

func replaceKey(c *gin.Context, key, value any) (restore func()) {
	before, had := c.Get(key)
	c.Set(key, value)
	return func() {
		if had {
			c.Set(key, before)
			return
		}
		c.Delete(key)
	}
}
