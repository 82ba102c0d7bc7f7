package httpcall

import (
	"context"
	"net/http"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/internal/httpvars"
)

// Call describes one request to [Serve].
type Call struct {
	// Entry holds the rules of the route. It is never nil.
	Entry *Entry

	// Origin identifies the source of the rules, such as their table. It stays the same across reloads. If the
	// request has already passed a guard with the same origin for the same route, Serve passes it. nil: no origin.
	Origin any

	// Request is the request that the handlers would get without the guard.
	Request *http.Request

	// Writer is the response that the handlers would get without the guard.
	Writer Writer

	// KeptBody is the body if a middleware read it and keeps its bytes for later readers; otherwise nil.
	KeptBody []byte

	// Outer is the frame of the guard around this one, nil if there is none. Rerouted reports that the request
	// was routed again within Outer, so it may be for another resource.
	Outer    *Frame
	Rerouted bool

	// Router reads variables and runs handlers. Serve calls it from its own goroutine.
	Router Router
}

// Router does the work for one request that only the router can do. Route returns "" for a request that
// matches no route.
type Router interface {
	httpvars.Host

	// Run runs handlers with ctx as the context of the request and returns their results.
	Run(ctx context.Context, h Handlers) Ran

	// Abandoned reports whether the router may have reused the request and response objects for another request,
	// because a layer around the guard answered this one. Serve then no longer touches either of them.
	Abandoned() bool
}

// Handlers are the handlers that [Router].Run runs.
type Handlers struct {
	// Fallback is the name of the fallback to run. "" means the handlers behind the guard. Before it runs a
	// fallback, the router aborts the handlers behind the guard.
	Fallback string

	// Frame is the frame of the guard around the handlers. It is nil for a fallback, which holds no lock of this
	// guard: its guard is the one around this guard.
	Frame *Frame

	// Writer replaces the response while the handlers run. nil keeps the response. The router restores the
	// response after the handlers return or panic, unless the request is abandoned.
	Writer Writer
}

// Ran is the result of a run of handlers.
type Ran struct {
	Errors []error // the errors that the handlers reported to the router
	Writer Writer  // the response when they returned, before the router restored it; nil if the request is abandoned
}

// Result is the work that remains for the adapter. The adapter carries it out in the order of the fields.
type Result struct {
	// Passed reports that the guard does nothing for this request and that no handler has run yet. The adapter runs
	// the handlers as if there were no guard. The other fields are then zero.
	Passed bool

	// Abort reports that the handlers behind the guard must not run, or must not continue.
	Abort bool

	// Problem is an error for the log, nil if there is none. Its message is safe to show to clients. Cause, which
	// may be nil, explains it and is not safe.
	Problem, Cause error

	// Refusal is the refusal to answer with [Result.Refuse], nil if there is none.
	Refusal *aspect.RefusedError

	// Writer is the response for the layers outside the guard. nil leaves the response as it is.
	Writer Writer
}
