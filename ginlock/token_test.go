package ginlock_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

// payAs returns the rule pay with another kind of lock.
func payAs(kind ruleset.Kind) ruleset.Rule {
	rule := pay
	rule.Kind = kind
	if kind == ruleset.Semaphore {
		rule.Permits = 1
	}
	return rule
}

// An answer of a handler that runs without the lock has no token.
func TestTokenHeader(t *testing.T) {
	t.Parallel()
	for _, strategy := range failpolicy.Strategies() {
		bubble(t, func(t *testing.T, s *shop) {
			rule := payAs(ruleset.Fenced)
			rule.OnBusy, rule.WaitTime = strategy, ruleset.NoWait
			if strategy == failpolicy.Fallback {
				rule.Fallback = "queue"
			}
			s.handle(t, http.MethodPost, payPath, rule, func(c *gin.Context) { c.Status(http.StatusOK) })
			s.redis.Take(payKey, time.Minute)
			w := s.do(t, request{})
			want(t, "header with "+string(strategy), w.Header().Get(failpolicy.TokenHeader), "")
		}, ginlock.WithTokenHeader(), fallback("queue"))
	}
}

// If an answer is discarded, the token header is discarded, too.
func TestTokenHeader_Discarded(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]any{{ginlock.WithTokenHeader()}, {ginlock.WithTokenHeader(), ginlock.WithBuffer(1 << 10)}} {
		bubble(t, func(t *testing.T, s *shop) {
			rule := payAs(ruleset.Fenced)
			rule.LeaseTime = time.Second
			s.handle(t, http.MethodPost, payPath, rule, func(*gin.Context) { time.Sleep(2 * time.Second) }) // virtual time
			w := s.do(t, request{})
			want(t, "status", w.Code, http.StatusInternalServerError)
			want(t, "header", w.Header().Get(failpolicy.TokenHeader), "")
		}, opts...)
	}
}
