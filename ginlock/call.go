package ginlock

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/keyexpr"
	"github.com/interlock-go/interlock/keyexpr/httpvars"
)

// call is one request under one endpoint: the [aspect.Call] of Gin.
type call struct {
	frame
	c        *gin.Context
	values   *httpvars.Request // nil until needed
	response *response         // kept back; nil without a buffer
	header   http.Header       // as it was before the handlers, without a buffer
	entered  bool              // the handlers were called
	inner    *final            // what a guard further in has settled, behind response
}

func newCall(e *endpoint, c *gin.Context) *call {
	return &call{frame: newFrame(e, c), c: c}
}

func (x *call) run() {
	x.findKept()
	outcome := x.endpoint.point.Run(x.c.Request.Context(), x)
	if !x.entered {
		x.c.Abort()
		x.drain(&outcome)
	}
	x.answer(&outcome)
}

// request are the values of the request.
func (x *call) request() *httpvars.Request {
	if x.values == nil {
		x.values = x.endpoint.vars.Request(x.c.Request, host{x.c, &x.endpoint.guard.cfg})
	}
	return x.values
}

// Env is part of [aspect.Call].
func (x *call) Env(context.Context) keyexpr.Env { return x.request() }

// AnswerBy is part of [aspect.AnswerDeadline].
func (x *call) AnswerBy() time.Time { return x.frame.answerBy }

// Handle is part of [aspect.Call].
func (x *call) Handle(ctx context.Context, g aspect.Grant) error {
	x.entered = true
	x.hold = g.Hold
	defer enterRequest(context.WithValue(ctx, frameKey{}, &x.frame), x.c).leave(x.c)
	defer enterOwner(ctx, x.c).leave(x.c)
	x.frame.enter(x.c)
	defer x.frame.leave(x.c)
	if limit := x.endpoint.buffer; limit > 0 {
		x.response = newResponse(x.c.Writer, limit)
		x.c.Writer = x.response
		defer x.putWriterBack()
	} else if g.Hold != nil {
		x.header = x.c.Writer.Header().Clone()
	}
	if g.Unlocked == aspect.UnlockedProceed {
		x.c.Header(StatusHeader, StatusUnlocked)
	}
	if g.Token != 0 && x.endpoint.guard.cfg.showToken {
		x.c.Header(TokenHeader, strconv.FormatInt(g.Token, 10))
	}
	before := errorsOf(x.c)
	x.c.Next()
	return x.judge(ctx, before.added(x.c))
}

// putWriterBack ends the keeping back. It remembers an answer that a guard further in
// has settled, for whom the writer is taken away.
func (x *call) putWriterBack() {
	x.inner, _ = x.c.Writer.(*final) //nolint:errcheck // nil is the answer
	x.c.Writer = x.response.ResponseWriter
}

// Fallback is part of [aspect.Call].
func (x *call) Fallback(ctx context.Context, name string) error {
	x.c.Abort()
	if o, _ := aspect.OutcomeFrom(ctx); x.unrouted(&o) {
		return aspect.ErrHandlerFailed
	}
	defer enterRequest(ctx, x.c).leave(x.c)
	before := errorsOf(x.c)
	x.endpoint.guard.cfg.fallbacks[name](x.c)
	return x.judge(ctx, before.added(x.c))
}

// knownErrors are the errors of a request at some time.
type knownErrors struct {
	count int
	last  *gin.Error
}

func errorsOf(c *gin.Context) knownErrors {
	return knownErrors{count: len(c.Errors), last: c.Errors.Last()}
}

// added are the errors that came since. Where those of that time are gone, as after
// engine.HandleContext, it is all of them.
func (k knownErrors) added(c *gin.Context) []*gin.Error {
	if k.count > len(c.Errors) || k.count > 0 && c.Errors[k.count-1] != k.last {
		return c.Errors
	}
	return c.Errors[k.count:]
}

// judge tells how the handlers went, from the errors and the answer that they left
// behind.
func (x *call) judge(ctx context.Context, added []*gin.Error) error {
	if lost := lossOf(ctx); lost != nil {
		if !x.answered() {
			return lost
		}
		for _, e := range added {
			if errors.Is(e.Err, ctx.Err()) || errors.Is(e.Err, lost) {
				return lost
			}
		}
	}
	if x.c.Writer.Status() >= http.StatusBadRequest || len(added) > 0 {
		return aspect.ErrHandlerFailed
	}
	return nil
}

// answered reports whether the handlers have given an answer, be it a status only.
func (x *call) answered() bool {
	return x.c.Writer.Written() || x.c.Writer.Status() != http.StatusOK
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
