package httpcall

import (
	"context"
	"net/http"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/internal/httpvars"
)

// Call describes an HTTP request that [Serve] handles.
type Call struct {
	// Entry holds the rules of the route. It must not be nil.
	Entry *Entry

	// Origin identifies the source of the rules, such as their table. It stays the same across reloads. If a guard
	// with the same origin already guards the request for the same route, Serve reports [Result.Unguarded]. If Origin
	// is nil, Serve compares the entries only.
	Origin any

	// Request is the request that the handlers would get without the guard. It must not be nil.
	Request *http.Request

	// Writer is the response writer that the handlers would get without the guard. It must not be nil.
	Writer Writer

	// KeptBody is the request body if middleware has already read and cached it. Otherwise it is nil.
	KeptBody []byte

	// Outer is the frame of the enclosing guard, nil if there is none.
	Outer *Frame

	// Rerouted reports whether the handlers of Outer may have routed the request again, possibly to another resource.
	// Serve then applies the guard even if an enclosing guard has the same rules.
	Rerouted bool

	// Router gives Serve access to the router. It must not be nil. Serve calls its methods only on the goroutine that
	// called Serve.
	Router Router
}

// Router gives [Serve] access to the router for one request. Route returns "" for a request that matches no route.
type Router interface {
	httpvars.Host

	// Run runs the handlers that h selects, with ctx as the context of the request. It returns when they return.
	Run(ctx context.Context, h Handlers) RunResult

	// Abandoned reports whether a layer around the guard answered the request while its handlers were still running.
	// The router may already use the request and response objects for another request, so Serve no longer touches
	// them.
	Abandoned() bool
}

// Handlers selects the handlers that [Router].Run runs.
type Handlers struct {
	// Fallback is the name of a fallback. If it is empty, Run runs the handlers that the guard protects. Otherwise Run
	// first makes sure that those handlers do not run, and then runs the fallback.
	Fallback string

	// Frame is the frame of this guard. It is nil for a fallback, which runs without this guard's lock: a router that
	// records the current frame then uses the frame of the enclosing guard.
	Frame *Frame

	// Writer replaces the response writer while the handlers run. If it is nil, they keep the response writer. Run
	// restores the response writer after the handlers return or panic, unless the request is abandoned.
	Writer Writer
}

// RunResult is the result of [Router].Run.
type RunResult struct {
	// Errors are the errors that the handlers reported to the router.
	Errors []error

	// Writer is the response writer that the request had when the handlers returned, before Run restored it. It is nil
	// if the request is abandoned.
	Writer Writer
}

// Result lists what the adapter has to do after [Serve], in the order of the fields.
type Result struct {
	// Unguarded reports that the guard does not apply to the request and that no handler has run. The adapter runs the
	// handlers as if there were no guard. The other fields are then zero.
	Unguarded bool

	// Abort reports that the handlers that the guard protects must not run, or must not continue.
	Abort bool

	// Problem is an error to log, nil if there is none. Clients may see its message.
	Problem error

	// Cause explains Problem in the log, nil if there is nothing to add. Do not show it to clients.
	Cause error

	// Refusal is the reason to refuse the request. If it is not nil, the adapter answers the request by calling
	// [Result.Refuse].
	Refusal *aspect.RefusedError

	// Writer is the response writer for the layers outside the guard. Refuse may replace it. If it is nil, those
	// layers keep their response writer.
	Writer Writer

	logged int // the status that access logs show instead of the status that is sent; 0 if they are the same
}
