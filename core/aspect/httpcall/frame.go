package httpcall

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/keyexpr/httpvars"
)

// Endpoint is what the requests of a route need besides its rules.
type Endpoint struct {
	Vars      *httpvars.Variables
	Buffer    int  // bytes of the response that are kept back until the locks are free; 0 for none
	ShowToken bool // in TokenHeader
}

// Entry is a route under its rules.
type Entry = aspect.Entry[Endpoint]

// Frame is one guard around the handlers that run now. Their context leads to it.
type Frame struct {
	outer    *Frame
	anew     bool          // the request was routed again, within outer
	request  *http.Request // as the guard saw it
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
	f := Frame{outer: outer, anew: anew, request: r.Request(), caller: r.Request().Context(), entry: entry, origin: origin}
	if outer == nil {
		f.answerBy = answerBy(r.Request())
	} else {
		f.answerBy = outer.answerBy
	}
	return f
}

// Before is the guard around f that saw the request as f does, nil if there is none.
func (f *Frame) Before() *Frame {
	if f.anew {
		return nil
	}
	return f.outer
}

// Saw reports whether the guard saw the request, be it with another context or body: not
// one that a handler has made of it, such as for a part of it.
func (f *Frame) Saw(r *http.Request) bool {
	before := f.request
	return before.URL.Path == r.URL.Path && before.URL.RawQuery == r.URL.RawQuery &&
		reflect.ValueOf(before.Header).Pointer() == reflect.ValueOf(r.Header).Pointer()
}

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
	for o := f.Before(); o != nil; o = o.Before() {
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
	for o := f.Before(); o != nil; o = o.Before() {
		if o.entry.Endpoint != f.entry.Endpoint {
			continue
		}
		if err := aspect.Twice(f.entry.Point, o.entry.Point); err != nil {
			return err
		}
	}
	return nil
}
