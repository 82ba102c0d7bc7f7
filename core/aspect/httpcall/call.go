package httpcall

import (
	"context"
	"net/http"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/internal/httpvars"
)

// Call describes one request to [Serve].
type Call struct {
	// Entry has the rules of the route. It is never nil.
	Entry *Entry

	// Origin identifies the source of the rules, such as their table. It stays the same across reloads. Serve
	// passes a request that has passed a guard of the same origin for the same route. nil: no origin.
	Origin any

	// Request is the request as the handlers would get it.
	Request *http.Request

	// Writer is the response as the handlers would get it.
	Writer Writer

	// KeptBody is the body if a middleware has read it and keeps its bytes for later readers; otherwise nil.
	KeptBody []byte

	// Outer is the frame of the guard around this one, nil if there is none. Rerouted says that the request
	// was routed again within Outer, so that it may be for another resource.
	Outer    *Frame
	Rerouted bool

	// Router reads variables and runs handlers. Serve calls it from its own goroutine.
	Router Router
}

// Router does for one request the work that only its router can do. Route returns "" for a request that
// matches no route.
type Router interface {
	httpvars.Host

	// Run runs handlers with ctx as the context of the request, and returns the traces that they left.
	Run(ctx context.Context, h Handlers) Ran

	// Abandoned reports whether the router has reused the parts of the request for another request, because a
	// layer around the guard has answered this one. Serve then touches neither of them again.
	Abandoned() bool
}

// Handlers are the handlers that [Router].Run runs.
type Handlers struct {
	// Fallback is the name of the fallback to run. "" means the handlers behind the guard. Before it runs a
	// fallback, the router aborts the handlers behind the guard.
	Fallback string

	// Frame is the guard around the handlers. nil means the guard around this one, because a
	// fallback holds no lock of this guard.
	Frame *Frame

	// Writer replaces the response while the handlers run. nil keeps the response. The router puts the
	// response back when the handlers have returned or panicked, unless the request is abandoned.
	Writer Writer
}

// Ran is the state in which handlers left a request.
type Ran struct {
	Errors []error // the errors that the handlers reported to the router
	Writer Writer  // the response when they returned, before the router put it back; nil if the request is abandoned
}

// Result is the work that remains for the adapter. The adapter carries it out in the order of the fields.
type Result struct {
	// Passed says that this guard has nothing to do, and that no handler has run. The adapter runs the
	// handlers as if there were no guard. The other fields are then zero.
	Passed bool

	// Abort says that the handlers behind the guard must not run, or must not go on.
	Abort bool

	// Problem is an error for the log, nil if there is none. Its text is safe to show to clients. Cause, which
	// may be nil, explains it and is not safe.
	Problem, Cause error

	// Refusal has to be answered with [Result.Refuse], unless it is nil.
	Refusal *aspect.RefusedError

	// Writer is the response for the layers outside the guard. nil leaves the response as it is.
	Writer Writer
}
