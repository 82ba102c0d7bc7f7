package httpcall

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// writer is a response of net/http that tells what became of it.
type writer struct {
	http.ResponseWriter

	status  int
	size    int
	written bool
}

var _ Writer = (*writer)(nil)

// WriterOf is a response of net/http as a [Writer]: w itself where it is one.
func WriterOf(w http.ResponseWriter) Writer {
	if known, ok := w.(Writer); ok {
		return known
	}
	return &writer{ResponseWriter: w, status: http.StatusOK}
}

// WriteHeader sends status and header. Informational ones may come before.
func (w *writer) WriteHeader(code int) {
	w.ResponseWriter.WriteHeader(code) // panics if the status is invalid
	if !w.written && isFinal(code) {
		w.status, w.written = code, true
	}
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

// ReadFrom implements [io.ReaderFrom], which net/http has a fast one of for files.
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

// FlushError is Flush for [http.ResponseController].
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

// CloseNotify implements [http.CloseNotifier]; the channel is nil where there is none.
func (w *writer) CloseNotify() <-chan bool {
	if n, ok := w.ResponseWriter.(http.CloseNotifier); ok { //nolint:staticcheck // who asks for it gets it
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

// Unwrap serves [http.ResponseController].
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// answerBy is when net/http stops to take the answer to a request, the zero time if
// never. Its clock began when the header had been read, which net/http does not show: now, when
// the guard sees the request first, is a little later.
func answerBy(r *http.Request) time.Time {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok || server.WriteTimeout <= 0 {
		return time.Time{}
	}
	return time.Now().Add(server.WriteTimeout)
}
