package ginlock_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// pushed is a provider whose sets the test replaces.
type pushed struct {
	mu       sync.Mutex
	set      *ruleset.Set
	prepares []ruleset.Prepare
}

func (p *pushed) Current() *ruleset.Set {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.set
}

func (p *pushed) Subscribe(prepare ruleset.Prepare) (cancel func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	commit, err := prepare(p.set)
	if err != nil {
		return nil, err
	}
	commit()
	p.prepares = append(p.prepares, prepare)
	return func() {}, nil
}

// push replaces the set, or tells why a subscriber refuses that.
func (p *pushed) push(set *ruleset.Set) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var commits []func()
	for _, prepare := range p.prepares {
		commit, err := prepare(set)
		if err != nil {
			return err
		}
		commits = append(commits, commit)
	}
	p.set = set
	for _, commit := range commits {
		commit()
	}
	return nil
}

// yaml is a set from the text of a rule file.
func yaml(t testing.TB, text string) *ruleset.Set {
	t.Helper()
	set, err := ruleset.Load("locks.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// payRules is a rule file with a rule for payPath, and more lines for it.
func payRules(more string) string {
	return "rules:\n  - http: POST /orders/:id/pay\n    key: \"order:#{path.id}\"\n    wait_time: none\n" + more
}

// check is Check, which has to find nothing.
func (s *shop) check(t testing.TB) {
	t.Helper()
	if err := s.guard.Check(s.engine); err != nil {
		t.Fatal(err)
	}
}

// reload pushes a rule file that has to be accepted.
func (p *pushed) reload(t testing.TB, text string) {
	t.Helper()
	if err := p.push(yaml(t, text)); err != nil {
		t.Fatal(err)
	}
}

func TestReload_ThatDoesNotFitIsRefusedAndTheOldRulesStay(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rules string
		says  []string
	}{
		"none of no such route": {
			payRules("  - http: POST /nowhere\n    none: true\n"), []string{"locks.yaml:5", "matches no route"},
		},
		"condition": {payRules("    when: path.idd != \"7\"\n"), []string{"locks.yaml:5", "path.idd", "path.id"}},
		"body field": {
			"rules:\n  - http: POST /orders/:id/pay\n    key: \"order:#{body.amounts}\"\n", []string{"locks.yaml:3", "amounts", "amount"},
		},
		"uncovered": {"uncovered: error\n" + payRules(""), []string{"POST /open: missing", "none: true"}},
		"a rule that Handle has": {
			payRules("  - http: POST /handled\n    key: x\n"), []string{"is there twice", "POST /handled"},
		},
		"a rule that another set has": {
			payRules("  - http: POST /other\n    key: x\n"), []string{"is there twice", "POST /other"},
		},
		"several": {
			payRules("    when: path.idd != \"7\"\n  - http: POST /nowhere\n    key: x\n  - http: POST /other\n    key: \"#{path.id}\"\n"),
			[]string{"locks.yaml:5", "locks.yaml:6", "locks.yaml:9"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				p := &pushed{set: yaml(t, payRules(""))}
				s.engine.Use(s.guard.Middleware(p), s.guard.Middleware(yaml(t, "rules:\n  - http: POST /other\n    key: other\n")))
				for _, path := range []string{payPath, "/open", "/other"} {
					s.engine.POST(path, ok)
				}
				s.handle(t, "POST", "/handled", ruleset.Rule{Key: "handled"}, ok)
				s.check(t)
				wantText(t, p.push(yaml(t, tt.rules)), tt.says...)
				want(t, "free", s.do(t, request{}).Code, http.StatusNoContent)
				s.redis.Take(payKey, time.Hour)
				want(t, "taken", s.do(t, request{}).Code, http.StatusConflict)
				p.reload(t, payRules("    on_busy: null_response\n"))
				want(t, "after a good one", s.do(t, request{}).Code, http.StatusOK)
			}, ginlock.WithBody[payment]("POST "+payPath), ginlock.WithFallback("queue", ok))
		})
	}
}

// Without Check the guard knows the routes that had a request, and judges nothing else.
func TestReload_WithoutCheckFitsTheRoutesThatWereServed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		p := &pushed{set: yaml(t, payRules(""))}
		s.engine.Use(s.guard.Middleware(p))
		s.engine.POST(payPath, ok)
		s.engine.POST("/later", ok)
		want(t, "before", s.do(t, request{}).Code, http.StatusNoContent)
		wantText(t, p.push(yaml(t, "rules:\n  - http: POST /orders/:id/pay\n    key: \"#{path.typo}\"\n")), "path.typo")
		p.reload(t, payRules("  - http: POST /later\n    key: \"#{path.typo}\"\n  - http: POST /nowhere\n    key: x\n"))
		want(t, "pay", s.do(t, request{}).Code, http.StatusNoContent)
		want(t, "later", s.do(t, request{url: "/later"}).Code, http.StatusInternalServerError)
	})
}

// A guard that stands twice in a chain acts once, though a reload falls in between.
func TestReload_BetweenTwoPlacesOfOneGuard(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		p := &pushed{set: yaml(t, payRules(""))}
		s.engine.Use(s.guard.Middleware(p), func(*gin.Context) { p.reload(t, payRules("    message: new\n")) })
		s.engine.Group("", s.guard.Middleware(p)).POST(payPath, ok)
		want(t, "status", s.do(t, request{}).Code, http.StatusNoContent)
	})
}

func (r *record) observer() *core.Observer {
	return &core.Observer{
		Rules: &aspect.Observer{
			Warning:  r.observeWarning,
			Rule:     r.observeRule,
			Decision: r.observeDecision,
			Failure:  r.observeFailure,
		},
	}
}

func (r *record) observeWarning(p *ruleset.Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warnings = append(r.warnings, p)
}

// closed is a provider that takes no subscribers.
type closed struct{ *ruleset.Set }

func (closed) Subscribe(ruleset.Prepare) (cancel func(), err error) {
	return nil, errors.New("the shop is closed")
}

func TestMiddleware_ThatCannotSubscribeHasTheRulesOfNowAndTellsCheck(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(s.guard.Middleware(closed{yaml(t, payRules(""))}))
		s.engine.POST(payPath, ok)
		s.redis.Take(payKey, time.Hour)
		want(t, "status", s.do(t, request{}).Code, http.StatusConflict)
		wantText(t, s.guard.Check(s.engine), "the shop is closed", "no reload")
	})
}

// A nil set is the mistake of a program that ignored an error: no route runs unlocked.
func TestMiddleware_OfNilIsAMistakeAndRunsNothing(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]ruleset.Provider{"nil": nil, "no set": (*ruleset.Set)(nil), "no live set": (*ruleset.Live)(nil)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guard, r := newGuard(t), gin.New()
			r.Use(guard.Middleware(p))
			r.POST("/x", func(*gin.Context) { t.Error("the handler ran") })
			wantText(t, guard.Check(r), "Middleware: the rules are nil", "ruleset.Open")
			for url, status := range map[string]int{"/x": http.StatusInternalServerError, "/nowhere": http.StatusNotFound} {
				w := httptest.NewRecorder()
				r.ServeHTTP(w, request{url: url}.build())
				want(t, "status of "+url, w.Code, status)
			}
		})
	}
}

func TestMiddleware_OfAnEmptySetHasNoRules(t *testing.T) {
	t.Parallel()
	guard, r := newGuard(t), gin.New()
	r.Use(guard.Middleware(new(ruleset.Set)))
	r.POST("/x", ok)
	want(t, "Check", guard.Check(r), nil)
}
