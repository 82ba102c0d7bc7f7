package httpcall

import (
	"net/http"
)

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

// Status is that of the answer.
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
