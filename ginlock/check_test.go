package ginlock_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

// downClient returns a client whose Redis is down, because the start of a program must not need Redis.
func downClient(t testing.TB, opts ...core.Option) *core.Client {
	t.Helper()
	srv := redistest.New(t)
	srv.Down()
	locks, err := core.New(srv.Client(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(t.Context()) })
	return locks
}

func newGuard(t testing.TB, opts ...any) *ginlock.Guard {
	t.Helper()
	client, own := splitOptions(opts)
	guard, err := ginlock.New(downClient(t, client...), own...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

func ok(c *gin.Context) { c.Status(http.StatusNoContent) }

func TestCheck_EveryProblem(t *testing.T) {
	t.Parallel()
	guard := newGuard(t, ginlock.WithBody[payment]("POST /ordres/:id"), ginlock.WithBuffer(1000, "GET /orders/:id"))
	set, err := ruleset.NewSet([]ruleset.Rule{
		{Endpoint: ruleset.HTTP("POST /orders/:id/pay"), Key: "order:#{path.orderId}"},
		{Endpoint: ruleset.HTTP("POST /orders/:id/pya"), Key: "order"},
		{Endpoint: ruleset.HTTP(`POST /orders/:id\:cancel`), Key: "order"},
		{Endpoint: ruleset.HTTP("* /admin/*"), Key: "admin:#{header.X-Id}"},
		{Endpoint: ruleset.GRPC("/shop.Orders/Pay"), Key: "not ours: #{req.id}"},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := gin.New()
	r.UseRawPath, r.UnescapePathValues = true, false
	r.Use(guard.Middleware(set))
	r.POST("/orders/:id/pay", ok)
	r.POST(`/v1/orders\:cancel`, ok)
	r.GET("/admin/stock", ok)
	r.POST("/handler/:id", guard.Handler(ruleset.Rule{Key: "handler:#{path.nobodyHasThis}", WaitTime: -5}), ok)
	r.POST("/late/:id", ok, guard.Handler(ruleset.Rule{Key: "late:#{path.id}"}))
	handled := guard.Handle(r.Group("/handled"), "POST", "/:id", ruleset.Rule{Key: "order:#{path.idd}", OnBusy: failpolicy.Fallback, Fallback: "queue"}, ok)
	wantText(t, handled, "idd", "WithFallback")

	err = guard.Check(r)
	wantText(t, err,
		"orderId",
		"http POST /orders/:id/pya: ", "matches no route", `did you mean "POST /orders/:id/pay"?`,
		`http POST /orders/:id\:cancel`,
		`header["X-Id"]`,
		"rule of Handler at ", "check_test.go:", "WaitTime",
		"idd", "queue",
		`WithBody: route "POST /ordres/:id"`, `WithBuffer: route "GET /orders/:id"`,
		"UnescapePathValues = true",
		"http POST /late/:id: the guard is the last handler of the route",
	)
	if strings.Contains(err.Error(), "shop.Orders") {
		t.Errorf("Check reports a rule for gRPC:\n%v", err)
	}
	if again := guard.Check(r); again == nil || again.Error() != err.Error() {
		t.Errorf("a second Check differs:\n%v", again)
	}
}

func TestCheck_NilEngine(t *testing.T) {
	t.Parallel()
	wantText(t, newGuard(t).Check(nil), "nil")
}

func TestGuard_BrokenRule(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		broken := ruleset.Rule{Key: "order:#{path.orderId}"}
		never := func(*gin.Context) { t.Error("the handler ran") }
		set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: ruleset.HTTP("POST /set/:id"), Key: "order:#{path.orderId}"}})
		if err != nil {
			t.Fatal(err)
		}
		var logged error
		s.engine.Use(func(c *gin.Context) { c.Next(); logged = c.Errors.Last().Err })
		s.engine.POST("/handler/:id", s.guard.Handler(broken), never)
		s.engine.POST("/none/:id", s.guard.Handler(), never)
		s.engine.POST("/elsewhere/:id", s.guard.Handler(ruleset.Rule{Endpoint: ruleset.HTTP("POST /x"), Key: "x"}), never)
		wantText(t, s.guard.Handle(s.engine, "POST", "/handle/:id", broken, never), "orderId")
		s.engine.Group("", s.guard.Middleware(set)).POST("/set/:id", never)
		for path, says := range map[string]string{
			"/handler/1": "orderId", "/handle/1": "orderId", "/set/1": "orderId", "/none/1": "no rule", "/elsewhere/1": "leave Endpoint empty",
		} {
			w := s.do(t, request{url: path})
			want(t, path, w.Code, http.StatusInternalServerError)
			want(t, "type", problemOf(t, w).Type, "about:blank")
			wantText(t, logged, says)
		}
		wantText(t, s.guard.Check(s.engine), "POST /handler/:id", "POST /handle/:id", "POST /set/:id", "POST /none/:id")
	})
}

