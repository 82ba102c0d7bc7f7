package httpcall

import (
	"context"
	"net/http"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/internal/httpvars"
)

// Router is one request, as its router has it. Its methods are called from the
// goroutine of [Serve]. Route is "" for a request that matches no route.
type Router interface {
	httpvars.Host

	// Request is the request as the handlers would get it.
	Request() *http.Request

	// Writer and SetWriter are the response as the handlers would get it.
	Writer() Writer
	SetWriter(w Writer)

	// KeptBody is the body, if a middleware has read it and keeps its bytes for those
	// who read it again; else nil.
	KeptBody() []byte

	// Outer is the frame of the guard around this one, nil if there is none. anew is
	// true if the request was routed again since: then it may be for another resource.
	Outer() (outer *Frame, anew bool)

	// Handle runs the handlers behind the guard, which get ctx as the context of the
	// request, and returns the errors that they reported, in routers that know of such.
	Handle(ctx context.Context, inner *Frame) (reported []error)

	// Fallback likewise runs the fallback of a name.
	Fallback(ctx context.Context, name string) (reported []error)

	// Abandoned reports whether the router has given its parts to another request, because a
	// layer around the guard has answered this one. Then no other method is called.
	Abandoned() bool

	// Abort keeps the handlers behind the guard from running. It may be called twice.
	Abort()

	// WriteError answers for a refusal; Retry-After is set already. It may leave that
	// to somebody else, by writing nothing.
	WriteError(refusal *aspect.RefusedError)

	// Report tells the log of an error whose text is fit for clients, with a reason
	// that is not, or nil.
	Report(err, reason error)
}
