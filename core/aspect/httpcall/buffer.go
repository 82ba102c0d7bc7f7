package httpcall

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// buffer is a response writer that holds the response back until the locks are free. Otherwise it behaves like the writer
// below it. If the response exceeds the limit, the buffer sends it and forwards all later writes. A response that
// is never sent does not change the writer below.
type buffer struct {
	Writer // the writer below, to which the response is sent

	header  http.Header
	fixed   http.Header // a copy of header, made when it became final
	body    []byte
	length  int // the Content-Length in the header; -1 if there is none
	limit   int
	status  int
	lost    func() error // returns the loss that forbids sending the response early; nil if sending is allowed
	cut     error        // the loss because of which a part of the response is missing
	atOnce  bool         // WriteHeader makes the header final, as in net/http
	written bool
	sent    bool // the response was sent, and the buffer forwards all later writes
}

// newBuffer returns a buffer above w. It starts with the header and the status of w.
func newBuffer(w Writer, limit int, lost func() error) *buffer {
	_, atOnce := w.(*writer)
	if outer, ok := w.(*buffer); ok {
		atOnce = outer.atOnce
	}
	return &buffer{Writer: w, header: w.Header().Clone(), length: -1, limit: limit, status: w.Status(), lost: lost, atOnce: atOnce}
}

// newErrorBuffer returns a buffer without a limit for the function that Result.Refuse calls. The response has the given
// status unless that function sets another one.
func newErrorBuffer(w Writer, status int) *buffer {
	b := newBuffer(w, math.MaxInt, nil)
	b.status = status
	return b
}

// send sends the response. On a nil buffer it does nothing.
func (r *buffer) send() {
	if r == nil {
		return
	}
	if r.sent {
		maps.Copy(r.Writer.Header(), r.header) // trailers
		return
	}
	r.sent = true
	if !r.Writer.Written() { // gin's engine.HandleContext may have written to the writer below
		r.sendHeader()
	}
	if len(r.body) > 0 {
		_, _ = r.Writer.Write(r.body) //nolint:errcheck // a write fails only if the client has left
	}
	r.body = nil
}

// sendHeader sends the header, and the status if it is final.
func (r *buffer) sendHeader() {
	h := r.Writer.Header()
	clear(h)
	if !r.written {
		maps.Copy(h, r.header)
		if !r.atOnce {
			r.Writer.WriteHeader(r.status)
		}
		return
	}
	maps.Copy(h, r.fixed)
	for name, values := range r.header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			h[name] = values // otherwise net/http expects no trailers
		}
	}
	r.Writer.WriteHeader(r.status)
	r.Writer.WriteHeaderNow()
	maps.Copy(h, r.header) // headers set after the header was final are trailers
}

// Header returns the header of the response. It is always the same map, because handlers keep it.
func (r *buffer) Header() http.Header { return r.header }

// WriteHeader sets the status. As in net/http, it makes a final status final and sends an informational status at once.
// Above a writer of gin it only records the status, as gin does.
func (r *buffer) WriteHeader(code int) {
	switch {
	case r.sent:
		r.Writer.WriteHeader(code)
	case r.written:
	case !r.atOnce:
		if code > 0 { // as gin does
			r.status = code
		}
	case code < 100 || code > 999:
		panic(fmt.Sprintf("invalid WriteHeader code %v", code))
	case isFinal(code):
		r.status = code
		r.WriteHeaderNow()
	default:
		r.inform(code)
	}
}

// inform sends an informational response. It leaves the header of the writer below unchanged.
func (r *buffer) inform(code int) {
	h := r.Writer.Header()
	before := maps.Clone(h)
	clear(h)
	maps.Copy(h, r.header)
	r.Writer.WriteHeader(code)
	clear(h)
	maps.Copy(h, before)
}

// WriteHeaderNow makes status and header final. It sends the response at once if it switches protocols.
func (r *buffer) WriteHeaderNow() {
	switch {
	case r.sent:
		r.Writer.WriteHeaderNow()
	case !r.written:
		r.written, r.fixed = true, r.header.Clone()
		if n, err := strconv.Atoi(r.header.Get("Content-Length")); err == nil && n >= 0 {
			r.length = n
		}
		if r.status == http.StatusSwitchingProtocols {
			r.send()
		}
	}
}

// Write appends to the body.
func (r *buffer) Write(p []byte) (int, error) {
	err := r.expect(len(p))
	switch {
	case err != nil:
		return 0, err
	case r.sent:
		return r.Writer.Write(p)
	}
	r.body = append(r.body, p...)
	return len(p), nil
}

// WriteString appends to the body.
func (r *buffer) WriteString(s string) (int, error) {
	err := r.expect(len(s))
	switch {
	case err != nil:
		return 0, err
	case r.sent:
		return r.Writer.WriteString(s)
	}
	r.body = append(r.body, s...)
	return len(s), nil
}

// expect makes the header final before n more bytes are written. If the body would exceed the limit, expect sends the
// response. It returns an error if the bytes must not be written.
func (r *buffer) expect(n int) error {
	r.WriteHeaderNow()
	switch size := len(r.body) + n; {
	case r.sent || n == 0 || r.cut != nil:
		return r.cut
	case r.status == http.StatusNoContent, r.status == http.StatusNotModified:
		return http.ErrBodyNotAllowed
	case r.length >= 0 && size > r.length:
		return http.ErrContentLength
	case size > r.limit:
		if r.cut = r.lost(); r.cut != nil {
			return r.cut
		}
		r.send()
	}
	return nil
}

// Status returns the status of the response.
func (r *buffer) Status() int {
	if r.sent {
		return r.Writer.Status()
	}
	return r.status
}

// Size returns the number of bytes of the body, -1 before anything is written.
func (r *buffer) Size() int {
	switch {
	case r.sent:
		return r.Writer.Size()
	case !r.written:
		return -1
	default:
		return len(r.body)
	}
}

// Written reports whether status and header are final.
func (r *buffer) Written() bool {
	if r.sent {
		return r.Writer.Written()
	}
	return r.written
}

// Flush makes the header final. It sends nothing while the buffer holds the response back.
func (r *buffer) Flush() { _ = r.FlushError() } //nolint:errcheck // Flush has no error

// FlushError implements Flush for [http.ResponseController].
func (r *buffer) FlushError() error {
	r.WriteHeaderNow()
	if r.sent {
		return http.NewResponseController(r.Writer).Flush()
	}
	return nil
}

// Hijack implements [http.Hijacker]. If the header is final, Hijack sends it first. After Hijack, the buffer holds
// nothing back. If the buffer holds a part of the body, Hijack returns an error.
func (r *buffer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !r.sent && len(r.body) > 0 {
		return nil, nil, errors.New("httpcall: Hijack: a part of the response is written already")
	}
	if r.written {
		r.send()
	}
	conn, buffered, err := r.Writer.Hijack()
	r.sent = r.sent || err == nil
	return conn, buffered, err
}

// Push implements [http.Pusher].
func (r *buffer) Push(target string, opts *http.PushOptions) error {
	return push(r.Pusher(), target, opts)
}

// Unwrap supports [http.ResponseController].
func (r *buffer) Unwrap() http.ResponseWriter { return r.Writer }

var _ Writer = (*buffer)(nil)
