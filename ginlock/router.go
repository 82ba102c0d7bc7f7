package ginlock

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
)

// router is one request of Gin: the [httpcall.Router].
type router struct {
	c   *gin.Context
	cfg *config
}

var _ httpcall.Router = router{}

func (r router) PathValue(name string) string { return r.c.Param(name) }

func (r router) Route() string { return r.c.FullPath() }

func (r router) ClientIP() string {
	if address := r.cfg.clientIP; address != nil {
		return address(r.c)
	}
	return r.c.ClientIP()
}

func (r router) Registered(i int) (any, error) { return r.cfg.variables[i](r.c) }

func (r router) Request() *http.Request { return r.c.Request }

func (r router) Writer() httpcall.Writer { return r.c.Writer }

func (r router) SetWriter(w httpcall.Writer) { r.c.Writer = w }

// KeptBody is the body that a middleware has read by gin's ShouldBindBodyWith.
func (r router) KeptBody() []byte {
	kept, _ := r.c.Get(gin.BodyBytesKey)
	body, _ := kept.([]byte) //nolint:errcheck // nil is the answer
	return body
}

// Outer implements [httpcall.Router]. A request that engine.HandleContext has given
// away is routed again: gin's keys are cleared then, the context of the request is not.
func (r router) Outer() (outer *httpcall.Frame, anew bool) {
	if f := frameOf(r.c); f != nil || r.c.Request == nil {
		return f, false
	}
	return httpcall.FrameOf(r.c.Request.Context()), true
}

func (r router) Handle(ctx context.Context, inner *httpcall.Frame) []error {
	defer enterRequest(ctx, r.c).leave(r.c)
	defer enterOwner(ctx, r.c)()
	defer enterKey(r.c, frameKey{}, inner)()
	return r.reported(r.c.Next)
}

func (r router) Fallback(ctx context.Context, name string) []error {
	defer enterRequest(ctx, r.c).leave(r.c)
	return r.reported(func() { r.cfg.fallbacks[name](r.c) })
}

// reported are the errors that came to c.Errors while something ran. Where those from
// before are gone, as after engine.HandleContext, it is all of them.
func (r router) reported(run func()) (errs []error) {
	n, last := len(r.c.Errors), r.c.Errors.Last()
	run()
	added := r.c.Errors
	if n <= len(added) && (n == 0 || added[n-1] == last) {
		added = added[n:]
	}
	for _, e := range added {
		errs = append(errs, e.Err)
	}
	return errs
}

func (r router) Abort() { r.c.Abort() }

func (r router) WriteError(refusal *aspect.RefusedError) { r.cfg.writeError(r.c, refusal) }

// Report puts an error into c.Errors, with the reason as its Meta.
func (r router) Report(err, reason error) {
	reported := r.c.Error(err)
	if reason != nil {
		_ = reported.SetMeta(&loggedReason{reason}) //nolint:errcheck // gives back what it was given
	}
}

// loggedReason is a reason that gin's logger prints. gin.ErrorLogger, which sends errors to
// clients, makes {} of it.
type loggedReason struct{ reason error }

// String is the text of the reason.
func (l *loggedReason) String() string { return l.reason.Error() }
