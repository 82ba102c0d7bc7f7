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
