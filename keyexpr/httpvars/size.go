package httpvars

import "github.com/interlock-go/interlock/keyexpr"

// Size implements [keyexpr.Sized]: the bytes of the request line, the headers, and of
// the body as far as it was read.
func (q *Request) Size() int {
	size := len(q.request.Method) + len(q.request.Host) + len(q.payload.bytes)
	if u := q.request.URL; u != nil {
		size += len(u.Path) + len(u.RawQuery)
	}
	for name, values := range q.request.Header {
		for _, value := range values {
			size += len(name) + len(value)
		}
	}
	return size
}

var _ keyexpr.Sized = (*Request)(nil)
