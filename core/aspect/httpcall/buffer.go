package httpcall

import (
	"bufio"
	"errors"
	"maps"
	"net"
	"net/http"
	"strings"
)

// buffer keeps an answer back until the locks are free. One that grows beyond
// its limit is let go and goes straight through from then on. One that is never
// sent was never given.
type buffer struct {
	Writer // where the answer goes in the end

	header  http.Header
	sent    http.Header // as it was when it became final
	body    []byte
	limit   int
	status  int
	atOnce  bool // WriteHeader makes final, as that of net/http
	written bool
	let     bool // goes straight through
}

func newBuffer(w Writer, limit int) *buffer {
	_, atOnce := w.(*writer)
	if outer, ok := w.(*buffer); ok {
		atOnce = outer.atOnce
	}
	return &buffer{Writer: w, header: w.Header().Clone(), limit: limit, status: w.Status(), atOnce: atOnce}
}

// send lets the answer go, if there is one that was kept back.
func (r *buffer) send() {
	if r == nil || r.let {
		return
	}
	r.let = true
	if !r.Writer.Written() { // engine.HandleContext answers past it
		r.sendHeader()
	}
	if len(r.body) > 0 {
		_, _ = r.Writer.Write(r.body) //nolint:errcheck // the client is gone: nobody to tell
	}
	r.body = nil
}

func (r *buffer) sendHeader() {
	h := r.Writer.Header()
	clear(h)
	if !r.written {
		maps.Copy(h, r.header)
		r.Writer.WriteHeader(r.status)
		return
	}
	maps.Copy(h, r.sent)
	for name, values := range r.header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			h[name] = values // else net/http expects none
		}
	}
	r.Writer.WriteHeader(r.status)
	r.Writer.WriteHeaderNow()
	maps.Copy(h, r.header) // from now on trailers
}

// Header is that of the answer.
func (r *buffer) Header() http.Header {
	if r.let {
		return r.Writer.Header()
	}
	return r.header
}

// WriteHeader sets the status. Informational ones are not kept back for the final one:
// nobody waits for them.
func (r *buffer) WriteHeader(code int) {
	switch {
	case r.let:
		r.Writer.WriteHeader(code)
	case isFinal(code) && !r.written:
		r.status = code
		if r.atOnce {
			r.WriteHeaderNow()
		}
	}
}

// isFinal reports whether a status is that of an answer, and not informational.
func isFinal(code int) bool {
	return code >= http.StatusOK || code == http.StatusSwitchingProtocols
}

// WriteHeaderNow makes status and header final.
func (r *buffer) WriteHeaderNow() {
	if r.let {
		r.Writer.WriteHeaderNow()
		return
	}
	if !r.written {
		r.written, r.sent = true, r.header.Clone()
	}
}

// Write appends to the body.
func (r *buffer) Write(p []byte) (int, error) {
	if !r.keeps(len(p)) {
		return r.Writer.Write(p)
	}
	r.body = append(r.body, p...)
	return len(p), nil
}

// WriteString appends to the body.
func (r *buffer) WriteString(s string) (int, error) {
	if !r.keeps(len(s)) {
		return r.Writer.WriteString(s)
	}
	r.body = append(r.body, s...)
	return len(s), nil
}

// keeps reports whether n more bytes are kept back; if they are too many, all of
// the answer goes.
func (r *buffer) keeps(n int) bool {
	r.WriteHeaderNow()
	if !r.let && len(r.body)+n > r.limit {
		r.send()
	}
	return !r.let
}

// Status is the status of the answer.
func (r *buffer) Status() int {
	if r.let {
		return r.Writer.Status()
	}
	return r.status
}

// Size is how many bytes the body has, -1 before anything is written.
func (r *buffer) Size() int {
	switch {
	case r.let:
		return r.Writer.Size()
	case !r.written:
		return -1
	default:
		return len(r.body)
	}
}

// Written reports whether status and header are final.
func (r *buffer) Written() bool {
	if r.let {
		return r.Writer.Written()
	}
	return r.written
}

// Flush does nothing while the answer is kept back.
func (r *buffer) Flush() {
	if r.let {
		r.Writer.Flush()
		return
	}
	r.WriteHeaderNow()
}

// Hijack hands over the connection; nothing is kept back from then on.
func (r *buffer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !r.let && len(r.body) > 0 {
		return nil, nil, errors.New("httpcall: Hijack: a part of the response is written already")
	}
	conn, buffered, err := r.Writer.Hijack()
	r.let = r.let || err == nil
	return conn, buffered, err
}

// Unwrap serves [http.ResponseController].
func (r *buffer) Unwrap() http.ResponseWriter { return r.Writer }

var _ Writer = (*buffer)(nil)
