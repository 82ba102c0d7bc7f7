package httpvars

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/interlock-go/interlock/keyexpr"
)

// KeptBody tells that a middleware has read the body before, and keeps its bytes where
// handlers may read them again, as gin's ShouldBindBodyWith does. Call it before any
// value is asked for. A request whose Body has nothing left gets these bytes again. One
// whose Body has others, which somebody has put in, keeps them; but a handler may read
// either, so that expressions over the body fail with [keyexpr.ReasonInternal]. Nil is
// no kept body.
func (q *Request) KeptBody(content []byte) { q.kept = content }

// consumed reports whether nothing was left of a body that is kept elsewhere.
func (q *Request) consumed(content []byte, err error) bool {
	return q.kept != nil && len(content) == 0 && (err == nil || errors.Is(err, http.ErrBodyReadAfterClose))
}

// checkKept compares what is left of a body with what is kept elsewhere.
func (q *Request) checkKept(content []byte) error {
	if q.kept == nil || bytes.Equal(content, q.kept) {
		return nil
	}
	return &keyexpr.EvalError{
		Reason: keyexpr.ReasonInternal,
		Detail: "has two bodies: a middleware replaced the Body after another one had kept the bytes of the first, and handlers may read either; " +
			"replace what is kept too (with Gin c.Set(gin.BodyBytesKey, …)), or do it before",
	}
}
