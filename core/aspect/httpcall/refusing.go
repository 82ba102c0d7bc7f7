package httpcall

import (
	"net/http"

	"github.com/interlock-go/interlock/core/aspect"
)

// refusing is the writer that an error writer gets. An answer that begins without a status has the
// status of the refusal, because net/http would make it a success.
type refusing struct {
	Writer

	status int // of the refusal; 0 when the error writer has given another one
}

// writeError has the error writer answer.
func (x *exchange) writeError(refusal *aspect.RefusedError) {
	w := x.router.Writer()
	x.router.SetWriter(&refusing{Writer: w, status: refusal.Status.HTTP})
	defer x.router.SetWriter(w)
	x.router.WriteError(refusal)
}

// WriteHeader sets the status.
func (w *refusing) WriteHeader(code int) {
	if isFinal(code) {
		w.status = 0
	}
	w.Writer.WriteHeader(code)
}

// begin sets the status of the refusal before anything is sent without one.
func (w *refusing) begin() {
	if w.status != 0 {
		w.WriteHeader(w.status)
	}
}

// WriteHeaderNow sends status and header.
func (w *refusing) WriteHeaderNow() {
	w.begin()
	w.Writer.WriteHeaderNow()
}

// Write writes a part of the body.
func (w *refusing) Write(p []byte) (int, error) {
	w.begin()
	return w.Writer.Write(p)
}

// WriteString writes a part of the body.
func (w *refusing) WriteString(s string) (int, error) {
	w.begin()
	return w.Writer.WriteString(s)
}

// Flush sends what is written.
func (w *refusing) Flush() { _ = w.FlushError() } //nolint:errcheck // Flush has no error

// FlushError is Flush for [http.ResponseController].
func (w *refusing) FlushError() error {
	w.begin()
	return http.NewResponseController(w.Writer).Flush()
}

// Unwrap serves [http.ResponseController].
func (w *refusing) Unwrap() http.ResponseWriter { return w.Writer }
