package ginlock_test

import (
	"io"
	"net/http"
	"testing"
	"testing/iotest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
)

// writeTimeout configures a server for HTTP/1.1 and HTTP/2.
func writeTimeout(d time.Duration) func(*http.Server) {
	return func(server *http.Server) {
		server.WriteTimeout = d
		server.Protocols = new(http.Protocols)
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
	}
}

// patient is a rule with a wait time that is longer than the timeouts of all servers in these tests.
var patient = ruleset.Rule{Key: "order:#{path.id}", WaitTime: time.Minute}

func TestWriteTimeout_EndsTheWait(t *testing.T) {
	t.Parallel()
	forever, short := patient, patient
	forever.WaitTime, short.WaitTime = ruleset.WaitForever, time.Second
	tests := map[string]struct {
		rule    ruleset.Rule
		timeout time.Duration
		waits   time.Duration
	}{
		"a tenth is left over":                 {patient, 10 * time.Second, 9 * time.Second},
		"at least 50 ms are left over":         {patient, 200 * time.Millisecond, 150 * time.Millisecond},
		"one attempt if the timeout is short":  {patient, 40 * time.Millisecond, 0},
		"waiting for ever":                     {forever, 10 * time.Second, 9 * time.Second},
		"the wait time of the rule is shorter": {short, 10 * time.Second, time.Second},
		"a negative timeout is none":           {patient, -1, time.Minute},
	}
	for name, tt := range tests {
		for protocol, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
			t.Run(name+" over "+protocol, func(t *testing.T) {
				t.Parallel()
				serveShop(t, writeTimeout(tt.timeout), func(t *testing.T, s *servedShop) {
					s.speak(h2)
					s.handle(t, "POST", payPath, tt.rule, func(*gin.Context) { t.Error("the handler ran") })
					s.redis.Take(payKey, time.Hour)
					start := time.Now()
					status, body, err := s.post(t)
					want(t, "error", err, nil)
					want(t, "status", status, http.StatusConflict)
					wantBody(t, body, "problem")
					want(t, "waited", time.Since(start).Round(10*time.Millisecond), tt.waits)
				})
			})
		}
	}
}

// speak chooses the protocol of the client.
func (o *servedShop) speak(h2 bool) {
	transport := o.client.Transport.(*http.Transport)
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(!h2)
	transport.Protocols.SetUnencryptedHTTP2(h2)
}

func TestWriteTimeout_HandlerHasNoDeadline(t *testing.T) {
	t.Parallel()
	serveShop(t, writeTimeout(40*time.Millisecond), func(t *testing.T, s *servedShop) {
		s.handle(t, "POST", payPath, patient, func(c *gin.Context) {
			_, limited := c.Request.Context().Deadline()
			want(t, "the handler's context has a deadline", limited, false)
			c.Status(http.StatusNoContent)
		})
		status, _, err := s.post(t)
		want(t, "error", err, nil)
		want(t, "status", status, http.StatusNoContent)
	})
}

// A lock that becomes free before the end of the wait is acquired.
func TestWriteTimeout_LockFreedInTime(t *testing.T) {
	t.Parallel()
	serveShop(t, writeTimeout(10*time.Second), func(t *testing.T, s *servedShop) {
		s.handle(t, "POST", payPath, patient, answerPaid)
		s.redis.Take(payKey, 8*time.Second)
		status, body, err := s.post(t)
		want(t, "error", err, nil)
		want(t, "status", status, http.StatusOK)
		want(t, "body", body, "paid")
	})
}

// The write timeout counts from the time at which the first guard got the request, not from the start of the
// wait. Reading the body and waiting in outer guards happen before the wait.
func TestWriteTimeout_CountsFromTheFirstGuard(t *testing.T) {
	t.Parallel()
	t.Run("a slow body", func(t *testing.T) {
		t.Parallel()
		serveShop(t, writeTimeout(10*time.Second), func(t *testing.T, s *servedShop) {
			s.handle(t, "POST", payPath, ruleset.Rule{Key: "order:#{body.id}", WaitTime: time.Minute}, func(*gin.Context) { t.Error("the handler ran") })
			s.redis.Take(payKey, time.Hour)
			slow, end := io.Pipe()
			time.AfterFunc(5*time.Second, func() {
				_, _ = io.WriteString(end, `{"id":42}`)
				_ = end.Close()
			})
			start := time.Now()
			res, err := s.client.Post("http://shop"+payURL, "application/json", iotest.OneByteReader(slow))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			want(t, "status", res.StatusCode, http.StatusConflict)
			want(t, "took", time.Since(start).Round(10*time.Millisecond), 9500*time.Millisecond)
		})
	})
	t.Run("a middleware between guards", func(t *testing.T) {
		t.Parallel()
		serveShop(t, writeTimeout(10*time.Second), func(t *testing.T, s *servedShop) {
			disabled := ruleset.Rule{Name: "outer", Key: "outer", Disabled: true}
			s.engine.POST(payPath, s.guard.Handler(disabled), func(*gin.Context) { time.Sleep(5 * time.Second) }, // virtual time
				s.guard.Handler(patient), func(*gin.Context) { t.Error("the handler ran") })
			s.redis.Take(payKey, time.Hour)
			start := time.Now()
			status, _, err := s.post(t)
			want(t, "error", err, nil)
			want(t, "status", status, http.StatusConflict)
			want(t, "took", time.Since(start).Round(10*time.Millisecond), 9500*time.Millisecond)
		})
	})
}
