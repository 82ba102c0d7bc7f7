package httpcall

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
)

// Frame is a guard around running handlers, for one request. The context of the handlers carries it.
type Frame struct {
	outer    *Frame
	rerouted bool        // see [Call].Rerouted
	request  fingerprint // identifies the request that the handlers got
	entry    *Entry
	origin   any // see [Call].Origin
	answerBy time.Time
	caller   context.Context //nolint:containedctx // the context of the request before the guard, for Caller
	hold     *core.Hold
}

type frameKey struct{}

// FrameOf returns the innermost frame that a context carries, nil if there is none.
func FrameOf(ctx context.Context) *Frame {
	f, _ := ctx.Value(frameKey{}).(*Frame) //nolint:errcheck // nil is the answer
	return f
}

// answerBy returns the time after which the server no longer writes the answer to a request. It returns the zero time if
// the server has no WriteTimeout. The timeout starts when net/http has read the header, but net/http does not expose that time.
// answerBy therefore counts from now, when the guard first sees the request, which is slightly later.
func answerBy(r *http.Request) time.Time {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok || server.WriteTimeout <= 0 {
		return time.Time{}
	}
	return time.Now().Add(server.WriteTimeout)
}

// RecordRequest records the request that the handlers get, for [Frame.SameRequest].
func (f *Frame) RecordRequest(r *http.Request) { f.request = newFingerprint(r, f.entry.Extra.Params) }

// SameRequest reports whether r is the request that [Frame.RecordRequest] recorded, possibly with another context. It
// reports false for a request that a handler derived from it, for example with another path or body. If in doubt,
// SameRequest reports false and the guard serves the request again. That is harmless, because the request re-enters its
// lock.
func (f *Frame) SameRequest(r *http.Request) bool { return f.request.matches(r) }

// Hold returns the hold of the innermost guard that has one, nil if no guard around the handlers has one. f may be nil.
func (f *Frame) Hold() *core.Hold {
	if f = f.innermostLocked(); f == nil {
		return nil
	}
	return f.hold
}

// Caller returns the context that the request had before the guard whose hold [Frame.Hold] returns. If Hold returns nil,
// Caller returns ctx. f may be nil.
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

// enclosing returns the frame of the enclosing guard. It returns nil if there is none, or if a handler of that guard may
// have routed the request again.
func (f *Frame) enclosing() *Frame {
	if f.rerouted {
		return nil
	}
	return f.outer
}

// alreadyGuarded reports whether an enclosing guard has the rules of f, or had them before a reload.
func (f *Frame) alreadyGuarded() bool {
	for o := f.enclosing(); o != nil; o = o.enclosing() {
		if o.entry == f.entry || f.origin != nil && o.origin == f.origin && o.entry.Endpoint == f.entry.Endpoint {
			return true
		}
	}
	return false
}

// problem returns the reason why the request cannot be served, nil if it can.
func (f *Frame) problem() error {
	if f.entry.Err != nil {
		return f.entry.Err
	}
	for o := f.enclosing(); o != nil; o = o.enclosing() {
		if o.entry.Endpoint != f.entry.Endpoint {
			continue
		}
		if err := aspect.Twice(f.entry.Point, o.entry.Point); err != nil {
			return err
		}
	}
	return nil
}

// fingerprint distinguishes a request from other requests that handlers derive from it. It copies the compared values,
// because copies of a request share the URL and the path values. It compares the header and the body by identity.
type fingerprint struct {
	method, host, path, query string
	header                    http.Header
	body                      any
	params                    []string // the names of the wildcards of the route
	values                    []string // their values
}

func newFingerprint(r *http.Request, params []string) fingerprint {
	s := fingerprint{method: r.Method, host: r.Host, header: r.Header, body: r.Body, params: params}
	if r.URL != nil {
		s.path, s.query = r.URL.Path, r.URL.RawQuery
	}
	for _, name := range params {
		s.values = append(s.values, r.PathValue(name))
	}
	return s
}

// matches reports whether r is the request from which s was made.
func (s *fingerprint) matches(r *http.Request) bool {
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

// sameValue reports whether a == b. It reports false for values that cannot be compared.
func sameValue(a, b any) bool {
	return reflect.ValueOf(&a).Elem().Comparable() && reflect.ValueOf(&b).Elem().Comparable() && a == b
}
