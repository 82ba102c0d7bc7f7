package ginlock_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// situations are the requests that every rule gets, each in a shop of its own.
var situations = map[string]func(t *testing.T, s *shop) string{
	"free": func(_ *testing.T, s *shop) string { return answerTo(s, "id=42") },
	"busy": func(_ *testing.T, s *shop) string {
		s.redis.Take(payKey, time.Minute)
		begin := time.Now()
		answer := answerTo(s, "id=42")
		return fmt.Sprintf("%safter %v\n", answer, time.Since(begin).Round(time.Second))
	},
	"crowd": func(_ *testing.T, s *shop) string {
		s.redis.Take(payKey, time.Minute)
		answers := make([]string, 3)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i] = answerTo(s, "id=42") })
			synctest.Wait() // one after the other
		}
		wg.Wait()
		return strings.Join(answers, "")
	},
	"backend": func(_ *testing.T, s *shop) string { s.redis.Down(); return answerTo(s, "id=42") },
	"no key":  func(_ *testing.T, s *shop) string { return answerTo(s, "") },
	"odd key": func(_ *testing.T, s *shop) string { return answerTo(s, "id=a%7Db") },
	"twice":   func(_ *testing.T, s *shop) string { return answerTo(s, "id=42") + answerTo(s, "id=42") },
	"late": func(t *testing.T, s *shop) string {
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		return answerOf(s, request{ctx: ctx, url: "/pay?id=42"})
	},
	"long": func(_ *testing.T, s *shop) string { return answerTo(s, "id=42&work=1m") },
}

// answerTo is all that a client and a log see of a request to /pay.
func answerTo(s *shop, query string) string { return answerOf(s, request{url: "/pay?" + query}) }

func answerOf(s *shop, r request) string {
	w := serve(s, r)
	if w.Header().Get("Retry-After") != "" {
		w.Header().Set("Retry-After", "some") // jittered
	}
	return describeAnswer(w)
}

func describeAnswer(w *httptest.ResponseRecorder) string {
	var text strings.Builder
	fmt.Fprintln(&text, w.Code)
	for _, name := range slices.Sorted(maps.Keys(w.Header())) {
		fmt.Fprintf(&text, "%s: %s\n", name, w.Header()[name])
	}
	fmt.Fprintf(&text, "%s\n", w.Body)
	return text.String()
}

// workAndTell is a handler that says which lock it has, for how long, with which token,
// and how it ends.
func workAndTell(c *gin.Context) {
	work, _ := time.ParseDuration(c.Query("work")) // most do not work
	left := ginlock.Hold(c).Remaining().Round(time.Second)
	key, token := ginlock.Hold(c).Key(), ginlock.Hold(c).Token()
	ended := "kept"
	select {
	case <-c.Request.Context().Done():
	case <-time.After(work):
	}
	if c.Request.Context().Err() != nil {
		ended = "ended"
	}
	c.String(http.StatusOK, "%s %v %s %d", key, left, ended, token)
}

// transcript is what clients see of a set of rules in every situation.
func transcript(t *testing.T, set *ruleset.Set) string {
	t.Helper()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(situations)) {
		synctest.Test(t, func(t *testing.T) {
			s := newShop(t, ginlock.WithBuffer(1<<10), fallback("queue"), fallback("later"))
			s.engine.Use(func(c *gin.Context) {
				c.Next()
				for _, e := range c.Errors {
					c.Header("X-Errors", strings.SplitN(e.Error(), "\n", 2)[0])
				}
			})
			s.engine.Use(s.guard.Middleware(set))
			s.engine.POST("/pay", workAndTell)
			fmt.Fprintf(&text, "--- %s\n%s", name, situations[name](t, s))
			s.redis.Up()
			s.close(t)
		})
	}
	return text.String()
}

func fallback(name string) ginlock.Option {
	return ginlock.WithFallback(name, func(c *gin.Context) { c.String(http.StatusAccepted, name) })
}
