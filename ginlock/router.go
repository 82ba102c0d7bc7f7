package ginlock

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
)

// router is one request of Gin: the [httpcall.Router].
//
// The engine gives c to another request as soon as ServeHTTP returns. A middleware that answers and
// returns while its handlers run, such as gin-contrib/timeout, leaves them with it. So c is touched
// only while [router.Abandoned] is false.
type router struct {
	c       *gin.Context
	cfg     *config
	request *http.Request   // that c carries, unless handlers run
	frame   *httpcall.Frame // of the handlers that run
	aborted bool            // before the guard, or by it
}

func newRouter(c *gin.Context, cfg *config) *router {
	return &router{c: c, cfg: cfg, request: c.Request, aborted: c.IsAborted()}
}

var _ httpcall.Router = (*router)(nil)

// Abandoned implements [httpcall.Router]. A middleware that answers in the place of handlers
// aborts them.
func (r *router) Abandoned() bool {
	return r.c.Request != r.request || !r.aborted && r.c.IsAborted()
}

func (r *router) PathValue(name string) string { return r.c.Param(name) }

func (r *router) Route() string { return r.c.FullPath() }

func (r *router) ClientIP() string {
	if address := r.cfg.clientIP; address != nil {
		return address(r.c)
	}
	return r.c.ClientIP()
}

func (r *router) Registered(i int) (any, error) { return r.cfg.variables[i](r.c) }

func (r *router) Request() *http.Request { return r.request }

func (r *router) Writer() httpcall.Writer { return r.c.Writer }

func (r *router) SetWriter(w httpcall.Writer) { r.c.Writer = w }

// KeptBody is the body that a middleware has read by gin's ShouldBindBodyWith.
func (r *router) KeptBody() []byte {
	kept, _ := r.c.Get(gin.BodyBytesKey)
	body, _ := kept.([]byte) //nolint:errcheck // nil is the answer
	return body
}

// Outer implements [httpcall.Router].
func (r *router) Outer() (*httpcall.Frame, bool) { return outer(r.c) }

// outer is the innermost guard around the handlers of c. A request that engine.HandleContext has
// given away is routed again: gin's keys are cleared then, the context of the request is not.
func outer(c *gin.Context) (f *httpcall.Frame, anew bool) {
	if f := frameOf(c); f != nil || c.Request == nil {
		return f, false
	}
	return httpcall.FrameOf(c.Request.Context()), true
}

func (r *router) Handle(ctx context.Context, inner *httpcall.Frame) []error {
	return r.run(ctx, inner, r.c.Next)
}

func (r *router) Fallback(ctx context.Context, name string) []error {
	return r.run(ctx, frameOf(r.c), func() { r.cfg.fallbacks[name](r.c) })
}

// run runs handlers with another context, and puts back what c had before. It returns the errors
// that the handlers added to c.Errors, or all errors there after engine.HandleContext, which drops
// the earlier ones.
func (r *router) run(ctx context.Context, frame *httpcall.Frame, handlers func()) (reported []error) {
	r.frame, r.aborted = frame, true
	n, last := len(r.c.Errors), r.c.Errors.Last()
	scope, leaveOwner, leaveKey := enterRequest(ctx, r.c), enterOwner(ctx, r.c), enterKey(r.c, frameKey{}, r)
	defer func() {
		if r.has(scope) {
			leaveKey()
			leaveOwner()
			r.request = scope.leave(r.c)
		}
	}()
	handlers()
	if !r.has(scope) {
		return nil
	}
	added := r.c.Errors
	if n <= len(added) && (n == 0 || added[n-1] == last) {
		added = added[n:]
	}
	for _, e := range added {
		reported = append(reported, e.Err)
	}
	return reported
}

// has reports whether c still carries the request whose handlers have run: they may have replaced
// it, or had it routed again.
func (r *router) has(scope requestScope) bool {
	return r.c.Request == scope.during || routerOf(r.c) == r ||
		r.frame != nil && r.c.Request != nil && httpcall.FrameOf(r.c.Request.Context()) == r.frame
}

func (r *router) Abort() {
	r.aborted = true
	r.c.Abort()
}

func (r *router) WriteError(refusal *aspect.RefusedError) { r.cfg.writeError(r.c, refusal) }

// Report puts an error into c.Errors, with the reason as its Meta.
func (r *router) Report(err, reason error) {
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
