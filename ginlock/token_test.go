package ginlock_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

// as is the rule pay with another kind of lock.
func as(kind ruleset.Kind) ruleset.Rule {
	rule := pay
	rule.Kind = kind
	if kind == ruleset.Semaphore {
		rule.Permits = 1
	}
	return rule
}

// eachToken calls test for every kind of lock, with and without the wish for a token; thereIsOne
// says whether the lock has one.
func eachToken(t *testing.T, test func(rule ruleset.Rule, thereIsOne bool)) {
	t.Helper()
	for _, kind := range ruleset.Kinds() {
		test(as(kind), kind.HasToken())
		if rule := as(kind); !kind.Shared() {
			rule.Token = true
			test(rule, true)
		}
	}
}

func TestToken_IsTheHandlers(t *testing.T) {
	t.Parallel()
	eachToken(t, func(rule ruleset.Rule, thereIsOne bool) {
		bubble(t, func(t *testing.T, s *shop) {
			var tokens []int64
			s.handle(t, http.MethodPost, payPath, rule, func(c *gin.Context) {
				held, ok := core.Held(c.Request.Context(), "order:42")
				want(t, "held", ok, true)
				want(t, "token of core.Held", held.Token(), ginlock.Hold(c).Token())
				tokens = append(tokens, ginlock.Hold(c).Token())
			})
			for range 2 {
				w := s.do(t, request{})
				want(t, "header without the option", w.Header().Get(failpolicy.TokenHeader), "")
			}
			want(t, "first token of "+string(rule.Kind), tokens[0] > 0, thereIsOne)
			want(t, "second token of "+string(rule.Kind), tokens[1] > tokens[0], thereIsOne)
		})
	})
}

func TestTokenHeader_ForKindsWithTokens(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]any{{ginlock.WithTokenHeader()}, {ginlock.WithTokenHeader(), ginlock.WithBuffer(1 << 10)}} {
		eachToken(t, func(rule ruleset.Rule, thereIsOne bool) {
			bubble(t, func(t *testing.T, s *shop) {
				s.handle(t, http.MethodPost, payPath, rule, func(c *gin.Context) {
					c.String(http.StatusOK, strconv.FormatInt(ginlock.Hold(c).Token(), 10))
				})
				for range 2 {
					w := s.do(t, request{})
					token := w.Body.String()
					if !thereIsOne {
						token = ""
					}
					want(t, "status", w.Code, http.StatusOK)
					want(t, "header of "+string(rule.Kind), w.Header().Get(failpolicy.TokenHeader), token)
				}
			}, opts...)
		})
	}
}

// Who does not run under the lock has no token, whatever the answer.
func TestTokenHeader_OnlyOfAHandlerUnderItsLock(t *testing.T) {
	t.Parallel()
	for _, strategy := range failpolicy.Strategies() {
		bubble(t, func(t *testing.T, s *shop) {
			rule := as(ruleset.Fenced)
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

// An answer that is taken back takes the token with it.
func TestTokenHeader_GoesWithAnAnswerThatIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]any{{ginlock.WithTokenHeader()}, {ginlock.WithTokenHeader(), ginlock.WithBuffer(1 << 10)}} {
		bubble(t, func(t *testing.T, s *shop) {
			rule := as(ruleset.Fenced)
			rule.LeaseTime = time.Second
			s.handle(t, http.MethodPost, payPath, rule, func(*gin.Context) { time.Sleep(2 * time.Second) }) // in the time of the bubble
			w := s.do(t, request{})
			want(t, "status", w.Code, http.StatusInternalServerError)
			want(t, "header", w.Header().Get(failpolicy.TokenHeader), "")
		}, opts...)
	}
}
