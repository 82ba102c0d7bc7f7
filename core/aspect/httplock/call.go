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

// call handles one request of net/http. It implements [httpcall.Router].
type call struct {
	cfg   *config
	entry *httpcall.Entry
	w     httpcall.Writer
	r     *http.Request
	next  http.Handler // the handler that the guard protects
}

var _ httpcall.Router = (*call)(nil)

// serve serves the request under the rules of its entry. origin becomes [httpcall.Call].Origin.
func (c *call) serve(a *aspect.Aspect, origin any) {
	outer := httpcall.FrameOf(c.r.Context())
	result := httpcall.Serve(&httpcall.Call{
		Entry: c.entry, Origin: origin, Request: c.r, Writer: c.w, Router: c,
		Outer: outer, Rerouted: outer != nil && !outer.SameRequest(c.r), // a handler may have passed another request to a mux
	})
	if result.Unguarded {
		c.next.ServeHTTP(c.w, c.r)
		return
	}
	if isMisconfiguration(result.Problem) {
		c.entry.WarnOnce(a, result.Problem)
	}
	if result.Refusal != nil {
		result.Refuse(func(w httpcall.Writer, refusal *aspect.RefusedError) { c.cfg.writeError(w, c.r, refusal) })
	}
}

// isMisconfiguration reports whether a problem means that the route is misconfigured. Observers were already notified
// of the other problems: refusals, and keys that need a value which the program does not provide.
func isMisconfiguration(problem error) bool {
	_, refused := errors.AsType[*aspect.RefusedError](problem)
	_, noKey := errors.AsType[*keyexpr.EvalError](problem)
	return problem != nil && !refused && !noKey
}

// PathValue implements [httpvars.Host].
func (c *call) PathValue(name string) string { return c.r.PathValue(name) }

// Route implements [httpvars.Host].
func (c *call) Route() string { return c.entry.Endpoint.Path }

// ClientIP implements [httpvars.Host].
func (c *call) ClientIP() string {
	if address := c.cfg.clientIP; address != nil {
		return address(c.r)
	}
	return httpvars.NetHTTP(c.r).ClientIP()
}

// Registered implements [httpvars.Host].
func (c *call) Registered(i int) (any, error) { return c.cfg.variables[i](c.r) }

// Abandoned implements [httpcall.Router]. net/http never reuses a request.
func (c *call) Abandoned() bool { return false }

// Run implements [httpcall.Router]. It copies the body and the parsed forms back to the original request, so that outer
// handlers see them and net/http removes the files of a multipart form.
func (c *call) Run(ctx context.Context, h httpcall.Handlers) httpcall.RunResult {
	handler, w, r := c.next, c.w, c.r.WithContext(ctx)
	if h.Fallback != "" {
		handler = c.cfg.fallbacks[h.Fallback]
	} else {
		h.Frame.RecordRequest(c.r)
	}
	if h.Writer != nil {
		w = h.Writer
	}
	defer func() {
		c.r.Body, c.r.Form, c.r.PostForm, c.r.MultipartForm = r.Body, r.Form, r.PostForm, r.MultipartForm
	}()
	handler.ServeHTTP(w, r)
	return httpcall.RunResult{Writer: w}
}
