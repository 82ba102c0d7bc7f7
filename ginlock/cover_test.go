package ginlock_test

import (
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// wantFinding checks that a finding is an error, a warning or nothing.
func wantFinding(t testing.TB, severity ruleset.Severity, err error, rec *record, says ...string) {
	t.Helper()
	switch severity {
	case ruleset.SeverityError:
		wantText(t, err, says...)
		want(t, "warnings", len(rec.warnings), 0)
	case ruleset.SeverityWarn:
		want(t, "error", err, nil)
		if len(rec.warnings) != 1 {
			t.Fatalf("%d warnings, want 1: %v", len(rec.warnings), rec.warnings)
		}
		wantText(t, rec.warnings[0], says...)
	default:
		want(t, "error", err, nil)
		want(t, "warnings", len(rec.warnings), 0)
	}
}

func TestCheck_Uncovered(t *testing.T) {
	t.Parallel()
	open := "rules: [{grpc: /a.B/C, key: x}]\n"
	tests := map[string]struct {
		file     string
		route    string
		severity ruleset.Severity
	}{
		"by default":           {open, "POST /x", ruleset.SeverityIgnore},
		"ignore":               {"uncovered: ignore\n" + open, "POST /x", ruleset.SeverityIgnore},
		"warn":                 {"uncovered: warn\n" + open, "POST /x", ruleset.SeverityWarn},
		"error":                {"uncovered: error\n" + open, "POST /x", ruleset.SeverityError},
		"PUT":                  {"uncovered: error\n" + open, "PUT /x", ruleset.SeverityError},
		"PATCH":                {"uncovered: error\n" + open, "PATCH /x", ruleset.SeverityError},
		"DELETE":               {"uncovered: error\n" + open, "DELETE /x", ruleset.SeverityError},
		"CONNECT":              {"uncovered: error\n" + open, "CONNECT /x", ruleset.SeverityError},
		"an invented method":   {"uncovered: error\n" + open, "PURGE /x", ruleset.SeverityError},
		"GET":                  {"uncovered: error\n" + open, "GET /x", ruleset.SeverityIgnore},
		"HEAD":                 {"uncovered: error\n" + open, "HEAD /x", ruleset.SeverityIgnore},
		"OPTIONS":              {"uncovered: error\n" + open, "OPTIONS /x", ruleset.SeverityIgnore},
		"TRACE":                {"uncovered: error\n" + open, "TRACE /x", ruleset.SeverityIgnore},
		"a rule":               {"uncovered: error\nrules: [{http: POST /x, key: \"#{route}\"}]\n", "POST /x", ruleset.SeverityIgnore},
		"a wildcard":           {"uncovered: error\nrules: [{http: \"* /x/*\", key: \"#{route}\"}]\n", "POST /x/y", ruleset.SeverityIgnore},
		"none":                 {"uncovered: error\nrules: [{http: POST /x, none: true}]\n", "POST /x", ruleset.SeverityIgnore},
		"none for another":     {"unmatched: ignore\nuncovered: error\nrules: [{http: PUT /x, none: true}]\n", "POST /x", ruleset.SeverityError},
		"a disabled rule":      {"uncovered: error\nrules: [{http: POST /x, key: x, disabled: true}]\n", "POST /x", ruleset.SeverityIgnore},
		"everything but one":   {"uncovered: error\nrules: [{http: \"*\", key: \"#{route}\"}, {http: POST /x, none: true}]\n", "POST /x", ruleset.SeverityIgnore},
		"a file without rules": {"uncovered: error\nrules: []\n", "POST /x", ruleset.SeverityError},
		"below a wildcard gap": {"unmatched: ignore\nuncovered: error\nrules: [{http: \"* /x/*\", key: \"#{route}\"}]\n", "POST /xy", ruleset.SeverityError},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := &record{}
			guard, r := newGuard(t, core.WithObserver(rec.observer())), gin.New()
			method, path, _ := strings.Cut(tt.route, " ")
			r.Handle(method, path, guard.Middleware(yaml(t, tt.file)), ok)
			r.GET("/everything", ok)
			wantFinding(t, tt.severity, guard.Check(r), rec, "locks.yaml: rule of http "+tt.route+": missing", "none: true")
		})
	}
}

func TestCheck_UncoveredCountsHandleAndOtherSetsButNotHandler(t *testing.T) {
	t.Parallel()
	guard, r := newGuard(t), gin.New()
	r.Use(guard.Middleware(yaml(t, "uncovered: error\nrules: [{grpc: /a.B/C, key: x}]\n")), guard.Middleware(yaml(t, "rules: [{http: POST /set, key: x}]\n")))
	if err := guard.Handle(r, "POST", "/handled", ruleset.Rule{Key: "x"}, ok); err != nil {
		t.Fatal(err)
	}
	r.POST("/set", ok)
	r.POST("/chained", guard.Handler(ruleset.Rule{Key: "x"}), ok)
	err := guard.Check(r)
	wantText(t, err, "POST /chained: missing")
	if got := strings.Count(err.Error(), "\n"); got != 0 {
		t.Errorf("%d problems, want 1:\n%v", got+1, err)
	}
}

func TestCheck_ARuleMatchesARouteOfAnyEngine(t *testing.T) {
	t.Parallel()
	guard := newGuard(t)
	set := guard.Middleware(yaml(t, "rules: [{http: POST /public, key: x}, {http: POST /admin, key: x}]\n"))
	public, admin := gin.New(), gin.New()
	public.POST("/public", set, ok)
	admin.POST("/admin", set, ok)
	wantText(t, guard.Check(public), "POST /admin", "matches no route")
	want(t, "both", guard.Check(public, admin), nil)
	want(t, "the first again", guard.Check(public), nil)
	wantText(t, guard.Check(public, nil), "engine is nil")
}

// A typo in a rule file stops the start: what Load cannot know, Check does.
func TestCheck_TyposInAFileAreToldWithLineAndNearestName(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rule string
		says []string
	}{
		"path parameter": {`key: "#{path.orderId}"`, []string{"locks.yaml:3:10", "path parameter orderId does not exist", "there is id"}},
		"body field":     {`key: "#{body.amounts}"`, []string{"locks.yaml:3:10", "amounts", "body.amount"}},
		"variable":       {`key: "#{usr}"`, []string{"locks.yaml:3:10", "usr", "user"}},
		"condition":      {"key: x\n    when: usr == \"bob\"", []string{"locks.yaml:4:11", "usr", "user"}},
		"fallback":       {"key: x\n    on_busy: fallback\n    fallback: que", []string{"locks.yaml:5:15", "que", "queue"}},
		"strategy":       {"key: x\n    on_busy: skipp", []string{"locks.yaml:4:14", "skipp", "skip"}},
		"field":          {"key: x\n    wait_tme: 1s", []string{"locks.yaml:4:5", "wait_tme", "wait_time"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guard := newGuard(t, ginlock.WithBody[payment]("POST "+payPath), ginlock.WithFallback("queue", ok),
				ginlock.WithVariable("user", func(*gin.Context) (string, error) { return "bob", nil }))
			set, err := ruleset.Load("locks.yaml", []byte("rules:\n  - http: POST /orders/:id/pay\n    "+tt.rule+"\n"))
			if err == nil {
				r := gin.New()
				r.POST(payPath, guard.Middleware(set), ok)
				err = guard.Check(r)
			}
			wantText(t, err, tt.says...)
		})
	}
}
