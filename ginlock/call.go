package ginlock

import (
	"context"
	"errors"
	"net/http"

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
	entered  bool              // the handlers were called
}

func newCall(e *endpoint, c *gin.Context, outer *frame) *call {
	return &call{frame: frame{endpoint: e, outer: outer}, c: c}
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

// Handle is part of [aspect.Call].
func (x *call) Handle(ctx context.Context, g aspect.Grant) error {
	x.entered = true
	if g.Unlocked == aspect.UnlockedProceed {
		x.c.Header(StatusHeader, StatusUnlocked)
	}
	x.hold = g.Hold
	defer enterRequest(ctx, x.c).leave(x.c)
	defer enterOwner(ctx, x.c).leave(x.c)
	x.frame.enter(x.c)
	defer x.frame.leave(x.c)
	if limit := x.endpoint.buffer; limit > 0 {
		x.response = newResponse(x.c.Writer, limit)
		x.c.Writer = x.response
		defer func() { x.c.Writer = x.response.ResponseWriter }()
	}
	before := len(x.c.Errors)
	x.c.Next()
	return x.judge(ctx, before)
}

// Fallback is part of [aspect.Call].
func (x *call) Fallback(ctx context.Context, name string) error {
	x.c.Abort()
	defer enterRequest(ctx, x.c).leave(x.c)
	before := len(x.c.Errors)
	x.endpoint.guard.cfg.fallbacks[name](x.c)
	return x.judge(ctx, before)
}

// judge tells how the handlers went, from what they left behind.
func (x *call) judge(ctx context.Context, before int) error {
	added := x.c.Errors[min(before, len(x.c.Errors)):]
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
