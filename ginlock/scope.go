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

// leave puts the context back. What handlers read from the request stays with it,
// so that outer handlers see it and net/http removes the files of a multipart form.
func (s requestScope) leave(c *gin.Context) {
	if c.Request != s.during { // a handler replaced the request and left it so
		c.Request = c.Request.WithContext(s.before.Context())
		return
	}
	s.before.Body = s.during.Body
	s.before.Form, s.before.PostForm, s.before.MultipartForm = s.during.Form, s.during.PostForm, s.during.MultipartForm
	c.Request = s.before
}

// ownerScope is the time in which gin's own context, passed on as a
// [context.Context], leads to the holds.
type ownerScope struct {
	before     any
	had, added bool
}

// enterOwner lets c lead to the holds of ctx. Where the engine has
// ContextWithFallback it does so already, and must go on to: an entry of ours would
// hide holds that handlers take themselves.
func enterOwner(ctx context.Context, c *gin.Context) (s ownerScope) {
	owner := ctx.Value(core.ContextKey)
	if owner == nil || c.Value(core.ContextKey) == owner {
		return s
	}
	s.added = true
	s.before, s.had = c.Get(core.ContextKey)
	c.Set(core.ContextKey, owner)
	return s
}

func (s ownerScope) leave(c *gin.Context) {
	switch {
	case s.had:
		c.Set(core.ContextKey, s.before)
	case s.added:
		c.Delete(core.ContextKey)
	}
}
