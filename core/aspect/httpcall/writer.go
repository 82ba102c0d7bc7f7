package httpcall

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
)

// Writer is a response writer that reports the status of the response, its size, and whether its header is final. It has
// the methods of gin's ResponseWriter, so that each of the two types implements the other.
//
// WriteHeader may only record the status; WriteHeaderNow sends it.
type Writer interface {
	http.ResponseWriter
	http.Hijacker
	http.Flusher
	http.CloseNotifier //nolint:staticcheck // gin's ResponseWriter has it

	// Status returns the status of the response. It returns 200 before a status is set.
	Status() int
	// Size returns the number of bytes of the body, -1 before anything is written.
	Size() int
	// WriteString writes a part of the body.
	WriteString(s string) (int, error)
	// Written reports whether status and header are final.
	Written() bool
	// WriteHeaderNow makes status and header final.
	WriteHeaderNow()
	// Pusher returns the HTTP/2 pusher, nil if the connection has none.
	Pusher() http.Pusher
}

// sealedWriter is a response writer that drops every write. Layers outside the guard may try to write an answer because
// they see a status or an error.
type sealedWriter struct {
	Writer // the writer that got the answer

	status int // for layers outside, such as access logs
}

// seal returns a response writer that drops every write to w. Layers outside the guard see the given status.
func seal(w Writer, status int) Writer { return &sealedWriter{Writer: w, status: status} }

// Status returns the status that [seal] got.
func (w *sealedWriter) Status() int { return w.status }

// WriteHeader does nothing.
func (w *sealedWriter) WriteHeader(int) {}

// WriteHeaderNow does nothing, because the answer was sent or gin sends it.
func (w *sealedWriter) WriteHeaderNow() {}

// Write drops p and reports success.
func (w *sealedWriter) Write(p []byte) (int, error) { return len(p), nil }

// WriteString drops s and reports success.
func (w *sealedWriter) WriteString(s string) (int, error) { return len(s), nil }

// Unwrap supports [http.ResponseController].
func (w *sealedWriter) Unwrap() http.ResponseWriter { return w.Writer }

// writer adapts a response writer of net/http to [Writer].
type writer struct {
	http.ResponseWriter

	status  int
	size    int
	written bool
}

var _ Writer = (*writer)(nil)

// WriterOf returns w itself if it implements [Writer]. Otherwise it returns a Writer that writes to w.
func WriterOf(w http.ResponseWriter) Writer {
	if known, ok := w.(Writer); ok {
		return known
	}
	return &writer{ResponseWriter: w, status: http.StatusOK}
}

// WriteHeader sends status and header. Informational statuses may precede the final one.
func (w *writer) WriteHeader(code int) {
	w.ResponseWriter.WriteHeader(code) // panics if the status is invalid
	if !w.written && isFinal(code) {
		w.status, w.written = code, true
	}
}

// isFinal reports whether a status is final and not informational.
func isFinal(code int) bool {
	return code >= http.StatusOK || code == http.StatusSwitchingProtocols
}

// WriteHeaderNow implements [Writer].
func (w *writer) WriteHeaderNow() {
	if !w.written {
		w.WriteHeader(w.status)
	}
}

// Write writes a part of the body.
func (w *writer) Write(p []byte) (int, error) {
	w.written = true
	n, err := w.ResponseWriter.Write(p)
	w.size += n
	return n, err
}

// WriteString implements [io.StringWriter].
func (w *writer) WriteString(s string) (int, error) {
	w.written = true
	n, err := io.WriteString(w.ResponseWriter, s)
	w.size += n
	return n, err
}

// ReadFrom implements [io.ReaderFrom], because net/http uses it to copy files fast.
func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(w.ResponseWriter, r)
	w.written = w.written || n > 0
	w.size += int(n)
	return n, err
}

// Status implements [Writer].
func (w *writer) Status() int { return w.status }

// Size implements [Writer].
func (w *writer) Size() int {
	if !w.written {
		return -1
	}
	return w.size
}

// Written implements [Writer].
func (w *writer) Written() bool { return w.written }

// Flush implements [http.Flusher].
func (w *writer) Flush() { _ = w.FlushError() } //nolint:errcheck // Flush has no error

// FlushError implements Flush for [http.ResponseController].
func (w *writer) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.written = w.written || !errors.Is(err, http.ErrNotSupported)
	return err
}

// Hijack implements [http.Hijacker].
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.written = w.written || err == nil
	return conn, buffered, err
}

// CloseNotify implements [http.CloseNotifier]. It returns nil if the writer of net/http does not implement it.
func (w *writer) CloseNotify() <-chan bool {
	if n, ok := w.ResponseWriter.(http.CloseNotifier); ok { //nolint:staticcheck // handlers that ask for it get it
		return n.CloseNotify()
	}
	return nil
}

// Pusher implements [Writer].
func (w *writer) Pusher() http.Pusher {
	pusher, _ := w.ResponseWriter.(http.Pusher) //nolint:errcheck // nil is the answer
	return pusher
}

// Push implements [http.Pusher].
func (w *writer) Push(target string, opts *http.PushOptions) error {
	return push(w.Pusher(), target, opts)
}

func push(p http.Pusher, target string, opts *http.PushOptions) error {
	if p == nil {
		return http.ErrNotSupported
	}
	return p.Push(target, opts)
}

// Unwrap supports [http.ResponseController].
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
