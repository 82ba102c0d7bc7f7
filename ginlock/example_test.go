package ginlock_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

// open returns a lock client on an embedded Redis. A program uses core.Open("redis://…") or core.New with its own go-redis
// client.
func open() (locks *core.Client, srv *redistest.Server, closeAll func()) {
	srv, err := redistest.Start()
	if err != nil {
		log.Fatal(err)
	}
	locks, err = core.New(srv.Client())
	if err != nil {
		log.Fatal(err)
	}
	return locks, srv, func() {
		_ = locks.Close(context.Background())
		srv.Close()
	}
}

// show prints the answer to a request.
func show(r *gin.Engine, method, url string) {
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), method, url, nil))
	if status := w.Header().Get(failpolicy.StatusHeader); status != "" {
		fmt.Println(w.Code, w.Body, "("+failpolicy.StatusHeader+": "+status+")")
		return
	}
	fmt.Println(strings.TrimSpace(fmt.Sprint(w.Code, " ", w.Body)))
}

// A Lock stands before the handler of its route. It needs no guard.
func ExampleLock() {
	locks, redis, done := open()
	defer done()

	r := gin.New()
	pay := func(c *gin.Context) { c.String(http.StatusOK, "paid") }
	r.POST("/orders/:orderId/pay", ginlock.Lock(locks, "order:pay:#{path.orderId}", ruleset.Rule{WaitTime: ruleset.NoWait}), pay)
	if err := ginlock.Check(locks, r); err != nil {
		log.Fatal(err)
	}

	show(r, "POST", "/orders/42/pay")
	redis.Take("order:pay:42", time.Minute) // another request pays order 42
	show(r, "POST", "/orders/42/pay")
	show(r, "POST", "/orders/43/pay")
	// Output:
	// 200 paid
	// 409 {"type":"https://interlock-go.github.io/problems/lock-busy","title":"Another request for the same resource is in progress","status":409}
	// 200 paid
}

// Put the guard before the handler of its route.
func ExampleGuard_Handler() {
	locks, redis, done := open()
	defer done()
	guard, err := ginlock.New(locks)
	if err != nil {
		log.Fatal(err)
	}
	rule := ruleset.Rule{Key: "order:pay:#{path.id}", WaitTime: ruleset.NoWait}

	r := gin.New()
	r.POST("/orders/:id/pay", guard.Handler(rule), func(c *gin.Context) { c.String(http.StatusOK, "paid") })
	if err := guard.Check(r); err != nil {
		log.Fatal(err)
	}

	show(r, "POST", "/orders/42/pay")
	redis.Take("order:pay:42", time.Minute) // another request pays order 42
	show(r, "POST", "/orders/42/pay")
	show(r, "POST", "/orders/43/pay")
	// Output:
	// 200 paid
	// 409 {"type":"https://interlock-go.github.io/problems/lock-busy","title":"Another request for the same resource is in progress","status":409}
	// 200 paid
}

// Handle compiles the rule at once, with the parameters of that route.
func ExampleGuard_Handle() {
	locks, _, done := open()
	defer done()
	guard, err := ginlock.New(locks)
	if err != nil {
		log.Fatal(err)
	}
	api := gin.New().Group("/v1")
	err = guard.Handle(api, "POST", "/orders/:id/pay", ruleset.Rule{Key: "order:#{path.orderId}"}, func(*gin.Context) {})
	fmt.Println(err)
	// Output:
	// ruleset: rule of http POST /v1/orders/:id/pay: Key: 1:14: path parameter orderId does not exist: there is id
	// 	  | order:#{path.orderId}
	// 	  |              ^
	// 	  write path.id
}

// Declared rules name their routes. One middleware takes the locks of all of them.
func ExampleGuard_Middleware() {
	locks, redis, done := open()
	defer done()
	guard, err := ginlock.New(locks)
	if err != nil {
		log.Fatal(err)
	}
	rules, err := ruleset.NewSet([]ruleset.Rule{
		{Endpoint: ruleset.HTTP("POST /orders/:id/pay"), Key: "order:#{path.id}", WaitTime: ruleset.NoWait, OnBusy: failpolicy.NullResponse},
		{Endpoint: ruleset.HTTP("* /admin/*"), Key: "admin", Profile: "quick"},
	})
	if err != nil {
		log.Fatal(err)
	}

	r := gin.New() // recovery, tracing and authentication come first
	r.Use(guard.Middleware(rules))
	r.POST("/orders/:id/pay", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"paid": true}) })
	r.GET("/orders/:id", func(c *gin.Context) { c.String(http.StatusOK, "not guarded") })
	r.DELETE("/admin/orders", func(c *gin.Context) { c.String(http.StatusOK, "deleted") })
	if err := guard.Check(r); err != nil {
		log.Fatal(err)
	}

	show(r, "POST", "/orders/42/pay")
	redis.Take("order:42", time.Minute)
	show(r, "POST", "/orders/42/pay")
	show(r, "GET", "/orders/42")
	show(r, "DELETE", "/admin/orders")
	// Output:
	// 200 {"paid":true}
	// 200 null (X-Lock-Status: null)
	// 200 not guarded
	// 200 deleted
}

