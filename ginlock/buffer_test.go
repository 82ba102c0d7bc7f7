package ginlock_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/ginlock"
)

// lateWriter counts the writes while the lock was held.
type lateWriter struct {
	*httptest.ResponseRecorder
	held   func() bool
	during int // writes under the lock
}

func (w *lateWriter) Write(p []byte) (int, error) {
	if w.held() {
		w.during++
	}
	return w.ResponseRecorder.Write(p)
}

func TestBuffer_SendsAfterTheRelease(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789", 10_000)
	tests := map[string]struct {
		limit  int
		during bool
	}{
		"within the limit": {1 << 20, false},
		"beyond the limit": {1 << 10, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				s.handle(t, "POST", payPath, pay, func(c *gin.Context) {
					c.Header("X-Set", "yes")
					c.Status(http.StatusCreated)
					c.Writer.Flush()
					for chunk := range strings.SplitSeq(large, "9") {
						if _, err := c.Writer.WriteString(chunk + "9"); err != nil {
							t.Error(err)
						}
					}
				})
				w := &lateWriter{ResponseRecorder: httptest.NewRecorder(), held: func() bool { return s.held(t, payKey) }}
				s.engine.ServeHTTP(w, request{}.build())
				want(t, "sent under the lock", w.during > 0, tt.during)
				want(t, "status", w.Code, http.StatusCreated)
				want(t, "header", w.Header().Get("X-Set"), "yes")
				want(t, "body", strings.HasPrefix(w.Body.String(), large), true)
			}, ginlock.WithBuffer(tt.limit, "POST "+payPath))
		})
	}
}

func TestBuffer_Writer(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(func(c *gin.Context) {
			c.Header("X-Remove", "me")
			outer := c.Writer
			c.Next()
			want(t, "writer put back", c.Writer, outer)
			want(t, "status for the log", c.Writer.Status(), http.StatusAccepted)
			want(t, "size for the log", c.Writer.Size(), 5)
		})
		s.handle(t, "POST", payPath, pay, func(c *gin.Context) {
			w := c.Writer
			want(t, "written at first", w.Written(), false)
			want(t, "size at first", w.Size(), -1)
			w.Header().Del("X-Remove")
			w.WriteHeader(http.StatusAccepted)
			want(t, "status", w.Status(), http.StatusAccepted)
			if _, err := w.Write([]byte("he")); err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusTeapot)
			want(t, "status is final", w.Status(), http.StatusAccepted)
			if _, err := w.WriteString("llo"); err != nil {
				t.Error(err)
			}
			want(t, "size", w.Size(), 5)
			want(t, "written", w.Written(), true)
			want(t, "flush", http.NewResponseController(w).Flush(), nil)
			if _, _, err := w.Hijack(); err == nil {
				t.Error("Hijack after a write: no error")
			}
		})
		w := s.do(t, request{})
		want(t, "status", w.Code, http.StatusAccepted)
		want(t, "body", w.Body.String(), "hello")
		want(t, "removed header", w.Header().Get("X-Remove"), "")
	}, ginlock.WithBuffer(5))
}

func TestBuffer_StatusWithoutBody(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.handle(t, "POST", payPath, pay, func(c *gin.Context) { c.Status(http.StatusNoContent) })
		w := s.do(t, request{})
		want(t, "status", w.Code, http.StatusNoContent)
		want(t, "body", bytes.Equal(w.Body.Bytes(), nil), true)
	}, ginlock.WithBuffer(5))
}

// Libraries for WebSockets send the status before they hijack the connection.
func TestBuffer_SwitchesProtocols(t *testing.T) {
	t.Parallel()
	s := newShopIn(t, time.Minute, ginlock.WithBuffer(1<<10))
	defer s.close(t)
	s.handle(t, http.MethodGet, payPath, pay, func(c *gin.Context) {
		c.Header("Upgrade", "echo")
		c.Header("Connection", "Upgrade")
		c.Writer.WriteHeader(http.StatusSwitchingProtocols)
		c.Writer.WriteHeaderNow()
		conn, _, err := http.NewResponseController(c.Writer).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "hello")
	})
	server := httptest.NewServer(s.engine)
	defer server.Close()
	r, err := http.NewRequest(http.MethodGet, server.URL+payURL, http.NoBody)
	must(t, err)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	response, err := server.Client().Do(r)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	want(t, "status", response.StatusCode, http.StatusSwitchingProtocols)
	want(t, "protocol", response.Header.Get("Upgrade"), "echo")
	want(t, "body", string(body), "hello")
}

// gin ignores a status below 1. The last valid status counts.
func TestBuffer_InvalidStatus(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.handle(t, "POST", payPath, pay, func(c *gin.Context) {
			c.Status(http.StatusEarlyHints)
			c.Status(http.StatusAccepted)
			c.Status(0)
			c.Status(-1)
		})
		want(t, "status", s.do(t, request{}).Code, http.StatusAccepted)
	}, ginlock.WithBuffer(5))
}
