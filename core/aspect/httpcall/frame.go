package httpcall

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
)

// Frame is one guard around the handlers that run now. The context of the handlers leads to it.
type Frame struct {
	outer    *Frame
	rerouted bool // the request was routed again within outer
	request  seen // the request as the handlers got it
	entry    *Entry
	origin   any // see [Call].Origin
	answerBy time.Time
	caller   context.Context //nolint:containedctx // the context with which the request came, for Caller
	hold     *core.Hold
}

type frameKey struct{}

// FrameOf returns the innermost frame to which a context leads, nil if there is none.
func FrameOf(ctx context.Context) *Frame {
	f, _ := ctx.Value(frameKey{}).(*Frame) //nolint:errcheck // nil is the answer
	return f
}

// answerBy returns the time at which the server stops writing the answer to a request; the zero time if it has
// no WriteTimeout. The clock of net/http starts when the header was read, and net/http does not show it. So
// answerBy counts from now, when the guard sees the request first, which is a little later.
func answerBy(r *http.Request) time.Time {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok || server.WriteTimeout <= 0 {
		return time.Time{}
	}
	return time.Now().Add(server.WriteTimeout)
}

// HandsOver records the request that the handlers get, for [Frame.Saw].
func (f *Frame) HandsOver(r *http.Request) { f.request = see(r, f.entry.Extra.Params) }

// Saw reports whether [Frame.HandsOver] recorded this request, possibly with another context. A
// request that a handler has made of it, such as for a part of it, is another one, and so is the same request
// with another path or body. In doubt Saw reports false and the guard serves the request again. That is
// harmless, because the request re-enters its lock.
func (f *Frame) Saw(r *http.Request) bool { return f.request.is(r) }

// Hold returns the lock that was taken last, nil if no guard around the handlers has one.
func (f *Frame) Hold() *core.Hold {
	if f = f.innermostLocked(); f == nil {
		return nil
	}
	return f.hold
}

// Caller returns the context with which the request came to the guard of [Frame.Hold], or ctx if there is no
// such guard.
func (f *Frame) Caller(ctx context.Context) context.Context {
	if f = f.innermostLocked(); f == nil {
		return ctx
	}
	return f.caller
}

func (f *Frame) innermostLocked() *Frame {
	for f != nil && f.hold == nil {
		f = f.outer
	}
	return f
}

// before returns the guard around f that saw the request as f does, nil if there is none.
func (f *Frame) before() *Frame {
	if f.rerouted {
		return nil
	}
	return f.outer
}

// passed reports whether the request has passed this guard already, even under rules from before a reload.
func (f *Frame) passed() bool {
	for o := f.before(); o != nil; o = o.before() {
		if o.entry == f.entry || f.origin != nil && o.origin == f.origin && o.entry.Endpoint == f.entry.Endpoint {
			return true
		}
	}
	return false
}

// unusable returns the reason why the request cannot be served, nil if it can.
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

// seen distinguishes a request from others that handlers may make of it. It copies what it compares, because
// copies of a request share their URL and the values of its path. The header and the body are compared by
// identity.
type seen struct {
	method, host, path, query string
	header                    http.Header
	body                      any
	params                    []string // the wildcards of the route
	values                    []string // the values of params
}

func see(r *http.Request, params []string) seen {
	s := seen{method: r.Method, host: r.Host, header: r.Header, body: r.Body, params: params}
	if r.URL != nil {
		s.path, s.query = r.URL.Path, r.URL.RawQuery
	}
	for _, name := range params {
		s.values = append(s.values, r.PathValue(name))
	}
	return s
}

// is reports whether r is the request that s describes.
func (s *seen) is(r *http.Request) bool {
	if r.URL == nil || s.method != r.Method || s.host != r.Host || s.path != r.URL.Path || s.query != r.URL.RawQuery ||
		!sameMap(s.header, r.Header) || !sameValue(s.body, r.Body) {
		return false
	}
	for i, name := range s.params {
		if s.values[i] != r.PathValue(name) {
			return false
		}
	}
	return true
}

// sameMap reports whether two headers are one map.
func sameMap(a, b http.Header) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// sameValue is a == b, and false for values that cannot be compared.
func sameValue(a, b any) bool {
	return reflect.ValueOf(&a).Elem().Comparable() && reflect.ValueOf(&b).Elem().Comparable() && a == b
}
