package httpcall

import (
	"net/http"
	"time"
)

// answerBy is when net/http stops to take the answer to a request, the zero time if
// never. Its clock began when the header had been read, which it tells nobody: now, when
// the guard sees the request first, is a little later.
func answerBy(r *http.Request) time.Time {
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if !ok || server.WriteTimeout <= 0 {
		return time.Time{}
	}
	return time.Now().Add(server.WriteTimeout)
}
