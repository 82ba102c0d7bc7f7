package httpcall

import (
	"net/http"
	"reflect"
	"unsafe"
)

// seen is what tells a request from others that handlers may make of it. All of it is
// copied: the copies of a request share their URL and the values of its path.
type seen struct {
	method, host, path, query string
	header                    unsafe.Pointer
	body                      any
	params                    []string // of the route
	values                    []string // of params
}

// seenOf sees a request of a route.
func seenOf(r *http.Request, params []string) seen {
	s := seen{method: r.Method, host: r.Host, header: identityOf(r.Header), body: r.Body, params: params}
	if r.URL != nil {
		s.path, s.query = r.URL.Path, r.URL.RawQuery
	}
	for _, name := range params {
		s.values = append(s.values, r.PathValue(name))
	}
	return s
}

func identityOf(h http.Header) unsafe.Pointer { return reflect.ValueOf(h).UnsafePointer() }

// is reports whether a request is the same.
func (s *seen) is(r *http.Request) bool {
	if r.URL == nil || s.method != r.Method || s.host != r.Host || s.path != r.URL.Path || s.query != r.URL.RawQuery ||
		s.header != identityOf(r.Header) || !identical(s.body, r.Body) {
		return false
	}
	for i, name := range s.params {
		if s.values[i] != r.PathValue(name) {
			return false
		}
	}
	return true
}

// identical is a == b, and false for what cannot be compared.
func identical(a, b any) bool {
	return reflect.ValueOf(&a).Elem().Comparable() && reflect.ValueOf(&b).Elem().Comparable() && a == b
}
