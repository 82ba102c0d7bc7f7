package ginlock

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
)

// Hold returns the lock under which the handler of c runs. If there are several, it returns the lock that was
// taken last; [core.Held] finds the others. Hold returns nil outside a guard and if the handler runs without a
// lock. Release of a nil Hold returns [core.ErrNotHeld].
//
// With [ruleset.Fenced], or with Token in a rule, the Token of the lock is larger than the token of every earlier
// holder. A store that keeps it can refuse the write of a holder that was paused beyond its lease. Package
// [github.com/interlock-go/interlock/core/fence] does that for SQL and for Redis:
//
//	orders := fence.Table{Name: "orders", Key: "id", Token: "token", Placeholder: "$"}
//	err := orders.Do(ctx, db, id, ginlock.Hold(c).Token(), func(tx *sql.Tx) error { … })
//
// The handler may release the lock early, which cancels its context (see [Caller]), or hand it over to work that
// outlives the request. The guard then leaves the lock alone.
func Hold(c *gin.Context) *core.Hold {
	f, _ := outerFrame(c)
	return f.Hold()
}

// Caller returns the context that the request had before the guard whose lock [Hold] returns. A handler that released
// the lock early continues with it, because the context of its request is canceled. Without a lock, Caller returns the
// context of the request.
func Caller(c *gin.Context) context.Context {
	f, _ := outerFrame(c)
	return f.Caller(c.Request.Context())
}

// request handles one request of gin. It implements [httpcall.Router].
//
// The engine reuses c for another request as soon as ServeHTTP returns. If a middleware answers and returns while its
// handlers still run, as gin-contrib/timeout does, they keep using that c. So request touches c only while Abandoned
// reports false.
type request struct {
	c       *gin.Context
	cfg     *config
	current *http.Request   // the request that c carries, except while handlers run
	frame   *httpcall.Frame // the frame of the handlers that run
	aborted bool            // the chain was aborted before the guard, or by it
}

var _ httpcall.Router = (*request)(nil)

// serve serves the request of c under the rules of an entry. origin becomes [httpcall.Call].Origin.
func serve(c *gin.Context, cfg *config, entry *httpcall.Entry, origin any) {
	r := &request{c: c, cfg: cfg, current: c.Request, aborted: c.IsAborted()}
	outer, rerouted := outerFrame(c)
	result := httpcall.Serve(&httpcall.Call{
		Entry: entry, Origin: origin, Request: c.Request, Writer: c.Writer, KeptBody: keptBody(c),
		Outer: outer, Rerouted: rerouted, Router: r,
	})
	if result.Abort {
		c.Abort()
	}
	if result.Problem != nil {
		reported := c.Error(result.Problem)
		if result.Cause != nil {
			_ = reported.SetMeta(&loggedCause{result.Cause}) //nolint:errcheck // returns reported
		}
	}
	if result.Writer == nil {
		return
	}
	defer func() { c.Writer = result.Writer }() // even if the error writer panics
	if result.Refusal != nil {
		result.Refuse(func(w httpcall.Writer, refusal *aspect.RefusedError) {
			c.Writer = w
			cfg.writeError(c, refusal)
		})
	}
}

// loggedCause is the Meta of an error in c.Errors. gin's logger prints it. gin.ErrorLogger, which sends errors to
// clients, encodes it as {}.
type loggedCause struct{ cause error }

// String returns the message of the cause.
func (l *loggedCause) String() string { return l.cause.Error() }

// keptBody returns the body that a middleware read with gin's ShouldBindBodyWith, nil if none did.
func keptBody(c *gin.Context) []byte {
	kept, _ := c.Get(gin.BodyBytesKey)
	body, _ := kept.([]byte) //nolint:errcheck // nil is the answer
	return body
}

// PathValue implements [httpvars.Host].
func (r *request) PathValue(name string) string { return r.c.Param(name) }

// Route implements [httpvars.Host].
func (r *request) Route() string { return r.c.FullPath() }

// ClientIP implements [httpvars.Host].
func (r *request) ClientIP() string {
	if address := r.cfg.clientIP; address != nil {
		return address(r.c)
	}
	return r.c.ClientIP()
}

// Registered implements [httpvars.Host].
func (r *request) Registered(i int) (any, error) { return r.cfg.variables[i](r.c) }

// Abandoned implements [httpcall.Router]. A middleware that answers while the handlers run aborts the chain.
func (r *request) Abandoned() bool {
	return r.c.Request != r.current || !r.aborted && r.c.IsAborted()
}