func TestHandle_Mistakes(t *testing.T) {
	t.Parallel()
	guard, r := newGuard(t), gin.New()
	wantText(t, guard.Handle(r, "post", "/x", ruleset.Rule{Key: "x"}), "upper case", "no handler")
	wantText(t, guard.Handle(notAGroup{}, "POST", "/x", ruleset.Rule{Key: "x"}, ok), "base path")
	want(t, "routes", len(r.Routes()), 0)
	wantText(t, guard.Check(r), `Handle("post", "/x")`, "upper case", "no handler", `Handle("POST", "/x")`, "base path")
}

type notAGroup struct{ gin.IRoutes }

func TestCheck_NotifiesRuleObserversOnce(t *testing.T) {
	t.Parallel()
	rec := &record{}
	guard := newGuard(t, core.WithObserver(rec.observer()))
	set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: ruleset.HTTP("* /api/*"), Name: "api", Key: "api"}})
	if err != nil {
		t.Fatal(err)
	}
	r := gin.New()
	r.Use(guard.Middleware(set))
	r.GET("/api/a", guard.Handler(ruleset.Rule{Name: "tried", Key: "x"}), ok)
	r.GET("/api/b", ok)
	r.GET("/other", ok)
	for range 2 {
		if err := guard.Check(r); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, info := range rec.rules {
		names = append(names, info.Rule)
	}
	wantAll(t, "rules notified", names, "tried", "api", "api")
}

// Check compares a Handler with its own routes, although another route has the parameter.
func TestCheck_HandlerOnItsRoute(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		orders := s.engine.Group("", s.guard.Handler(ruleset.Rule{Key: "#{path.orderId}"}))
		orders.POST("/orders/:id", ok)
		orders.GET("/orders/:orderId", ok)
		err := s.guard.Check(s.engine)
		wantText(t, err, "rule of http POST /orders/:id: Key: 1:8: path parameter orderId does not exist")
		want(t, "status", s.do(t, request{url: "/orders/1"}).Code, http.StatusInternalServerError)
		want(t, "the other route", s.do(t, request{method: "GET", url: "/orders/1"}).Code, http.StatusNoContent)
		wantText(t, s.guard.Check(s.engine), err.Error())
	})
}

