package httpcall

import "net/http"

// Writer is a response that tells what became of it. It has the methods of gin's
// ResponseWriter, so that each is the other.
//
// WriteHeader may only note the status; WriteHeaderNow sends it.
type Writer interface {
	http.ResponseWriter
	http.Hijacker
	http.Flusher
	http.CloseNotifier //nolint:staticcheck // gin has it

	// Status is the status of the answer, 200 before there is one.
	Status() int
	// Size is how many bytes the body has, -1 before anything is written.
	Size() int
	// WriteString writes a part of the body.
	WriteString(s string) (int, error)
	// Written reports whether status and header are final.
	Written() bool
	// WriteHeaderNow makes status and header final.
	WriteHeaderNow()
	// Pusher is for HTTP/2 push, nil if there is none.
	Pusher() http.Pusher
}

// respond gives a whole answer. A content type that an error writer has set before stays.
func respond(w Writer, status int, contentType string, body []byte) {
	if h := w.Header(); h.Get("Content-Type") == "" {
		h.Set("Content-Type", contentType)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:errcheck // the client is gone: nobody to tell
}

// final is the writer of a request whose answer is settled: it is the guard's, and
// what middlewares outside would add to it, because they see its status or its error,
// is dropped.
type final struct {
	Writer // where the answer is

	status int // to show
}

// settle makes the answer of a request the only one. Access logs see the status.
func settle(r Router, status int) {
	r.SetWriter(&final{Writer: r.Writer(), status: status})
}

// Status returns the status of the answer.
func (w *final) Status() int { return w.status }

// WriteHeader does nothing.
func (w *final) WriteHeader(int) {}

// WriteHeaderNow does nothing: who settled the answer has sent it, or gin does.
func (w *final) WriteHeaderNow() {}

// Write takes p for written.
func (w *final) Write(p []byte) (int, error) { return len(p), nil }

// WriteString takes s for written.
func (w *final) WriteString(s string) (int, error) { return len(s), nil }

// Unwrap serves [http.ResponseController].
func (w *final) Unwrap() http.ResponseWriter { return w.Writer }
