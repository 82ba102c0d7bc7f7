package httplock

import (
	"context"
	"errors"
	"net/http"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/keyexpr"
)

// call is one request of net/http: the [httpcall.Router].
type call struct {
	guard *Guard
	entry *httpcall.Entry
	w     httpcall.Writer
	r     *http.Request
	next  http.Handler
}

var _ httpcall.Router = (*call)(nil)

// PathValue implements [httpvars.Host].
func (c *call) PathValue(name string) string { return c.r.PathValue(name) }

// Route implements [httpvars.Host].
func (c *call) Route() string { return c.entry.Endpoint.Path }

// ClientIP implements [httpvars.Host].
func (c *call) ClientIP() string {
	if address := c.guard.cfg.clientIP; address != nil {
		return address(c.r)
	}
	return httpvars.NetHTTP(c.r).ClientIP()
}

// Registered implements [httpvars.Host].
func (c *call) Registered(i int) (any, error) { return c.guard.cfg.variables[i](c.r) }

// Request implements [httpcall.Router].
func (c *call) Request() *http.Request { return c.r }

// Writer implements [httpcall.Router].
func (c *call) Writer() httpcall.Writer { return c.w }

// SetWriter implements [httpcall.Router].
func (c *call) SetWriter(w httpcall.Writer) { c.w = w }

// KeptBody implements [httpcall.Router]: net/http keeps none.
func (c *call) KeptBody() []byte { return nil }

// Outer implements [httpcall.Router]. Another request, such as one that a handler makes and
// gives to a mux, is for another resource.
func (c *call) Outer() (outer *httpcall.Frame, anew bool) {
	outer = httpcall.FrameOf(c.r.Context())
	return outer, outer != nil && !outer.Saw(c.r)
}

// Handle implements [httpcall.Router].
func (c *call) Handle(ctx context.Context, inner *httpcall.Frame) []error {
	inner.HandsOver(c.r)
	return c.run(c.next, ctx)
}

// Fallback implements [httpcall.Router].
func (c *call) Fallback(ctx context.Context, name string) []error {
	return c.run(c.guard.cfg.fallbacks[name], ctx)
}

// run runs a handler with another context. What it parses of the body comes back to the
// request, so that outer handlers see it and net/http removes the files of a multipart
// form.
func (c *call) run(h http.Handler, ctx context.Context) []error { //nolint:revive // the handler is what runs
	r := c.r.WithContext(ctx)
	defer func() {
		c.r.Body, c.r.Form, c.r.PostForm, c.r.MultipartForm = r.Body, r.Form, r.PostForm, r.MultipartForm
	}()
	h.ServeHTTP(c.w, r)
	return nil
}

// Abandoned implements [httpcall.Router]: net/http gives no request the parts of another.
func (c *call) Abandoned() bool { return false }

// Abort implements [httpcall.Router]: a handler that is not run does not run.
func (c *call) Abort() {}

// WriteError implements [httpcall.Router].
func (c *call) WriteError(refusal *aspect.RefusedError) { c.guard.cfg.writeError(c.w, c.r, refusal) }

// Report implements [httpcall.Router]. Of a refusal, and of a key that the program keeps
// from being made, observers know already. What is left is that a route cannot work, of
// which they are warned at its first request: clients are told that it is misconfigured,
// and nothing else.
func (c *call) Report(err, _ error) {
	_, refused := errors.AsType[*aspect.RefusedError](err)
	if _, noKey := errors.AsType[*keyexpr.EvalError](err); !refused && !noKey {
		c.entry.WarnOnce(c.guard.aspect, err)
	}
}
