package ginlock

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
)

// Hold gives the lock under which the handler of c runs: of several the one taken
// last; of further ones [core.Held] tells. It is nil outside a guard and where the
// handler runs without a lock; Release of nil is core.ErrNotHeld.
//
// With [ruleset.Fenced], or with Token in a rule, its Token is larger than that of every holder
// before. A store that knows it refuses the write of a holder that was paused beyond its lease:
//
//	db.ExecContext(ctx, `UPDATE orders SET paid = true, token = $1 WHERE id = $2 AND token < $1`, ginlock.Hold(c).Token(), id)
//
// Where that changes no row, a later holder has written already.
//
// The handler may release it early, after which its context has ended (see [Caller]), or hand it
// over to work that outlives the request. The guard then leaves it alone.
func Hold(c *gin.Context) *core.Hold {
	f, _ := outer(c)
	return f.Hold()
}

// Caller gives the context of the request as it came to the guard whose lock [Hold] gives:
// what a handler goes on with after it released that early, when the request's own context
// has ended. Without a lock it is the request's own.
func Caller(c *gin.Context) context.Context {
	f, _ := outer(c)
	return f.Caller(c.Request.Context())
}

// frameKey is where the innermost frame is found in the keys of gin's context, which
// engine.HandleContext clears. The context of the request leads to it, too.
type frameKey struct{}

// frameOf is the innermost guard since the request was dispatched, be it anew: it may
// be for another resource then, and is no longer what the guards before it have seen.
func frameOf(c *gin.Context) *httpcall.Frame {
	if r := routerOf(c); r != nil {
		return r.frame
	}
	return nil
}

// routerOf is what the innermost guard has entered in the keys of gin's context, nil if none has.
func routerOf(c *gin.Context) *router {
	value, _ := c.Get(frameKey{})
	r, _ := value.(*router) //nolint:errcheck // nil is the answer
	return r
}

// requestScope is the time in which the request of a gin.Context has another
// context.
type requestScope struct {
	before, during *http.Request
}

func enterRequest(ctx context.Context, c *gin.Context) requestScope {
	s := requestScope{before: c.Request, during: c.Request.WithContext(ctx)}
	c.Request = s.during
	return s
}

// leave puts the context back, and returns the request that c has then. What handlers read from the
// request stays with it, so that outer handlers see it and net/http removes the files of a multipart form.
func (s requestScope) leave(c *gin.Context) *http.Request {
	if c.Request != s.during { // a handler replaced the request and left it so
		c.Request = c.Request.WithContext(s.before.Context())
		return c.Request
	}
	s.before.Body = s.during.Body
	s.before.Form, s.before.PostForm, s.before.MultipartForm = s.during.Form, s.during.PostForm, s.during.MultipartForm
	c.Request = s.before
	return c.Request
}

// enterOwner lets gin's own context, passed on as a [context.Context], lead to the holds of
// ctx until leave. Where the engine has ContextWithFallback it does so already, and must go
// on to: an entry of ours would hide holds that handlers take themselves.
func enterOwner(ctx context.Context, c *gin.Context) (leave func()) {
	owner := ctx.Value(core.ContextKey)
	if owner == nil || c.Value(core.ContextKey) == owner {
		return func() {}
	}
	return enterKey(c, core.ContextKey, owner)
}

// enterKey gives a key of gin's context a value until leave.
func enterKey(c *gin.Context, key, value any) (leave func()) {
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
