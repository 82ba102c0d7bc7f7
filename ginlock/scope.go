package ginlock

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
)

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