// The message begins with the mistake of the rule. If the mistake depends on the route, the message names the route.
func TestCheck_HandlerMistakes(t *testing.T) {
	t.Parallel()
	orders := ruleset.HTTP("POST /orders/:id")
	tests := []struct {
		name        string
		rule        ruleset.Rule
		place, says string
	}{
		{"a variable", ruleset.Rule{Key: "order:#{pth.id}"}, "rule of Handler at ", ": Key: 1:9: unknown name pth: "},
		{"a variable of a named rule", ruleset.Rule{Name: "pay", Key: "order:#{pth.id}"}, `rule "pay" of Handler at `, ": Key: 1:9: unknown name pth: "},
		{"a part", ruleset.Rule{Key: "order:#{path.id"}, "rule of Handler at ", ": Key: 1:7: the part is not closed"},
		{"a time", ruleset.Rule{Key: "order", WaitTime: -5}, "rule of Handler at ", ": WaitTime: -5ns is out of range"},
		{"a parameter", ruleset.Rule{Key: "order:#{path.idd}"}, "rule of http POST /orders/:id", ": Key: 1:14: path parameter idd does not exist: there is id\n"},
		{"a parameter of a rule with its route", ruleset.Rule{Endpoint: orders, Key: "order:#{path.idd}"}, "rule of http POST /orders/:id", ": Key: 1:14: path parameter idd does not exist: there is id\n"},
		{"a parameter that no route has", ruleset.Rule{Key: "#{path.id}:#{path.customer}"}, "rule of http POST /orders/:id", ": Key: 1:19: path parameter customer does not exist: there is id\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			guard, r := newGuard(t), gin.New()
			r.GET("/health", ok)
			r.POST("/orders/:id", guard.Handler(tt.rule), ok)
			r.POST("/orders/:id/pay", ok)
			err := guard.Check(r)
			wantText(t, err, tt.says)
			place, _, _ := strings.Cut(err.Error(), tt.says)
			if !strings.HasPrefix(place, "ruleset: "+tt.place) || strings.Contains(place, "\n") || strings.Contains(err.Error(), "/health") {
				t.Errorf("the message does not begin with the mistake:\n%v", err)
			}
		})
	}
}

// Check does not see a Handler that another handler calls. It reports the problems with the route that the rule fits best.
func TestCheck_HandlerWithinAHandler(t *testing.T) {
	t.Parallel()
	for _, rule := range []ruleset.Rule{{Key: "order:#{path.idd}"}, {Endpoint: ruleset.HTTP("POST /orders/:id"), Key: "order:#{path.idd}"}} {
		guard, r := newGuard(t), gin.New()
		handler := guard.Handler(rule)
		r.GET("/health", ok)
		r.POST("/orders/:id", func(c *gin.Context) { handler(c) }, ok)
		r.POST("/orders/:id/pay", ok)
		err := guard.Check(r)
		wantText(t, err, "ruleset: rule of Handler at ", " (nearest route: POST /orders/:id): Key: 1:14: path parameter idd does not exist: there is id\n")
		if strings.Contains(err.Error(), "/health") {
			t.Errorf("the message names another route:\n%v", err)
		}
	}
}

// wantSeverity fails the test unless a problem has the given severity: error, warning, or none.
func wantSeverity(t testing.TB, severity ruleset.Severity, err error, rec *record, says ...string) {
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
		"a rule":               {"uncovered: error\nrules: [{http: POST /x, key: \"#{body.id}\"}]\n", "POST /x", ruleset.SeverityIgnore},
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
			err := guard.Check(r)
			rec.warnings = slices.DeleteFunc(rec.warnings, func(p *ruleset.Problem) bool { return p.Field == "disabled" })
			wantSeverity(t, tt.severity, err, rec, "locks.yaml: rule of http "+tt.route+": missing", "none: true")
		})
	}
}

func TestCheck_UncoveredBesideHandleAndSets(t *testing.T) {
	t.Parallel()
	guard, r := newGuard(t), gin.New()
	r.Use(guard.Middleware(yaml(t, "uncovered: error\nrules: [{grpc: /a.B/C, key: x}]\n")), guard.Middleware(yaml(t, "rules: [{http: POST /set, key: x}]\n")))
	if err := guard.Handle(r, "POST", "/handled", ruleset.Rule{Key: "x"}, ok); err != nil {
		t.Fatal(err)
	}
	r.POST("/set", ok)
	r.POST("/chained", guard.Handler(ruleset.Rule{Key: "x"}), ok)
	want(t, "all are covered", guard.Check(r), nil)
	r.POST("/open", ok)
	err := guard.Check(r)
	wantText(t, err, "POST /open: missing")
	if got := strings.Count(err.Error(), "\n"); got != 0 {
		t.Errorf("%d problems, want 1:\n%v", got+1, err)
	}
}

