package ginlock_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// A rule of a set locks nothing on a route whose chain lacks the middleware of the set.
func TestCheck_MiddlewareNotOnTheChain(t *testing.T) {
	t.Parallel()
	pay := payNow("POST")
	below := func(method string) ruleset.Rule {
		return ruleset.Rule{Endpoint: ruleset.HTTP(method + " /orders/*"), Key: "order:#{method}"}
	}
	other := goSet(t, []ruleset.Rule{{Endpoint: ruleset.HTTP("POST /other"), Name: "other", Key: "other:#{method}"}})
	for name, tt := range map[string]struct {
		rule     ruleset.Rule
		register func(r *gin.Engine, guard *ginlock.Guard, m gin.HandlerFunc)
		wrong    bool
	}{
		"before the route": {pay, func(r *gin.Engine, _ *ginlock.Guard, m gin.HandlerFunc) { r.Use(m); r.POST(payPath, ok) }, false},
		"after the route":  {pay, func(r *gin.Engine, _ *ginlock.Guard, m gin.HandlerFunc) { r.POST(payPath, ok); r.Use(m) }, true},
		"never":            {pay, func(r *gin.Engine, _ *ginlock.Guard, _ gin.HandlerFunc) { r.POST(payPath, ok) }, true},
		"on the route":     {pay, func(r *gin.Engine, _ *ginlock.Guard, m gin.HandlerFunc) { r.POST(payPath, m, ok) }, false},
		"on its group":     {pay, func(r *gin.Engine, _ *ginlock.Guard, m gin.HandlerFunc) { r.Group("/orders", m).POST("/:id/pay", ok) }, false},
		"on another group": {pay, func(r *gin.Engine, _ *ginlock.Guard, m gin.HandlerFunc) { r.Group("/orders", m); r.POST(payPath, ok) }, true},
		"of another set": {pay, func(r *gin.Engine, g *ginlock.Guard, _ gin.HandlerFunc) {
			r.Use(g.Middleware(other))
			r.POST(payPath, ok)
			r.POST("/other", ok)
		}, true},
		"a wildcard": {below("POST"), func(r *gin.Engine, _ *ginlock.Guard, _ gin.HandlerFunc) { r.POST(payPath, ok) }, true},
		"a wildcard for GET": {below("GET"), func(r *gin.Engine, _ *ginlock.Guard, m gin.HandlerFunc) {
			r.GET(payPath, ok)
			r.Use(m)
			r.GET("/orders/:id", ok)
		}, false},
		"a rule with none": {ruleset.Rule{Endpoint: ruleset.HTTP("POST " + payPath), None: true}, func(r *gin.Engine, _ *ginlock.Guard, _ gin.HandlerFunc) { r.POST(payPath, ok) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guard, r := newGuard(t), gin.New()
			tt.register(r, guard, guard.Middleware(goSet(t, []ruleset.Rule{tt.rule})))
			err := guard.Check(r)
			if !tt.wrong {
				want(t, "Check", err, nil)
				return
			}
			wantText(t, err, "POST "+payPath, "Middleware is not on the chain", "Use")
		})
	}
}

// Each engine needs the middleware.
func TestCheck_MiddlewareOnOneOfTwoEngines(t *testing.T) {
	t.Parallel()
	guard, public, internal := newGuard(t), gin.New(), gin.New()
	public.Use(guard.Middleware(goSet(t, []ruleset.Rule{payNow("POST")})))
	for _, r := range []*gin.Engine{public, internal} {
		r.POST(payPath, ok)
	}
	want(t, "Check", guard.Check(public), nil)
	wantText(t, guard.Check(public, internal), "POST "+payPath, "Middleware is not on the chain")
}

// A reload is refused if it adds a rule for a route without the middleware.
func TestReload_RouteWithoutTheMiddleware(t *testing.T) {
	t.Parallel()
	p := &provider{set: yaml(t, "rules: []\n")}
	guard, r := newGuard(t), gin.New()
	r.POST(payPath, ok)
	r.Use(guard.Middleware(p))
	want(t, "Check", guard.Check(r), nil)
	wantText(t, p.push(yaml(t, payRules(""))), "Middleware is not on the chain")
}

// A Handler that is passed to Use after all routes are registered runs for none of them.
func TestCheck_HandlerOnNoRoute(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		register func(r *gin.Engine, h gin.HandlerFunc)
		error    bool
		warnings int
	}{
		"on a route":        {func(r *gin.Engine, h gin.HandlerFunc) { r.POST(payPath, h, ok) }, false, 0},
		"before the routes": {func(r *gin.Engine, h gin.HandlerFunc) { r.Use(h); r.POST(payPath, ok) }, false, 0},
		"after the routes":  {func(r *gin.Engine, h gin.HandlerFunc) { r.POST(payPath, ok); r.Use(h) }, true, 0},
		"nowhere":           {func(r *gin.Engine, _ gin.HandlerFunc) { r.POST(payPath, ok) }, false, 1},
		"in NoRoute":        {func(r *gin.Engine, h gin.HandlerFunc) { r.POST(payPath, ok); r.NoRoute(h, ok) }, false, 0},
		"in NoMethod":       {func(r *gin.Engine, h gin.HandlerFunc) { r.POST(payPath, ok); r.NoMethod(h, ok) }, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := &record{}
			guard, r := newGuard(t, core.WithObserver(rec.observer())), gin.New()
			tt.register(r, guard.Handler(ruleset.Rule{Key: "any:#{header.X_Id}"}))
			err := guard.Check(r)
			if (err != nil) != tt.error || len(rec.warnings) != tt.warnings {
				t.Fatalf("got %v and the warnings %v", err, rec.warnings)
			}
			if text := strings.Join(append(texts(rec), textOf(err)), ""); (tt.error || tt.warnings > 0) && (!strings.Contains(text, "chain_test.go:") || !strings.Contains(text, "Use")) {
				t.Errorf("got %q", text)
			}
		})
	}
}

func texts(rec *record) (list []string) {
	for _, w := range rec.warnings {
		list = append(list, w.Error())
	}
	return list
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A guard without rules is a mistake: the program never called Middleware.
func TestCheck_GuardWithoutRules(t *testing.T) {
	t.Parallel()
	guard, r := newGuard(t), gin.New()
	r.POST(payPath, ok)
	wantText(t, guard.Check(r), "Middleware", "Handle", "never called")
}

// Check finds the chains of all kinds of routes.
func TestCheck_ChainsOfAllKindsOfRoutes(t *testing.T) {
	t.Parallel()
	guard, r := newGuard(t), gin.New()
	var rules []ruleset.Rule
	paths := []string{"/", "/a", "/a/", "/ab", "/ab/:id", "/ab/:id/c", "/files/*rest", `/jobs/run\:now`, `/x/\:id`}
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		for _, path := range paths {
			rules = append(rules, ruleset.Rule{Endpoint: ruleset.Route(method, strings.ReplaceAll(path, `\:`, ":")), Key: "k:#{method}"})
		}
	}
	m := guard.Middleware(goSet(t, rules))
	inside, outside := r.Group("", m), r.Group("")
	for _, path := range paths {
		inside.POST(path, ok)
		outside.PUT(path, ok)
	}
	inside.POST("/x/:id", ok)
	err := guard.Check(r)
	for _, rule := range rules {
		if is := strings.Contains(err.Error(), "rule of "+rule.Endpoint.String()+": Middleware is not"); is != (rule.Endpoint.Method == http.MethodPut) {
			t.Errorf("%s: %t in %v", rule.Endpoint, is, err)
		}
	}
}
