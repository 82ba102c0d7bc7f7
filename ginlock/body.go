package ginlock

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
)

// lateVariables are those for which a client may let the guard wait.
func lateVariables() []string { return []string{"body", "form"} }

// findKept finds the body that a middleware has read by gin's ShouldBindBodyWith, which
// keeps its bytes for those who bind it again. What is left of it does not come from
// the client any more.
func (x *call) findKept() {
	kept, _ := x.c.Get(gin.BodyBytesKey)
	if b, ok := kept.([]byte); ok && b != nil {
		x.request().KeptBody(b)
		x.buffer()
	}
}

// BeforeWait is part of [aspect.WaitPreparer]: the body is read before waiting, so that
// the server notices a client that leaves.
func (x *call) BeforeWait() (prepare func()) {
	if !hasBody(x.c.Request) {
		return nil
	}
	return x.buffer
}

// buffer reads the body. What goes wrong is told to who needs it: the key, or the
// handler.
func (x *call) buffer() {
	_ = x.request().Buffer() //nolint:errcheck // see above
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// drain reads what nobody has read of the body, so that the answer need not wait for it.
func (x *call) drain(o *aspect.Outcome) {
	if o.Verdict == aspect.VerdictFallback {
		return // it has answered, and may have read it
	}
	if x.values != nil {
		if _, read := x.values.Body(); read {
			return
		}
	}
	drain(x.c)
}
