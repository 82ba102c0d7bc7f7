package ginlock

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
)

// frame is one guard around the handlers that run now.
type frame struct {
	outer    *frame
	endpoint *endpoint
	answerBy time.Time // the zero time if the answer has all the time
	hold     *core.Hold
}

// newFrame makes the frame of a guard within another, which may be nil.
func newFrame(e *endpoint, r *http.Request, outer *frame) frame {
	f := frame{outer: outer, endpoint: e}
	if outer != nil {
		f.answerBy = outer.answerBy
	} else {
		f.answerBy = answerBy(r)
	}
	return f
}

// frameKey is where the innermost frame of a request is found.
type frameKey struct{}

func frameOf(c *gin.Context) *frame {
	value, _ := c.Get(frameKey{})
	if f, ok := value.(*frame); ok {
		return f
	}
	return nil
}

// has reports whether the endpoint is one of the guards, be it from before a reload.
func (f *frame) has(e *endpoint) bool {
	for ; f != nil; f = f.outer {
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

// enter makes f the innermost frame.
func (f *frame) enter(c *gin.Context) { c.Set(frameKey{}, f) }

// leave puts the frame back that was before.
func (f *frame) leave(c *gin.Context) {
	if f.outer != nil {
		c.Set(frameKey{}, f.outer)
		return
	}
	c.Delete(frameKey{})
}
