package httpcall

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// lateVariables are those for which a client may let the guard wait.
func lateVariables() []string { return []string{"body", "form"} }

// Serve serves a request under the rules of its route, which are not nil. origin tells
// where they are from, such as their table: a request that has passed a guard of the same
// origin, or the same entry, for the same route is not served again, and served is false:
// its handlers are to be run as if there were no guard.
func Serve(entry *Entry, origin any, r Router) (served bool) {
	x := &exchange{Frame: newFrame(entry, origin, r), router: r}
	if x.passed() || isPreflight(r.Request()) && x.unnamed(http.MethodOptions) {
		return false
	}
	if err := x.unusable(); err != nil {
		drain(r)
		x.refuse(aspect.Misconfigured(entry.Endpoint, err))
		return true
	}
	x.run()
	return true
}

// exchange is one request under one endpoint: the [aspect.Call] of HTTP.
type exchange struct {
	Frame
	router  Router
	values  *httpvars.Request // nil until needed
	buffer  *buffer           // the response, kept back; nil without
	header  http.Header       // as it was before the handlers, without a buffer
	entered bool              // the handlers were called
	inner   *final            // what a guard further in has settled, behind buffer
	ahead   *ahead            // the body, read while the request waits; nil if it is not
	taken   int64             // of the room for bodies
}

func (x *exchange) run() {
	if kept := x.router.KeptBody(); kept != nil { // what is left of it does not come from the client any more
		x.request().KeptBody(kept)
		_ = x.request().Buffer() //nolint:errcheck // the key gets the error, or the handler
	}
	defer x.stopsWaiting()
	outcome := x.entry.Point.Run(x.router.Request().Context(), x)
	if x.router.Abandoned() {
		return
	}
	if !x.entered {
		x.router.Abort()
		x.drain(&outcome)
	}
	x.answer(&outcome)
}

// request are the values of the request.
func (x *exchange) request() *httpvars.Request {
	if x.values == nil {
		x.values = x.entry.Extra.Vars.Request(x.router.Request(), x.router)
		if method := x.entry.Endpoint.Method; method != "*" {
			x.values.Matched(method)
		}
	}
	return x.values
}

// Env is part of [aspect.Call].
func (x *exchange) Env(context.Context) keyexpr.Env { return x.request() }

// AnswerBy is an optional method of an [aspect.Call].
func (x *exchange) AnswerBy() time.Time { return x.answerBy }

// Abandoned is an optional method of an [aspect.Call].
func (x *exchange) Abandoned() bool { return x.router.Abandoned() }

// Handle is part of [aspect.Call].
func (x *exchange) Handle(ctx context.Context, g aspect.Grant) error {
	x.stopsWaiting()
	x.entered = true
	x.hold = g.Hold
	if limit := x.entry.Extra.Buffer; limit > 0 {
		x.buffer = newBuffer(x.router.Writer(), limit, func() error {
			if !x.entry.Extra.TakesBack {
				return nil
			}
			return lossOf(ctx)
		})
		x.router.SetWriter(x.buffer)
		defer x.putWriterBack()
	} else if g.Hold != nil {
		x.header = x.router.Writer().Header().Clone()
	}
	header := x.router.Writer().Header()
	if g.Unlocked == aspect.UnlockedProceed {
		header.Set(failpolicy.StatusHeader, failpolicy.MarkUnlocked)
	}
	if g.Token != 0 && x.entry.Extra.ShowToken {
		header.Set(failpolicy.TokenHeader, strconv.FormatInt(g.Token, 10))
	}
	reported := x.router.Handle(context.WithValue(ctx, frameKey{}, &x.Frame), &x.Frame)
	return x.judge(ctx, reported)
}

// putWriterBack ends the keeping back. It remembers an answer that a guard further in
// has settled, for whom the writer is taken away.
func (x *exchange) putWriterBack() {
	if x.router.Abandoned() {
		return
	}
	x.inner, _ = x.router.Writer().(*final) //nolint:errcheck // nil is the answer
	x.router.SetWriter(x.buffer.Writer)
}

// Fallback is part of [aspect.Call].
func (x *exchange) Fallback(ctx context.Context, name string) error {
	if x.router.Abandoned() {
		return aspect.ErrHandlerFailed
	}
	x.stopsWaiting()
	x.router.Abort()
	if o, _ := aspect.OutcomeFrom(ctx); x.unrouted(&o) {
		return aspect.ErrHandlerFailed
	}
	return x.judge(ctx, x.router.Fallback(ctx, name))
}

// judge tells how the handlers went, from the errors and the answer that they left
// behind. An answer of an abandoned request has not reached its client.
func (x *exchange) judge(ctx context.Context, reported []error) error {
	if x.router.Abandoned() {
		return aspect.ErrHandlerFailed
	}
	if lost := lossOf(ctx); lost != nil {
		if !x.answered() || x.buffer != nil && x.buffer.cut != nil {
			return lost
		}
		for _, err := range reported {
			if errors.Is(err, ctx.Err()) || errors.Is(err, lost) {
				return lost
			}
		}
	}
	if !succeeded(x.router.Writer().Status()) || len(reported) > 0 {
		return aspect.ErrHandlerFailed
	}
	if x.asks() {
		aspect.CancelDebounce(ctx)
	}
	return nil
}

// succeeded reports whether a status says that the operation was done. Other redirections send a
// form back, or ask for a login; after 304 nothing was done.
func succeeded(status int) bool {
	return status >= http.StatusOK && status < http.StatusMultipleChoices || status == http.StatusSeeOther
}

// answered reports whether the handlers have given an answer, be it a status only.
func (x *exchange) answered() bool {
	w := x.router.Writer()
	return w.Written() || w.Status() != http.StatusOK
}

// lossOf is why the context of a hold ended under the handler, nil if it did not.
func lossOf(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, core.ErrLost) || errors.Is(cause, core.ErrClosed) {
		return cause
	}
	return nil
}
