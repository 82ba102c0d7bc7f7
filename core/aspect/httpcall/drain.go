package httpcall

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/interlock-go/interlock/core/aspect"
)

// An HTTP/1 server of net/http reads what is left of a body before it sends an answer,
// up to 256 KiB and however slowly they come, to use the connection again.
const (
	drainBytes = 256 << 10
	// drainTime is how long an answer that needs no body waits for one that is on its
	// way. After that the connection ends with the answer.
	drainTime = 50 * time.Millisecond
)

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// drain reads what nobody has read of the body, so that the answer need not wait for it.
func (x *exchange) drain(o *aspect.Outcome) {
	if o.Verdict == aspect.VerdictFallback {
		return // it has answered, and may have read it
	}
	if _, read := x.bodyRead(); !read {
		drain(x.router)
	}
	x.stopsWaiting()
}

// drain reads the body of a request whose handler does not run, as net/http would, but
// not for long. Where deadlines cannot be set it leaves that to the server.
func drain(router Router) {
	r := router.Request()
	body, begun := r.Body.(*ahead)
	if r.ProtoMajor != 1 || !hasBody(r) || !begun && r.Header.Get("Expect") != "" || begun && body.ended() {
		return // net/http sends the answer at once
	}
	connection := http.NewResponseController(router.Writer())
	if connection.SetReadDeadline(time.Now().Add(drainTime)) != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, r.Body, drainBytes); !errors.Is(err, io.EOF) {
		router.Writer().Header().Set("Connection", "close")
		return
	}
	_ = connection.SetReadDeadline(time.Time{}) //nolint:errcheck // it was possible a moment ago
}
