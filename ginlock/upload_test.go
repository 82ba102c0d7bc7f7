package ginlock_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// The bodies of waiters do not use up the window of an HTTP/2 connection, which the holder needs for its own body. A body
// that is too large to be read ahead does not wait.
func TestUpload_WaitersLeaveTheWindow(t *testing.T) {
	t.Parallel()
	for name, waiters := range map[string]adaptertest.Waiters{
		"one of 2 MiB":                  {N: 1, Size: 2 << 20, Status: []int{http.StatusConflict}},
		"one of 2 MiB, of unknown size": {N: 1, Size: 2 << 20, Unknown: true, Status: []int{http.StatusConflict}},
		"twenty of 64 KiB":              {N: 20, Size: 64 << 10, Status: []int{http.StatusAccepted}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShopIn(t, 30*time.Second)
			t.Cleanup(func() { s.close(t) })
			entered := make(chan struct{}, 1)
			s.handle(t, "POST", payPath, ruleset.Rule{Key: "order:#{path.id}", WaitTime: ruleset.WaitForever}, func(c *gin.Context) {
				if c.GetHeader(adaptertest.Holder) != "" {
					entered <- struct{}{}
				}
				_, err := io.Copy(io.Discard, c.Request.Body)
				want(t, "error", err, nil)
				c.Status(http.StatusAccepted)
			})
			adaptertest.ServeUploads(t, s.engine, payURL, entered, waiters)
		})
	}
}

// An answer to a client that still sends does not end with a TCP reset.
func TestUpload_EarlyAnswers(t *testing.T) {
	t.Parallel()
	byPath := ruleset.Rule{Key: "order:#{path.id}", WaitTime: ruleset.NoWait}
	waiting := byPath
	waiting.WaitTime = time.Second
	tests := map[string]struct {
		rule   ruleset.Rule
		slow   bool
		status int
	}{
		"busy":                             {byPath, false, http.StatusConflict},
		"busy, a slow client":              {byPath, true, http.StatusConflict},
		"busy after a wait, a slow client": {waiting, true, http.StatusConflict},
		"too large for a key":              {ruleset.Rule{Key: "order:#{body.id}"}, false, http.StatusRequestEntityTooLarge},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShopIn(t, 30*time.Second, ginlock.WithMaxBody(64<<10))
			t.Cleanup(func() { s.close(t) })
			s.handle(t, "POST", payPath, tt.rule, func(*gin.Context) { t.Error("the handler ran") })
			s.redis.Take(payKey, time.Hour)
			adaptertest.AnswerUploads(t, s.engine, payURL, adaptertest.Chunked, tt.slow, tt.status, nil)
		})
	}
}
