package ginlock_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// provider is a Provider with a set that the test replaces.
type provider struct {
	mu       sync.Mutex
	set      *ruleset.Set
	prepares []ruleset.Prepare
}

func (p *provider) Current() *ruleset.Set {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.set
}

func (p *provider) Subscribe(prepare ruleset.Prepare) (cancel func(), err error) {
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

// push replaces the set. If a subscriber refuses it, push returns its error.
func (p *provider) push(set *ruleset.Set) error {
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

// yaml returns the set of a rule file.
func yaml(t testing.TB, text string) *ruleset.Set {
	t.Helper()
	set, err := ruleset.Load("locks.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// payRules returns a rule file with a rule for payPath and more lines for that rule.
func payRules(more string) string {
	return "rules:\n  - http: POST /orders/:id/pay\n    key: \"order:#{path.id}\"\n    wait_time: none\n" + more
}

// check fails the test if Check finds a problem.
func (s *shop) check(t testing.TB) {
	t.Helper()
	if err := s.guard.Check(s.engine); err != nil {
		t.Fatal(err)
	}
}

// reload pushes a rule file and fails the test if it is refused.
func (p *provider) reload(t testing.TB, text string) {
	t.Helper()
	if err := p.push(yaml(t, text)); err != nil {
		t.Fatal(err)
	}
}

func TestReload_Refused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rules string
		says  []string
	}{
		"none for an unknown route": {
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
				p := &provider{set: yaml(t, payRules(""))}
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

// Without Check, the guard checks only the routes that it has served.
func TestReload_WithoutCheck(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		p := &provider{set: yaml(t, payRules(""))}
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

// A guard that occurs twice in a chain acts once, even if a reload happens between the two places.
func TestReload_BetweenTwoPlacesOfAGuard(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		p := &provider{set: yaml(t, payRules(""))}
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

func (closedProvider) Subscribe(ruleset.Prepare) (cancel func(), err error) {
	return nil, errors.New("the shop is closed")
}
