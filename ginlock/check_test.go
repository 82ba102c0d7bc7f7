package ginlock_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

// deaf is a client whose Redis is down: nothing at start-up may need it.
func deaf(t testing.TB, opts ...core.Option) *core.Client {
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

func TestNew_ReportsEveryBadOption(t *testing.T) {
	t.Parallel()
	text := func(*gin.Context) (string, error) { return "", nil }
	noop := func(*gin.Context) {}
	_, err := ginlock.New(nil,
		nil,
		ginlock.WithErrorWriter(nil),
		ginlock.WithErrorWriter(ginlock.WriteProblem), ginlock.WithErrorWriter(ginlock.WriteProblem),
		ginlock.WithFallback("", noop),
		ginlock.WithFallback("queue", nil),
		ginlock.WithFallback("twice", noop), ginlock.WithFallback("twice", noop),
		ginlock.WithVariable[string]("none", nil),
		ginlock.WithVariable("path", text),
		ginlock.WithVariable("not a name", text),
		ginlock.WithBody[payment]("orders"),
		ginlock.WithBody[payment]("POST /orders/*"),
		ginlock.WithBody[payment]("POST /a"), ginlock.WithBody[payment]("POST /a"),
		ginlock.WithBody[chan int]("POST /chan"),
		ginlock.WithMaxBody(0),
		ginlock.WithClientIP(nil),
		ginlock.WithBuffer(0),
		ginlock.WithBuffer(1, "post /orders"),
		ginlock.WithBuffer(1, "POST /b"), ginlock.WithBuffer(2, "POST /c", "POST /b"),
		ginlock.WithBuffer(3), ginlock.WithBuffer(4),
		ginlock.WithProfile("", ruleset.Rule{}),
		ginlock.WithProfile("default", ruleset.Rule{WaitTime: time.Nanosecond}),
	)
	wantText(t, err,
		"lock client is nil", "nil Option", "WithErrorWriter", `WithFallback: no name`, `WithFallback("queue")`,
		`WithFallback("twice"): given twice`, `WithVariable("none")`, `WithVariable: keyexpr: the variable "path" is built in: choose another name`, "not a name", `WithBody: route "orders"`,
		`WithBody: route "POST /orders/*"`, `WithBody: route "POST /a": given twice`, "chan int", "WithMaxBody(0)", "WithClientIP",
		"WithBuffer(0)", `WithBuffer: route "post /orders"`,
		"WithErrorWriter: given twice", `WithBuffer: route "POST /b": given twice`, "WithBuffer(4): given twice for all routes",
	)
}

func newGuard(t testing.TB, opts ...any) *ginlock.Guard {
	t.Helper()
	client, own := apart(opts)
	guard, err := ginlock.New(deaf(t, client...), own...)
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

func ok(c *gin.Context) { c.Status(http.StatusNoContent) }

func TestCheck_ReportsEveryProblemAtOnce(t *testing.T) {
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
		t.Errorf("Check judges a rule for gRPC:\n%v", err)
	}
	if again := guard.Check(r); again == nil || again.Error() != err.Error() {
		t.Errorf("a second Check differs:\n%v", again)
	}
}

func TestCheck_NilEngine(t *testing.T) {
	t.Parallel()
	wantText(t, newGuard(t).Check(nil), "nil")
}

func TestBroken_RuleAnswers500AndNeverRunsItsHandler(t *testing.T) {
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

func TestHandle_RegistersNothingThatGinCouldNot(t *testing.T) {
	t.Parallel()
	guard, r := newGuard(t), gin.New()
	wantText(t, guard.Handle(r, "post", "/x", ruleset.Rule{Key: "x"}), "upper case", "no handler")
	wantText(t, guard.Handle(notAGroup{}, "POST", "/x", ruleset.Rule{Key: "x"}, ok), "base path")
	want(t, "routes", len(r.Routes()), 0)
	want(t, "Check", guard.Check(r), nil)
}

type notAGroup struct{ gin.IRoutes }

func TestCheck_CompilesDeclaredRulesForTheObserversOnce(t *testing.T) {
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
	want(t, "rules told", len(rec.rules), 2)
	for _, info := range rec.rules {
		want(t, "rule", info.Rule, "api")
	}
}

func TestRoute_EscapedColonAndCatchAll(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		key := func(c *gin.Context) { c.String(http.StatusOK, ginlock.Hold(c).Key()) }
		s.handle(t, "POST", `/files/:dir/*rest`, ruleset.Rule{Key: "file:#{path.dir}:#{path.rest}"}, key)
		s.handle(t, "POST", `/jobs/:id/run\:now`, ruleset.Rule{Key: "job:#{path.id}"}, key)
		set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: ruleset.HTTP("POST /set/:id/run:now"), Key: "set:#{path.id}"}})
		if err != nil {
			t.Fatal(err)
		}
		s.engine.Group("", s.guard.Middleware(set)).POST(`/set/:id/run\:now`, key)
		want(t, "Check", s.guard.Check(s.engine), nil)
		want(t, "catch-all", serve(s, request{url: "/files/d/a/b"}).Body.String(), prefix+"file:d:/a/b")
		want(t, "slash at the end of a catch-all", serve(s, request{url: "/files/d/a/b/"}).Body.String(), prefix+"file:d:/a/b/")
		want(t, "colon", serve(s, request{url: "/jobs/7/run:now"}).Body.String(), prefix+"job:7")
		want(t, "colon in a set", serve(s, request{url: "/set/7/run:now"}).Body.String(), prefix+"set:7")
		want(t, "Check after requests", s.guard.Check(s.engine), nil)
	})
}

