package ginlock_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/ginlock"
)

// A client that has closed its side of the connection is gone for net/http, and yet
// can read: what it reads is an answer.
func TestGone_HalfClosedClientReadsAStatusThatExists(t *testing.T) {
	t.Parallel()
	tests := map[string][]any{"": nil, "with a buffer": {ginlock.WithBuffer(1 << 10)}}
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, srv := tcp(t, options...)
			logged := make(chan int, 1)
			rule := pay
			rule.WaitTime = 30 * time.Second
			inner := rule
			inner.Name, inner.Key = "inner", "inner"
			s.engine.Use(func(c *gin.Context) { c.Next(); logged <- c.Writer.Status() }, gin.ErrorLogger())
			s.engine.POST(payPath, s.guard.Handler(rule), s.guard.Handler(inner), func(*gin.Context) { t.Error("the handler ran") })
			s.redis.Take(prefix+"inner", time.Hour)

			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
			must(t, err)
			defer conn.Close()
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n\r\n", payURL)
			for s.locks.Stats().Waiters == 0 && t.Context().Err() == nil {
				runtime.Gosched()
			}
			must(t, conn.(*net.TCPConn).CloseWrite())
			answer, err := io.ReadAll(conn)
			want(t, "error", err, nil)
			want(t, "status in the log", <-logged, 499)
			head, body, _ := strings.Cut(string(answer), "\r\n\r\n")
			want(t, "body", body, "")
			if !strings.HasPrefix(head, "HTTP/1.1 503 ") {
				t.Errorf("the client read %q", answer)
			}
		})
	}
}

// Nor is a request always without a reader whose context was cancelled: a server may
// cancel those of all when it goes down.
func TestGone_CancelledByTheServerReadsAStatusThatExists(t *testing.T) {
	t.Parallel()
	base, shutdown := context.WithCancel(context.Background())
	defer shutdown()
	serving(t, func(server *http.Server) {
		server.BaseContext = func(net.Listener) context.Context { return base }
	}, func(t *testing.T, s *online) {
		s.engine.POST(payPath, s.guard.Handler(pay), func(*gin.Context) { t.Error("the handler ran") })
		s.redis.Take(payKey, time.Hour)
		time.AfterFunc(time.Second, shutdown)
		status, body, err := s.post(t)
		want(t, "error", err, nil)
		want(t, "status", status, http.StatusServiceUnavailable)
		want(t, "body", body, "")
	})
}
