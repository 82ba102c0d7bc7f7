package ginlock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// tcp starts a shop behind a real HTTP server.
func tcp(t *testing.T, opts ...any) (*shop, *httptest.Server) {
	t.Helper()
	s := newShopIn(t, 30*time.Second, opts...)
	srv := httptest.NewServer(s.engine)
	t.Cleanup(func() {
		srv.Close()
		s.close(t)
	})
	return s, srv
}

// post sends a request over a new connection and reads the whole answer.
func post(ctx context.Context, url string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return 0, "", err
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

func TestNetwork_ClientLeaves(t *testing.T) {
	t.Parallel()
	s, srv := tcp(t)
	entered, cause := make(chan struct{}), make(chan error, 1)
	s.handle(t, "POST", payPath, pay, func(c *gin.Context) {
		close(entered)
		<-c.Request.Context().Done()
		cause <- context.Cause(c.Request.Context())
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	_, _, err := post(ctx, srv.URL+payURL)
	wantErr(t, "the client", err, context.Canceled)
	wantErr(t, "cause", <-cause, context.Canceled)
	lockOnce(t, s)
}

// lockOnce waits until the lock of an order can be acquired.
func lockOnce(t testing.TB, s *shop) {
	t.Helper()
	err := s.locks.Lock("order:42").Do(context.Background(), func(context.Context) error { return nil }, core.WaitTime(10*time.Second))
	want(t, "the next one", err, nil)
}

func TestNetwork_ErrAbortHandler(t *testing.T) {
	t.Parallel()
	s, srv := tcp(t)
	s.handle(t, "POST", payPath, pay, func(c *gin.Context) {
		c.String(http.StatusOK, "half")
		c.Writer.Flush()
		panic(http.ErrAbortHandler)
	})
	_, _, err := post(t.Context(), srv.URL+payURL)
	wantErr(t, "the client", err, io.ErrUnexpectedEOF)
	lockOnce(t, s)
}

// page answers with a page of known length, flushes it, and returns when the test allows it.
func page(end <-chan struct{}) gin.HandlerFunc {
	large := strings.Repeat("x", 100_000)
	return func(c *gin.Context) {
		c.Header("Content-Length", strconv.Itoa(len(large)))
		c.String(http.StatusOK, large)
		c.Writer.Flush()
		<-end
	}
}

func TestNetwork_LargeResponseWithoutABuffer(t *testing.T) {
	t.Parallel()
	s, srv := tcp(t)
	rule := pay
	rule.WaitTime = ruleset.NoWait
	end := make(chan struct{})
	s.handle(t, "POST", payPath, rule, page(end))
	defer close(end)
	for i, status := range []int{http.StatusOK, http.StatusConflict} { // the first answer is complete, but the handler still holds the lock
		got, _, err := post(t.Context(), srv.URL+payURL)
		want(t, "error", err, nil)
		want(t, "request "+strconv.Itoa(i), got, status)
	}
}

func TestNetwork_LargeResponseWithABuffer(t *testing.T) {
	t.Parallel()
	s, srv := tcp(t, ginlock.WithBuffer(1<<20))
	rule := pay
	rule.WaitTime = ruleset.NoWait
	end := make(chan struct{})
	close(end)
	s.handle(t, "POST", payPath, rule, page(end))
	for range 50 {
		status, body, err := post(t.Context(), srv.URL+payURL)
		want(t, "error", err, nil)
		if status != http.StatusOK || len(body) != 100_000 {
			t.Fatalf("got %d with %d bytes: %.200s", status, len(body), body)
		}
	}
}

func TestNetwork_HijackUnderABuffer(t *testing.T) {
	t.Parallel()
	s, srv := tcp(t, ginlock.WithBuffer(1<<20))
	s.handle(t, "GET", "/ws/:id", ruleset.Rule{Key: "ws:#{path.id}"}, func(c *gin.Context) {
		conn, _, err := c.Writer.Hijack()
		if err != nil {
			t.Errorf("Hijack: %v", err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\nhello\n")
	})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /ws/1 HTTP/1.1\r\nHost: shop\r\n\r\n")
	text, err := io.ReadAll(bufio.NewReader(conn))
	want(t, "error", err, nil)
	want(t, "what the client read", strings.HasSuffix(string(text), "hello\n"), true)
}

// An answer that needs no body does not wait for a body that arrives slowly, and net/http does not either.
func TestNetwork_SlowBody(t *testing.T) {
	t.Parallel()
	rules := map[string]struct {
		rule   ruleset.Rule
		typ    string
		status string
	}{
		"a full queue":            {ruleset.Rule{Key: "order:#{path.id}", WaitTime: 30 * time.Second, MaxWaiters: 1}, "application/json", "429"},
		"another type":            {ruleset.Rule{Key: "order:#{body.id}"}, "text/plain", "415"},
		"a missing header":        {ruleset.Rule{Key: `order:#{body.id}:#{header["X-Tenant"]}`}, "application/json", "400"},
		"a lock that is acquired": {ruleset.Rule{Key: "order:#{path.id}", WaitTime: ruleset.NoWait}, "application/json", "409"},
	}
	for name, tt := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, srv := tcp(t)
			s.handle(t, "POST", payPath, tt.rule, func(*gin.Context) { t.Error("the handler ran") })
			s.redis.Take(payKey, time.Hour)
			if tt.rule.MaxWaiters > 0 {
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, _, _ = post(ctx, srv.URL+payURL)
				}()
				defer func() { cancel(); <-done }()
				for s.locks.Stats().Waiters == 0 {
					runtime.Gosched()
				}
			}
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: shop\r\nContent-Type: %s\r\nContent-Length: 1000\r\n\r\n{", payURL, tt.typ)
			line, err := bufio.NewReader(conn).ReadString('\n')
			want(t, "error", err, nil)
			want(t, "answer", strings.HasPrefix(line, "HTTP/1.1 "+tt.status), true)
		})
	}
}

// A client that has sent its body keeps its connection, even if the guard has not read the body.
func TestNetwork_RefusalKeepsTheConnection(t *testing.T) {
	t.Parallel()
	s, srv := tcp(t)
	s.handle(t, "POST", payPath, ruleset.Rule{Key: "order:#{path.id}", WaitTime: ruleset.NoWait}, ok)
	s.redis.Take(payKey, time.Hour)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for i := range 3 {
		body := strings.Repeat("x", 1000)
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", payURL, len(body), body)
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		_, err = io.Copy(io.Discard, res.Body)
		want(t, "error", err, nil)
		want(t, "status", res.StatusCode, http.StatusConflict)
		want(t, "the connection ends", res.Close, false)
	}
}