func TestCheck_HandlerOnARouteThatWasServedIsJudgedByIt(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.POST("/orders/:id", s.guard.Handler(ruleset.Rule{Key: "#{path.orderId}"}), ok)
		s.engine.GET("/orders/:orderId", ok)
		want(t, "before", s.guard.Check(s.engine), nil) // some route has the parameter
		want(t, "status", s.do(t, request{url: "/orders/1"}).Code, http.StatusInternalServerError)
		wantText(t, s.guard.Check(s.engine), "orderId", "POST /orders/:id")
	})
}

// What leads is the mistake, and not that no route has it right. The route that is named is
// the one that the rule fits best, where its mistake is another one elsewhere.
func TestCheck_HandlerThatFitsNoRouteIsToldItsMistakeFirst(t *testing.T) {
	t.Parallel()
	orders := ruleset.HTTP("POST /orders/:id")
	tests := []struct {
		name string
		rule ruleset.Rule
		says string
	}{
		{"a variable", ruleset.Rule{Key: "order:#{pth.id}"}, ": Key: 1:9: unknown name pth: "},
		{"a variable of a named rule", ruleset.Rule{Name: "pay", Key: "order:#{pth.id}"}, ": Key: 1:9: unknown name pth: "},
		{"a part", ruleset.Rule{Key: "order:#{path.id"}, ": Key: 1:7: the part is not closed"},
		{"a time", ruleset.Rule{Key: "order", WaitTime: -5}, ": WaitTime: -5ns is out of range"},
		{"a parameter", ruleset.Rule{Key: "order:#{path.idd}"}, " (nearest route: POST /orders/:id): Key: 1:14: path parameter idd does not exist: there is id\n"},
		{"a parameter of a rule with its route", ruleset.Rule{Endpoint: orders, Key: "order:#{path.idd}"}, " (nearest route: POST /orders/:id): Key: 1:14: path parameter idd does not exist: there is id\n"},
		{"a parameter that is near none", ruleset.Rule{Key: "#{path.id}:#{path.customer}"}, " (nearest route: POST /orders/:id): Key: 1:19: path parameter customer does not exist: there is id\n"},
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
			subject := "rule"
			if tt.rule.Name != "" {
				subject = `rule "pay"`
			}
			if !strings.HasPrefix(place, "ruleset: "+subject+" of Handler at ") || strings.Contains(place, "\n") || strings.Contains(err.Error(), "/health") {
				t.Errorf("the mistake does not lead:\n%v", err)
			}
		})
	}
}
