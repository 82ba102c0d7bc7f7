package ginlock

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// An HTTP/1 server of net/http reads what is left of a body before it sends an answer,
// up to 256 KiB and however slowly they come, to use the connection again.
const (
	drainBytes = 256 << 10
	// drainTime is how long an answer that needs no body waits for one that is on its
	// way. After that the connection ends with the answer.
	drainTime = 50 * time.Millisecond
)

// drain reads the body of a request whose handler does not run, as net/http would, but
// not for long. Where deadlines cannot be set it leaves that to the server.
func drain(c *gin.Context) {
	r := c.Request
	if r.ProtoMajor != 1 || !hasBody(r) || r.Header.Get("Expect") != "" {
		return // net/http sends the answer at once
	}
	connection := http.NewResponseController(c.Writer)
	if connection.SetReadDeadline(time.Now().Add(drainTime)) != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, r.Body, drainBytes); !errors.Is(err, io.EOF) {
		c.Header("Connection", "close")
		return
	}
	_ = connection.SetReadDeadline(time.Time{}) //nolint:errcheck // it was possible a moment ago
}
