package httpcall

import (
	"net/http"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/failpolicy"
)

// ownHeader prepares the header of an answer that the guard gives instead of the handler's. Layers
// around the guard may have described the handler's answer there, or allowed caches to keep it:
// those headers are removed, and caches must not store the guard's answer. Other headers stay: CORS,
// Vary, security and tracing headers hold for every answer, and a Set-Cookie belongs to the
// session of the client, whatever this answer is.
func ownHeader(h http.Header) {
	encoded := encodes(h)
	for name := range h {
		if ofAnswer(http.CanonicalHeaderKey(name)) && (name != "Content-Encoding" || !encoded) {
			delete(h, name)
		}
	}
	h.Set("Cache-Control", "no-store")
}

// ofAnswer reports whether a header describes one answer, or says how long to keep it.
func ofAnswer(name string) bool {
	switch name {
	case "Accept-Ranges", "Age", "Digest", "Etag", "Expires", "Last-Modified", "Pragma", "Repr-Digest", "Surrogate-Control",
		"Trailer", "Transfer-Encoding", "X-Accel-Expires", failpolicy.StatusHeader, failpolicy.TokenHeader:
		return true
	default: // such as Content-Type and CDN-Cache-Control
		return strings.HasPrefix(name, "Content-") && !strings.HasPrefix(name, "Content-Security-Policy") ||
			strings.HasSuffix(name, "Cache-Control")
	}
}

// encodes reports whether a layer around the guard compresses every answer: it then has named
// Accept-Encoding in Vary, and its Content-Encoding is right for the guard's answer, too.
func encodes(h http.Header) bool {
	return slices.ContainsFunc(h.Values("Vary"), func(value string) bool {
		return strings.Contains(strings.ToLower(value), "accept-encoding")
	})
}
