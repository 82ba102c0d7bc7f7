package httpcall

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// Serve handles one request under the rules of its route. It runs the handlers that the guard protects, or a fallback, or
// prepares another answer. If no handler has read the body, Serve reads the rest of it. If the guard does not apply to the
// request, Serve only reports [Result.Unguarded]. It refuses a request whose entry has an error.
func Serve(call *Call) Result {
	x := &exchange{Call: *call, frame: newFrame(call)}
	if x.frame.alreadyGuarded() || isPreflight(call.Request) && x.methodUnnamed(http.MethodOptions) {
		return Result{Unguarded: true}
	}
	x.body.request, x.body.original = call.Request, call.Request.Body
	x.body.limit, x.body.room = call.Entry.Extra.maxBody, call.Entry.Extra.room
	if err := x.frame.problem(); err != nil {
		x.body.drain(call.Writer)
		return x.answer().refuse(aspect.Misconfigured(call.Entry.Endpoint, err))
	}
	defer x.leaveBody()
	x.adoptKeptBody()
	outcome := call.Entry.Point.Run(call.Request.Context(), x)
	if call.Router.Abandoned() {
		return Result{}
	}
	if !x.entered && outcome.Verdict != aspect.VerdictFallback { // a fallback may have read the body
		x.drainBody()
	}
	result := x.answer().result(&outcome)
	result.Abort = result.Abort || !x.entered
	return result
}

// exchange handles one request under the rules of one route. It implements [aspect.Call].
type exchange struct {
	Call
	frame Frame

	values   *httpvars.Request // nil until a rule needs a variable
	body     heldBody
	entered  bool          // the handlers that the guard protects were called
	replaced bool          // handlers replaced the body of the request
	buffer   *buffer       // holds the response back; nil if the route has no buffer
	header   http.Header   // a copy made before the handlers ran; nil with a buffer, or without a lock
	inner    *sealedWriter // the response writer of an inner guard that has answered into buffer; nil if none has
}

// newFrame returns the frame of a guard for one request.
func newFrame(c *Call) Frame {
	f := Frame{outer: c.Outer, rerouted: c.Rerouted, caller: c.Request.Context(), entry: c.Entry, origin: c.Origin}
	if f.outer == nil {
		f.answerBy = answerBy(c.Request)
	} else {
		f.answerBy = f.outer.answerBy
	}
	return f
}

// answer returns an answer for the current state of the exchange.
func (x *exchange) answer() answer {
	return answer{w: x.Writer, router: x.Router, entered: x.entered, buffer: x.buffer, header: x.header, inner: x.inner}
}

// variables returns the variables of the request.
func (x *exchange) variables() *httpvars.Request {
	if x.values == nil {
		x.values = x.Entry.Extra.Vars.Request(x.Request, x.Router)
		if method := x.Entry.Endpoint.Method; method != "*" {
			x.values.Matched(method)
		}
	}
	return x.values
}

// adoptKeptBody makes the variables read the cached body. The client has already sent such a body,
// so reading it does not block.
func (x *exchange) adoptKeptBody() {
	if x.KeptBody != nil {
		x.variables().KeptBody(x.KeptBody)
		_ = x.variables().Buffer() //nolint:errcheck // the key reports the error, or the handler gets it
	}
}

// Env implements [aspect.Call].
func (x *exchange) Env(context.Context) keyexpr.Env { return x.variables() }

// AnswerBy implements an optional method of [aspect.Call]. A request whose body would occupy its connection has no time to
// wait.
func (x *exchange) AnswerBy() time.Time {
	if x.occupies() && x.body.tooLarge() {
		return time.Now()
	}
	return x.frame.answerBy
}

// EndWait implements an optional method of [aspect.Call].
func (x *exchange) EndWait(end func(reason error)) bool {
	if !x.occupies() {
		return false
	}
	x.body.endWith(end)
	return true
}

// occupies reports whether the request has a body that would occupy the window of a connection during a wait.
func (x *exchange) occupies() bool {
	_, read := x.bodyRead()
	return !read && hasBody(x.Request) && x.body.shareable()
}

// Abandoned implements an optional method of [aspect.Call].
func (x *exchange) Abandoned() bool { return x.Router.Abandoned() }

// BeforeWait implements an optional method of [aspect.Call]. It reads the body ahead; see [heldBody]. An HTTP/1 server
// notices that a client has left only after the body was read, so prepare returns when the body is read. Over HTTP/2 the
// request waits at once. A body that was read for a key stays in memory during the wait, so prepare reserves room for it.
// A request without a version does not come from net/http, but from a server that has read the body.
func (x *exchange) BeforeWait() (prepare func(ctx context.Context) error) {
	if content, read := x.bodyRead(); read {
		return func(context.Context) error {
			return x.body.keep(int64(len(content)), slices.ContainsFunc(lateVariables(), x.Entry.Point.Uses))
		}
	}
	switch {
	case !hasBody(x.Request), x.Request.ProtoMajor < 1:
		return nil
	case x.body.shareable():
		return x.body.readAlong
	case x.Request.ContentLength > x.body.limit:
		return nil
	default:
		return x.body.readAhead
	}
}

// bodyRead returns the body if a key or a condition has read it.
func (x *exchange) bodyRead() (content []byte, read bool) {
	if x.values == nil {
		return nil, false
	}
	return x.values.Body()
}

// isWhole reports whether the whole body is in memory.
func (x *exchange) isWhole() bool {
	_, read := x.bodyRead()
	return read || x.body.ahead != nil && x.body.ahead.complete()
}