// A route that is registered before Use does not have the middleware on its chain.
func ExampleGuard_Middleware_tooLate() {
	locks, _, done := open()
	defer done()
	guard, err := ginlock.New(locks)
	if err != nil {
		log.Fatal(err)
	}
	rules, err := ruleset.NewSet([]ruleset.Rule{
		{Endpoint: ruleset.HTTP("* /*"), Key: "shop:#{path.id}", WaitTime: ruleset.NoWait},
	})
	if err != nil {
		log.Fatal(err)
	}

	r := gin.New()
	r.POST("/orders/:id", func(c *gin.Context) { c.String(http.StatusOK, "unlocked") })
	r.Use(guard.Middleware(rules))
	r.POST("/invoices/:id", func(c *gin.Context) { c.String(http.StatusOK, "locked") })
	what, _, _ := strings.Cut(fmt.Sprint(guard.Check(r)), ",")
	fmt.Println(what)
	// Output:
	// ruleset: rule of http * /*: POST /orders/:id: Middleware is not on the chain of the route
}

// The hold outlives the request: the answer is 202, and the work continues under the lock.
func ExampleHold() {
	locks, _, done := open()
	defer done()
	guard, err := ginlock.New(locks)
	if err != nil {
		log.Fatal(err)
	}
	finished := make(chan struct{}, 2)
	r := gin.New()
	r.POST("/reports/:day", guard.Handler(ruleset.Rule{Key: "report:#{path.day}", WaitTime: ruleset.NoWait}), func(c *gin.Context) {
		ctx, hold := ginlock.Hold(c).Handover()
		go func() {
			defer func() { finished <- struct{}{} }()
			defer func() { _ = hold.Release(ctx) }()
			// … make the report
		}()
		c.Status(http.StatusAccepted)
	})

	show(r, "POST", "/reports/monday")
	<-finished
	show(r, "POST", "/reports/monday")
	// Output:
	// 202
	// 202
}

// A handler that needs the lock only for its first part. The context of the request carries the lock and is canceled with
// it. The rest of the handler continues with the context from before the guard, or with a detached context.
func ExampleHold_early() {
	locks, _, done := open()
	defer done()
	guard, err := ginlock.New(locks)
	if err != nil {
		log.Fatal(err)
	}
	r := gin.New()
	r.POST("/orders/:id/pay", guard.Handler(ruleset.Rule{Key: "order:#{path.id}"}), func(c *gin.Context) {
		ctx := c.Request.Context()
		// … charge …
		if err := ginlock.Hold(c).Release(ctx); err != nil {
			_ = c.Error(err)
			return
		}
		after := ginlock.Caller(c) // for the receipt, without the lock
		c.String(http.StatusOK, "%v, then %v", context.Cause(ctx), after.Err())
	})

	show(r, "POST", "/orders/42/pay")
	// Output: 200 core: lock released, then <nil>
}

// A fallback answers instead of the handler, without the lock.
func ExampleWithFallback() {
	locks, redis, done := open()
	defer done()
	queue := func(c *gin.Context) {
		o, _ := aspect.OutcomeFrom(c.Request.Context())
		c.String(http.StatusAccepted, "queued, because the order is %s", o.Cause)
	}
	guard, err := ginlock.New(locks, ginlock.WithFallback("queue", queue))
	if err != nil {
		log.Fatal(err)
	}
	rule := ruleset.Rule{Key: "order:#{path.id}", WaitTime: ruleset.NoWait, OnBusy: failpolicy.Fallback, Fallback: "queue"}
	r := gin.New()
	r.POST("/orders/:id/pay", guard.Handler(rule), func(c *gin.Context) { c.String(http.StatusOK, "paid") })

	redis.Take("order:42", time.Minute)
	show(r, "POST", "/orders/42/pay")
	// Output: 202 queued, because the order is busy
}