// Run implements [httpcall.Router].
func (r *request) Run(ctx context.Context, h httpcall.Handlers) (ran httpcall.RunResult) {
	before, frame, handlers := r.c.Writer, h.Frame, r.c.Next
	if h.Fallback != "" {
		r.c.Abort()
		frame, handlers = frameOf(r.c), func() { r.cfg.fallbacks[h.Fallback](r.c) }
	}
	if h.Writer != nil {
		r.c.Writer = h.Writer
	}
	defer func() {
		if r.Abandoned() {
			return
		}
		ran.Writer = r.c.Writer
		if h.Writer != nil {
			r.c.Writer = before
		}
	}()
	ran.Errors = r.runWith(ctx, frame, handlers)
	return ran
}

// runWith runs handlers with another context and then restores the state of c. It returns the errors that the handlers
// added to c.Errors. If a handler called engine.HandleContext, which drops the earlier errors, it returns all errors in
// c.Errors.
func (r *request) runWith(ctx context.Context, frame *httpcall.Frame, handlers func()) (reported []error) {
	r.frame, r.aborted = frame, true
	n, last := len(r.c.Errors), r.c.Errors.Last()
	scope, leaveOwner, leaveKey := enterRequest(ctx, r.c), enterOwner(ctx, r.c), enterKey(r.c, frameKey{}, r)
	defer func() {
		if r.owns(scope) {
			leaveKey()
			leaveOwner()
			r.current = scope.leave(r.c)
		}
	}()
	handlers()
	if !r.owns(scope) {
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

// owns reports whether c still carries the request whose handlers ran. The handlers may have replaced it or passed it
// to engine.HandleContext.
func (r *request) owns(scope requestScope) bool {
	return r.c.Request == scope.during || requestOf(r.c) == r ||
		r.frame != nil && r.c.Request != nil && httpcall.FrameOf(r.c.Request.Context()) == r.frame
}

// frameKey is the key under which gin's context carries the request of the innermost guard. engine.HandleContext
// clears it. The context of the HTTP request carries the frame, too.
type frameKey struct{}

// requestOf returns the request that the innermost guard stored in gin's context, nil if there is none.
func requestOf(c *gin.Context) *request {
	value, _ := c.Get(frameKey{})
	r, _ := value.(*request) //nolint:errcheck // nil is the answer
	return r
}

// frameOf returns the frame of the innermost guard that the request passed since the engine last routed it, nil if there
// is none. After engine.HandleContext, the request may be for a resource that earlier guards did not see.
func frameOf(c *gin.Context) *httpcall.Frame {
	if r := requestOf(c); r != nil {
		return r.frame
	}
	return nil
}

// outerFrame returns the frame of the innermost guard around the handlers of c. rerouted reports whether the request
// may have been routed again since that guard. engine.HandleContext clears the keys of gin's context, so only the
// context of the HTTP request then carries the frame.
func outerFrame(c *gin.Context) (f *httpcall.Frame, rerouted bool) {
	if f := frameOf(c); f != nil || c.Request == nil {
		return f, false
	}
	return httpcall.FrameOf(c.Request.Context()), true
}

// requestScope holds the request of a gin.Context before and during a run of handlers with another context.
type requestScope struct {
	before, during *http.Request
}

func enterRequest(ctx context.Context, c *gin.Context) requestScope {
	s := requestScope{before: c.Request, during: c.Request.WithContext(ctx)}
	c.Request = s.during
	return s
}

// leave restores the context and returns the request that c then has. It copies the body and the parsed forms to that
// request, so that outer handlers see them and net/http removes the files of a multipart form.
func (s requestScope) leave(c *gin.Context) *http.Request {
	if c.Request != s.during { // a handler replaced the request and did not restore it
		c.Request = c.Request.WithContext(s.before.Context())
		return c.Request
	}
	s.before.Body = s.during.Body
	s.before.Form, s.before.PostForm, s.before.MultipartForm = s.during.Form, s.during.PostForm, s.during.MultipartForm
	c.Request = s.before
	return c.Request
}

// enterOwner stores the holds of ctx in gin's context until leave, so that handlers can pass c as a [context.Context].
// With ContextWithFallback, gin's context finds the holds without that. enterOwner then adds nothing, because its entry
// would hide the holds that handlers take themselves.
func enterOwner(ctx context.Context, c *gin.Context) (leave func()) {
	owner := ctx.Value(core.ContextKey)
	if owner == nil || c.Value(core.ContextKey) == owner {
		return func() {}
	}
	return enterKey(c, core.ContextKey, owner)
}

// enterKey sets a key of gin's context to a value until leave.
func enterKey(c *gin.Context, key, value any) (leave func()) {
	before, existed := c.Get(key)
	c.Set(key, value)
	return func() {
		if existed {
			c.Set(key, before)
			return
		}
		c.Delete(key)
	}
}