// drainBody reads the rest of the body, which no handler reads, and gives back its room.
func (x *exchange) drainBody() {
	if !x.isWhole() {
		x.body.drain(x.Writer)
	}
	x.body.stop()
}

// leaveBody ends reading ahead. If the request has a body of the guard, and a part of the original is unread, it gives the
// original back.
func (x *exchange) leaveBody() {
	x.body.leave(x.Writer)
	if !x.isWhole() && !x.replaced {
		x.body.restore()
	}
}

// Handle implements [aspect.Call].
func (x *exchange) Handle(ctx context.Context, g aspect.Grant) error {
	x.body.stop()
	x.entered, x.frame.hold = true, g.Hold
	endpoint, h := &x.Entry.Extra, Handlers{Frame: &x.frame}
	if endpoint.Buffer > 0 {
		x.buffer = newBuffer(x.Writer, endpoint.Buffer, func() error {
			if !endpoint.TakesBack {
				return nil
			}
			return LossOf(ctx)
		})
		h.Writer = x.buffer
	} else if g.Hold != nil {
		x.header = x.Writer.Header().Clone()
	}
	x.markHeader(g, h.Writer)
	ran := x.run(context.WithValue(ctx, frameKey{}, &x.frame), h)
	if x.buffer == nil {
		x.Writer = ran.Writer
	} else {
		x.inner, _ = ran.Writer.(*sealedWriter) //nolint:errcheck // nil is the answer
	}
	return x.errorOf(ctx, ran)
}

// run runs handlers. It records whether they replaced the body of the request.
func (x *exchange) run(ctx context.Context, h Handlers) RunResult {
	x.body.keepType()
	given := x.Request.Body
	ran := x.Router.Run(ctx, h)
	x.replaced = !x.Router.Abandoned() && !sameValue(given, x.Request.Body)
	return ran
}

// markHeader adds the lock status and the fencing token to the header of the response.
func (x *exchange) markHeader(g aspect.Grant, replaced Writer) {
	header := x.Writer.Header()
	if replaced != nil {
		header = replaced.Header()
	}
	if g.Unlocked == aspect.UnlockedProceed {
		header.Set(failpolicy.StatusHeader, failpolicy.MarkUnlocked)
	}
	if g.Token != 0 && x.Entry.Extra.ShowToken {
		header.Set(failpolicy.TokenHeader, strconv.FormatInt(g.Token, 10))
	}
}

// Fallback implements [aspect.Call].
func (x *exchange) Fallback(ctx context.Context, name string) error {
	if x.Router.Abandoned() {
		return aspect.ErrHandlerFailed
	}
	x.body.stop()
	if o, _ := aspect.OutcomeFrom(ctx); x.answer().routerAnswers(&o) {
		return aspect.ErrHandlerFailed
	}
	ran := x.run(ctx, Handlers{Fallback: name})
	x.Writer = ran.Writer
	return x.errorOf(ctx, ran)
}

// errorOf returns the error of the handlers, nil if they succeeded. It considers the errors that they reported and their
// response. An abandoned request counts as failed, because its response did not reach the client.
func (x *exchange) errorOf(ctx context.Context, ran RunResult) error {
	if ran.Writer == nil {
		return aspect.ErrHandlerFailed
	}
	if lost := LossOf(ctx); lost != nil {
		if !hasAnswer(ran.Writer) || x.buffer != nil && x.buffer.cut != nil {
			return lost
		}
		for _, err := range ran.Errors {
			if errors.Is(err, ctx.Err()) || errors.Is(err, lost) {
				return lost
			}
		}
	}
	if !succeeded(ran.Writer.Status()) || len(ran.Errors) > 0 {
		return aspect.ErrHandlerFailed
	}
	if x.methodUnnamed(http.MethodHead) || x.methodUnnamed(http.MethodOptions) || x.methodUnnamed(http.MethodTrace) {
		aspect.CancelDebounce(ctx) // the request only asked about its resource
	}
	return nil
}

// succeeded reports whether a status means that the operation was done. Redirections other than 303 send a form
// back or ask for a login, and a 304 means that nothing was done.
func succeeded(status int) bool {
	return status >= http.StatusOK && status < http.StatusMultipleChoices || status == http.StatusSeeOther
}

// hasAnswer reports whether handlers have answered. A status other than 200 is enough.
func hasAnswer(w Writer) bool { return w.Written() || w.Status() != http.StatusOK }

// LossOf returns the loss that canceled the context of a hold, nil if there was none.
func LossOf(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, core.ErrLost) || errors.Is(cause, core.ErrClosed) {
		return cause
	}
	return nil
}

// isPreflight reports whether a request is a CORS preflight: a browser asks whether it may send another request. Rules
// apply to that other request, unless they name OPTIONS.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// methodUnnamed reports whether the request has the method, the router has matched that method, and no rule
// names it. Rules for any method do not name it. Rules for GET do not name HEAD.
func (x *exchange) methodUnnamed(method string) bool {
	if x.Request.Method != method || x.Entry.Err != nil {
		return false
	}
	switch routed := x.Entry.Endpoint.Method; {
	case routed == "*", routed == http.MethodGet && method == http.MethodHead:
		return true
	case routed != method:
		return false // a middleware changed the method
	default:
		return x.Entry.Extra.AnyMethod || !slices.ContainsFunc(x.Entry.Rules(), func(r *ruleset.Resolved) bool { return r.Endpoint.Method == method })
	}
}
