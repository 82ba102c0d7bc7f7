package ginlock

import (
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
)

// frame is one guard around the handlers that run now.
type frame struct {
	outer    *frame
	anew     bool // engine.HandleContext has given the request away, within outer
	endpoint *endpoint
	answerBy time.Time // the zero time if the answer has all the time
	hold     *core.Hold
}

// newFrame makes the frame of a guard that a request meets.
func newFrame(e *endpoint, c *gin.Context) frame {
	outer := frameAround(c)
	if outer == nil {
		return frame{endpoint: e, answerBy: answerBy(c.Request)}
	}
	return frame{outer: outer, anew: frameOf(c) == nil, endpoint: e, answerBy: outer.answerBy}
}

// frameKey is where the innermost frame is found: in the keys of gin's context, which
// engine.HandleContext clears, and in the context of the request.
type frameKey struct{}

// frameOf is the innermost guard since the request was dispatched, be it anew: it may
// be for another resource then, and is no longer what the guards before it have seen.
func frameOf(c *gin.Context) *frame {
	value, _ := c.Get(frameKey{})
	f, _ := value.(*frame) //nolint:errcheck // nil is the answer
	return f
}

// frameAround is the innermost guard of the request, however often it was dispatched.
func frameAround(c *gin.Context) *frame {
	if f := frameOf(c); f != nil || c.Request == nil {
		return f
	}
	f, _ := c.Request.Context().Value(frameKey{}).(*frame) //nolint:errcheck // nil is the answer
	return f
}

// before is the guard around f that saw the request as f does, nil if there is none.
func (f *frame) before() *frame {
	if f.anew {
		return nil
	}
	return f.outer
}

// has reports whether the endpoint is one of the guards, be it from before a reload.
func (f *frame) has(e *endpoint) bool {
	for ; f != nil; f = f.before() {
		if f.endpoint == e || e.origin != nil && f.endpoint.origin == e.origin && f.endpoint.route == e.route {
			return true
		}
	}
	return false
}

// Hold gives the lock under which the handler of c runs: of several the one taken
// last; of further ones [core.Held] tells. It is nil outside a guard and where the
// handler runs without a lock; Release of nil is core.ErrNotHeld.
//
// With [ruleset.Fenced], or with Token in a rule, its Token is larger than that of every holder
// before. A store that is told of it refuses the write of a holder that was paused beyond its lease:
//
//	db.ExecContext(ctx, `UPDATE orders SET paid = true, token = $1 WHERE id = $2 AND token < $1`, ginlock.Hold(c).Token(), id)
//
// Where that changes no row, a later holder has written already.
//
// The handler may release it early, after which its context has ended, or hand it
// over to work that outlives the request. The guard then leaves it alone.
func Hold(c *gin.Context) *core.Hold {
	for f := frameAround(c); f != nil; f = f.outer {
		if f.hold != nil {
			return f.hold
		}
	}
	return nil
}

// enter makes f the innermost frame.
func (f *frame) enter(c *gin.Context) { c.Set(frameKey{}, f) }

// leave puts the frame back that was before.
func (f *frame) leave(c *gin.Context) {
	if before := f.before(); before != nil {
		c.Set(frameKey{}, before)
		return
	}
	c.Delete(frameKey{})
}
