package ginlock_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
)

// only runs a handler for the requests that ask for it.
func only(name string, h gin.HandlerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if slices.Contains(c.QueryArray("run"), name) {
			h(c)
		}
	}
}

// Handlers without names may run for some requests of a route only, in any order of
// those: the names of their rules are the route's, not the first request's.
func TestHandler_ThatRunsForSomeRequestsOnly(t *testing.T) {
	t.Parallel()
	requests := []string{"", "?run=a", "?run=b", "?run=a&run=b"}
	for order := range permutations(requests) {
		rec := &record{}
		bubble(t, func(t *testing.T, s *shop) {
			handler := func(key string) gin.HandlerFunc {
				return s.guard.Handler(ruleset.Rule{Key: key, WaitTime: ruleset.NoWait})
			}
			s.engine.POST(payPath, only("a", handler("a")), only("b", handler("b")), handler("always"), ok)
			for _, query := range slices.Concat(order, order) {
				want(t, "status of "+query, s.do(t, request{url: payURL + query}).Code, http.StatusNoContent)
			}
			for key, query := range map[string]string{"a": "?run=a", "b": "?run=a&run=b", "always": ""} {
				s.redis.Take(prefix+key, time.Hour)
				want(t, key+" taken", s.do(t, request{url: payURL + query}).Code, http.StatusConflict)
				s.redis.Free(prefix + key)
			}
			var names []string
			for _, info := range rec.rules {
				names = append(names, info.Rule)
			}
			wantAll(t, "names", names, "POST "+payPath, "POST "+payPath+" (2)", "POST "+payPath+" (3)")
		}, core.WithObserver(rec.observer()))
	}
}

// permutations are all orders of a list.
func permutations(list []string) func(yield func([]string) bool) {
	var from func(done, rest []string, yield func([]string) bool) bool
	from = func(done, rest []string, yield func([]string) bool) bool {
		if len(rest) == 0 {
			return yield(done)
		}
		for i := range rest {
			others := slices.Delete(slices.Clone(rest), i, i+1)
			if !from(append(slices.Clip(done), rest[i]), others, yield) {
				return false
			}
		}
		return true
	}
	return func(yield func([]string) bool) { from(nil, list, yield) }
}

func TestHandler_WithoutNamesMetAtTheSameTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		handler := func(key string) gin.HandlerFunc { return s.guard.Handler(ruleset.Rule{Key: key}) }
		s.engine.POST(payPath, only("a", handler("a")), only("b", handler("b")), ok)
		var requests sync.WaitGroup
		for range 10 {
			for _, query := range []string{"?run=a", "?run=b", "?run=a&run=b"} {
				requests.Go(func() {
					want(t, "status of "+query, s.do(t, request{url: payURL + query}).Code, http.StatusNoContent)
				})
			}
		}
		requests.Wait()
	})
}

// One that is made anew for every request is the same each time.
func TestHandler_MadeWithinAHandler(t *testing.T) {
	t.Parallel()
	rec := &record{}
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.POST(payPath, func(c *gin.Context) { s.guard.Handler(pay)(c) }, ok)
		for range 20 {
			want(t, "status", s.do(t, request{}).Code, http.StatusNoContent)
		}
		want(t, "rules told", len(rec.rules), 1)
		want(t, "name", rec.rules[0].Rule, "POST "+payPath)
		s.redis.Take(payKey, time.Hour)
		want(t, "taken", s.do(t, request{}).Code, http.StatusConflict)
	}, core.WithObserver(rec.observer()))
}