func TestCheck_SeveralEngines(t *testing.T) {
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

// A typo in a rule file stops the start-up. Check finds typos that Load cannot find.
func TestCheck_TyposInAFile(t *testing.T) {
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

// A client that can choose its address can choose its lock. With gin's default settings every client can.
func TestCheck_ClientIP(t *testing.T) {
	t.Parallel()
	byAddress := ruleset.Rule{Key: "ip:#{client_ip}"}
	inCondition := ruleset.Rule{Key: "order:#{path.id}", When: `client_ip != "192.0.2.1"`}
	guards := map[string]func(t *testing.T, g *ginlock.Guard, r *gin.Engine){
		"Handle": func(t *testing.T, g *ginlock.Guard, r *gin.Engine) {
			want(t, "Handle", g.Handle(r, "POST", payPath, byAddress, ok), nil)
		},
		"Handler": func(_ *testing.T, g *ginlock.Guard, r *gin.Engine) { r.POST(payPath, g.Handler(byAddress), ok) },
		"Middleware": func(t *testing.T, g *ginlock.Guard, r *gin.Engine) {
			rule := inCondition
			rule.Endpoint = ruleset.Route("POST", payPath)
			set, err := ruleset.NewSet([]ruleset.Rule{rule})
			want(t, "NewSet", err, nil)
			r.Use(g.Middleware(set))
			r.POST(payPath, ok)
		},
		"no rule uses it": func(t *testing.T, g *ginlock.Guard, r *gin.Engine) {
			want(t, "Handle", g.Handle(r, "POST", payPath, pay, ok), nil)
		},
	}
	proxies := func(list ...string) func(t *testing.T, r *gin.Engine) {
		return func(t *testing.T, r *gin.Engine) { want(t, "SetTrustedProxies", r.SetTrustedProxies(list), nil) }
	}
	engines := map[string]struct {
		set   func(t *testing.T, r *gin.Engine)
		warns bool
	}{
		"gin's default":            {func(*testing.T, *gin.Engine) {}, true},
		"every proxy of IPv4":      {proxies("0.0.0.0/0"), true},
		"every proxy of IPv6":      {proxies("::/0"), true},
		"no proxy":                 {proxies(), false},
		"some proxies":             {proxies("10.0.0.0/8", "192.0.2.1", "2001:db8::1"), false},
		"no header":                {func(_ *testing.T, r *gin.Engine) { r.RemoteIPHeaders = nil }, false},
		"headers are not believed": {func(_ *testing.T, r *gin.Engine) { r.ForwardedByClientIP = false }, false},
		"a platform":               {func(_ *testing.T, r *gin.Engine) { r.TrustedPlatform = gin.PlatformCloudflare }, false},
	}
	for how, guarded := range guards {
		for name, engine := range engines {
			t.Run(how+"/"+name, func(t *testing.T) {
				t.Parallel()
				rec := &record{}
				g, r := newGuard(t, core.WithObserver(rec.observer())), gin.New()
				engine.set(t, r)
				guarded(t, g, r)
				want(t, "Check", g.Check(r), nil)
				if !engine.warns || how == "no rule uses it" {
					want(t, "warnings", len(rec.warnings), 0)
					return
				}
				want(t, "warnings", len(rec.warnings), 1)
				for _, part := range []string{"client_ip", "SetTrustedProxies", "WithClientIP"} {
					want(t, "it says "+part, strings.Contains(rec.warnings[0].Error(), part), true)
				}
				want(t, "it says where", strings.Contains(rec.warnings[0].Error(), payPath), true)
			})
		}
	}
}

func TestCheck_ClientIPOfTheProgram(t *testing.T) {
	t.Parallel()
	rec := &record{}
	g, r := newGuard(t, core.WithObserver(rec.observer()), ginlock.WithClientIP(func(*gin.Context) string { return "10.0.0.1" })), gin.New()
	want(t, "Handle", g.Handle(r, "POST", payPath, ruleset.Rule{Key: "ip:#{client_ip}"}, ok), nil)
	want(t, "Check", g.Check(r), nil)
	want(t, "warnings", len(rec.warnings), 0)
}

// Check at start-up reports the same problem as the command interlock check.
func TestCheck_ConstantKeys(t *testing.T) {
	t.Parallel()
	rec := &record{}
	g, r := newGuard(t, core.WithObserver(rec.observer())), gin.New()
	set, err := ruleset.NewSet([]ruleset.Rule{
		{Endpoint: ruleset.HTTP("* /reports/*"), Key: "report"},
		{Endpoint: ruleset.HTTP("POST /orders/:id/pay"), Key: "order:#{path.id}"},
	})
	want(t, "NewSet", err, nil)
	r.Use(g.Middleware(set))
	want(t, "Handle", g.Handle(r, "POST", "/import/:file", ruleset.Rule{Key: "import"}, ok), nil)
	want(t, "warnings before Check, which not every program calls", len(rec.warnings), 1)
	for _, path := range []string{"/reports/daily", "/reports/weekly", "/orders/:id/pay"} {
		r.POST(path, ok)
	}
	want(t, "Check", g.Check(r), nil)
	want(t, "warnings", len(rec.warnings), 2)
	for i, parts := range [][]string{{`"import" is one lock for all requests`, "#{path.file}"}, {`"report" is one lock for all requests`, "* /reports/*"}} {
		for _, part := range parts {
			want(t, "it says "+part, strings.Contains(rec.warnings[i].Error(), part), true)
		}
	}
}

// Calls fail if one key has two kinds of lock. Check reports such rules, wherever they are declared, and a
// reload that adds a second kind is refused.
func TestCheck_MixedKinds(t *testing.T) {
	t.Parallel()
	const fenced = "which is a fenced lock for the rule of http POST /orders/:id/cancel, declared in the program: one key has one kind"
	guard, engine := newGuard(t), gin.New()
	p := &provider{set: yaml(t, payRules("    kind: fenced\n"))}
	engine.Use(guard.Middleware(p))
	engine.POST(payPath, ok)
	cancel := ruleset.Rule{Key: "order:#{path.id}", Kind: ruleset.Fenced}
	if err := guard.Handle(engine, http.MethodPost, "/orders/:id/cancel", cancel, ok); err != nil {
		t.Fatal(err)
	}
	if err := guard.Check(engine); err != nil {
		t.Error(err)
	}
	wantText(t, p.push(yaml(t, "allow_rekey: true\n"+payRules("    kind: spin\n"))), "locks.yaml:6:11", "kind: a spin lock", fenced)

	ship := ruleset.Rule{Key: "order:#{path.id}"}
	if err := guard.Handle(engine, http.MethodPost, "/orders/:id/ship", ship, ok); err != nil {
		t.Fatal(err)
	}
	wantText(t, guard.Check(engine), "rule of http POST /orders/:id/ship: Kind: a reentrant lock", fenced, "write Kind: ruleset.Fenced")
}

// A second guard with the same set answers every request with 500, so Check says it.
func TestCheck_TwoGuards(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	defer s.close(t)
	rules := yaml(t, payRules(""))
	second, err := ginlock.New(s.locks)
	if err != nil {
		t.Fatal(err)
	}
	s.engine.Use(s.guard.Middleware(rules), second.Middleware(rules))
	s.engine.POST(payPath, ok)
	want(t, "error of the first", s.guard.Check(s.engine), nil)
	wantText(t, second.Check(s.engine), "locks.yaml:2", "POST "+payPath, "two guards", "use one guard")
	want(t, "status", s.do(t, request{}).Code, http.StatusInternalServerError)
}

// Rules of gRPC in a file that only this guard has lock nothing. The first request shows that, also without Check and
// without a rule for its route.
func TestCheck_RulesWithoutGuard(t *testing.T) {
	t.Parallel()
	for _, checked := range []bool{true, false} {
		rec := &record{}
		s := newShop(t, core.WithObserver(rec.observer()))
		defer s.close(t)
		s.engine.POST("/free", s.guard.Middleware(yaml(t, "rules:\n  - {grpc: /shop.v1.Orders/Pay, key: pay}\n")), ok)
		if checked {
			s.check(t)
		}
		want(t, "warnings before", len(rec.warnings), 0)
		for range 2 {
			s.do(t, request{url: "/free"})
		}
		if len(rec.warnings) != 1 {
			t.Fatalf("got the warnings %v", rec.warnings)
		}
		wantText(t, rec.warnings[0], "locks.yaml:2", "/shop.v1.Orders/Pay", "grpclock.WithSet")
	}
}
