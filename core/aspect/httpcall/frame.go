package httpcall

import (
	"context"
	"net/http"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/internal/httpvars"
)

// Endpoint is what the requests of a route need besides its rules.
type Endpoint struct {
	Vars      *httpvars.Variables
	Params    []string // of its path
	Buffer    int      // bytes of the response that are kept back until the locks are free; 0 for none
	ShowToken bool     // in failpolicy.TokenHeader
	TakesBack bool     // a rule says on_lost: fail
	AnyMethod bool     // the rules are put on the route for whatever method it has

	maxBody int64 // of a body that is read
	room    *room // for bodies of requests that wait, of all routes
}

// Entry is a route under its rules.
type Entry = aspect.Entry[Endpoint]

// Frame is one guard around the handlers that run now. Their context leads to it.
type Frame struct {
	outer    *Frame
	anew     bool // the request was routed again, within outer
	seen     seen // the request as the handlers got it
	entry    *Entry
	origin   any // of the entry: the same before and after a reload; nil if it has none
	answerBy time.Time
	caller   context.Context //nolint:containedctx // of the request as it came, for Caller
	hold     *core.Hold
}

type frameKey struct{}

// FrameOf is the innermost frame that a context leads to, nil if there is none.
func FrameOf(ctx context.Context) *Frame {
	f, _ := ctx.Value(frameKey{}).(*Frame) //nolint:errcheck // nil is the answer
	return f
}

// newFrame makes the frame of a guard that a request meets.
func newFrame(entry *Entry, origin any, r Router) Frame {
	outer, anew := r.Outer()
	f := Frame{outer: outer, anew: anew, caller: r.Request().Context(), entry: entry, origin: origin}
	if outer == nil {
		f.answerBy = answerBy(r.Request())
	} else {
		f.answerBy = outer.answerBy
	}
	return f
}

// before is the guard around f that saw the request as f does, nil if there is none.
func (f *Frame) before() *Frame {
	if f.anew {
		return nil
	}
	return f.outer
}

// Saw reports whether a request is the one that HandsOver has noted, be it with
// another context: not one that a handler has made of it, such as for a part of it, nor the
// same with another path or body. Who is not sure is served again, and enters the lock again
// if it is the same.
func (f *Frame) Saw(r *http.Request) bool { return f.seen.is(r) }

// HandsOver notes the request that the handlers get, for Saw.
func (f *Frame) HandsOver(r *http.Request) { f.seen = seenOf(r, f.entry.Extra.Params) }

// Hold is the lock that was taken last, nil if no guard around the handlers has one.
func (f *Frame) Hold() *core.Hold {
	if f = f.locked(); f == nil {
		return nil
	}
	return f.hold
}

// Caller is the context of the request as it came to the guard of [Frame.Hold], ctx if
// there is none.
func (f *Frame) Caller(ctx context.Context) context.Context {
	if f = f.locked(); f == nil {
		return ctx
	}
	return f.caller
}

// locked is the innermost frame with a lock.
func (f *Frame) locked() *Frame {
	for f != nil && f.hold == nil {
		f = f.outer
	}
	return f
}

// passed reports whether the request has passed the guard already, be it before a reload.
func (f *Frame) passed() bool {
	for o := f.before(); o != nil; o = o.before() {
		if o.entry == f.entry || f.origin != nil && o.origin == f.origin && o.entry.Endpoint == f.entry.Endpoint {
			return true
		}
	}
	return false
}

// unusable says why the request cannot be served, nil if it can.
func (f *Frame) unusable() error {
	if f.entry.Err != nil {
		return f.entry.Err
	}
	for o := f.before(); o != nil; o = o.before() {
		if o.entry.Endpoint != f.entry.Endpoint {
			continue
		}
		if err := aspect.Twice(f.entry.Point, o.entry.Point); err != nil {
			return err
		}
	}
	return nil
}