// An API with another error format.
func ExampleWithErrorWriter() {
	locks, redis, done := open()
	defer done()
	write := func(c *gin.Context, refusal *aspect.RefusedError) {
		c.JSON(refusal.Status.HTTP, gin.H{"code": refusal.Cause.Reason(), "msg": refusal.Message})
	}
	guard, err := ginlock.New(locks, ginlock.WithErrorWriter(write))
	if err != nil {
		log.Fatal(err)
	}
	rule := ruleset.Rule{Key: "order:#{path.id}", WaitTime: ruleset.NoWait, Message: "This order is being paid."}
	r := gin.New()
	r.POST("/orders/:id/pay", guard.Handler(rule), func(c *gin.Context) { c.String(http.StatusOK, "paid") })

	redis.Take("order:42", time.Minute)
	show(r, "POST", "/orders/42/pay")
	// Output: 409 {"code":"LOCK_BUSY","msg":"This order is being paid."}
}

// A key with the authenticated user. Authentication runs before the guard.
func ExampleWithVariable() {
	type user struct{ Tenant string }
	locks, _, done := open()
	defer done()
	guard, err := ginlock.New(locks, ginlock.WithVariable("user", func(c *gin.Context) (*user, error) {
		u, _ := c.Value("user").(*user)
		return u, nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	authenticate := func(c *gin.Context) { c.Set("user", &user{Tenant: "acme"}) }
	rule := ruleset.Rule{Key: "#{user.Tenant}:order:#{path.id}"}
	pay := func(c *gin.Context) { c.String(http.StatusOK, ginlock.Hold(c).Key()) }

	r := gin.New()
	r.POST("/orders/:id/pay", authenticate, guard.Handler(rule), pay)
	r.POST("/wrong/:id", guard.Handler(rule), authenticate, pay)
	show(r, "POST", "/orders/42/pay")
	show(r, "POST", "/wrong/42")
	// Output:
	// 200 acme:order:42
	// 500 {"type":"about:blank","title":"The request could not be completed","status":500}
}

// A typed body is checked at start-up, like everything else.
func ExampleWithBody() {
	type payment struct {
		OrderID string `json:"order_id"`
	}
	locks, _, done := open()
	defer done()
	guard, err := ginlock.New(locks, ginlock.WithBody[payment]("POST /payments"))
	if err != nil {
		log.Fatal(err)
	}
	r := gin.New()
	fmt.Println(guard.Handle(r, "POST", "/payments", ruleset.Rule{Key: "order:#{body.orderId}"}, func(*gin.Context) {}))
	// Output:
	// ruleset: rule of http POST /payments: Key: 1:14: ginlock_test.payment has no field orderId: there is order_id
	// 	  | order:#{body.orderId}
	// 	  |              ^
	// 	  write body.order_id
}

// The guard compares a rule file with the routes at start-up and at every reload. A problem is reported with its line, and
// the rules in force stay.
func ExampleGuard_Middleware_file() {
	locks, redis, done := open()
	defer done()
	guard, err := ginlock.New(locks)
	if err != nil {
		log.Fatal(err)
	}
	file := filepath.Join(os.TempDir(), fmt.Sprintf("locks-%d.yaml", os.Getpid()))
	defer os.Remove(file)
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	write(`
rules:
  - http: POST /orders/:id/pay
    key: "order:#{path.id}"
    wait_time: none
  - http: POST /login
    none: true
`)
	rules, err := ruleset.Open(file) // or Watch, which reloads by itself
	if err != nil {
		log.Fatal(err)
	}
	defer rules.Close()

	r := gin.New()
	r.Use(guard.Middleware(rules))
	r.POST("/orders/:id/pay", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"paid": true}) })
	r.POST("/login", func(c *gin.Context) { c.String(http.StatusOK, "hello") })
	if err := guard.Check(r); err != nil {
		log.Fatal(err)
	}
	redis.Take("order:42", time.Minute)
	show(r, "POST", "/login")

	write("rules:\n  - http: POST /orders/:id/pya\n    key: \"order:#{path.id}\"\n")
	_, problem, _ := strings.Cut(rules.Reload().Error(), ".yaml:")
	fmt.Println(problem)

	write("disabled: true\nrules:\n  - http: POST /orders/:id/pay\n    key: \"order:#{path.id}\"\n")
	fmt.Println(rules.Reload())
	show(r, "POST", "/orders/42/pay")
	// Output:
	// 200 hello
	// 2:11: rule of http POST /orders/:id/pya: http: matches no route: did you mean "POST /orders/:id/pay"?
	// <nil>
	// 200 {"paid":true}
}
