package ginlock

import (
	"bufio"
	"errors"
	"maps"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// response keeps an answer back until the locks are free. One that grows beyond
// its limit is let go and goes straight through from then on. One that is never
// sent was never given.
type response struct {
	gin.ResponseWriter // where the answer goes in the end

	header  http.Header
	body    []byte
	limit   int
	status  int
	written bool
	let     bool // goes straight through
}

func newResponse(w gin.ResponseWriter, limit int) *response {
	return &response{ResponseWriter: w, header: w.Header().Clone(), limit: limit, status: w.Status()}
}

// send lets the answer go, if there is one that was kept back.
func (r *response) send() {
	if r == nil || r.let {
		return
	}
	r.let = true
	if !r.ResponseWriter.Written() { // engine.HandleContext answers past it
		r.sendHeader()
	}
	if len(r.body) > 0 {
		_, _ = r.ResponseWriter.Write(r.body) //nolint:errcheck // the client is gone: nobody to tell
	}
	r.body = nil
}

func (r *response) sendHeader() {
	h := r.ResponseWriter.Header()
	clear(h)
	maps.Copy(h, r.header)
	r.ResponseWriter.WriteHeader(r.status)
	if r.written {
		r.ResponseWriter.WriteHeaderNow()
	}
}

// Header is that of the answer.
func (r *response) Header() http.Header {
	if r.let {
		return r.ResponseWriter.Header()
	}
	return r.header
}

// WriteHeader sets the status.
func (r *response) WriteHeader(code int) {
	switch {
	case r.let:
		r.ResponseWriter.WriteHeader(code)
	case code > 0 && !r.written:
		r.status = code
	}
}

// WriteHeaderNow makes status and header final.
func (r *response) WriteHeaderNow() {
	if r.let {
		r.ResponseWriter.WriteHeaderNow()
		return
	}
	r.written = true
}

// Write appends to the body.
func (r *response) Write(p []byte) (int, error) {
	if !r.keeps(len(p)) {
		return r.ResponseWriter.Write(p)
	}
	r.body = append(r.body, p...)
	return len(p), nil
}

// WriteString appends to the body.
func (r *response) WriteString(s string) (int, error) {
	if !r.keeps(len(s)) {
		return r.ResponseWriter.WriteString(s)
	}
	r.body = append(r.body, s...)
	return len(s), nil
}

// keeps reports whether n more bytes are kept back; if they are too many, all of
// the answer goes.
func (r *response) keeps(n int) bool {
	r.WriteHeaderNow()
	if !r.let && len(r.body)+n > r.limit {
		r.send()
	}
	return !r.let
}

// Status is the status of the answer.
func (r *response) Status() int {
	if r.let {
		return r.ResponseWriter.Status()
	}
	return r.status
}

// Size is how many bytes the body has, -1 before anything is written.
func (r *response) Size() int {
	switch {
	case r.let:
		return r.ResponseWriter.Size()
	case !r.written:
		return -1
	default:
		return len(r.body)
	}
}

// Written reports whether status and header are final.
func (r *response) Written() bool {
	if r.let {
		return r.ResponseWriter.Written()
	}
	return r.written
}

// Flush does nothing while the answer is kept back.
func (r *response) Flush() {
	if r.let {
		r.ResponseWriter.Flush()
		return
	}
	r.written = true
}

// Hijack hands over the connection; nothing is kept back from then on.
func (r *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if !r.let && len(r.body) > 0 {
		return nil, nil, errors.New("ginlock: Hijack: a part of the response is written already")
	}
	r.let = true
	return r.ResponseWriter.Hijack()
}

// Unwrap serves [http.ResponseController].
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }
