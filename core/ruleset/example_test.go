package ruleset_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

func ExampleNewSet() {
	set, err := ruleset.NewSet([]ruleset.Rule{
		{
			Endpoint: ruleset.HTTP("POST /orders/:id/pay"),
			Key:      "order:pay:#{path.id}",
			Profile:  "normal",
			OnBusy:   failpolicy.NullResponse,
		},
		{Endpoint: ruleset.GRPC("/shop.Orders/*"), Key: "order:#{req.order_id}", WaitTime: 3 * time.Second},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range set.Match(ruleset.Route("POST", "/orders/:id/pay")) {
		fmt.Println(r.Name, r.WaitTime, r.LeaseTime, r.OnBusy, r.OnBackend)
		fmt.Println("lease_time comes from", r.Source("lease_time"))
	}
	// Output:
	// POST /orders/:id/pay 5s 30s null_response error
	// lease_time comes from profile normal
}

func ExampleNewSet_problems() {
	_, err := ruleset.NewSet([]ruleset.Rule{{
		Endpoint:  ruleset.HTTP("/orders"),
		Key:       "order:#{path.id}",
		WaitTime:  10,
		OnLost:    "FAIL_FAST",
		LeaseTime: ruleset.NoWait,
	}})
	fmt.Println(err)
	// Output:
	// ruleset: 4 problems
	// 	rule of http /orders: Endpoint: "/orders" has no method: write "POST /orders"
	// 	rule of http /orders: WaitTime: 10ns is out of range: write 1ms to 87600h, ruleset.NoWait or ruleset.WaitForever (is a unit missing? 10*time.Second)
	// 	rule of http /orders: LeaseTime: ruleset.NoWait belongs to WaitTime: write a time such as 30*time.Second, or ruleset.Watchdog
	// 	rule of http /orders: OnLost: unknown OnLost "FAIL_FAST": write failpolicy.Fail (one of failpolicy.Cancel, failpolicy.Ignore, failpolicy.Fail)
}

func ExampleLoad() {
	set, err := ruleset.Load("locks.yaml", []byte(`
profiles:
  default: {wait_time: 5s}
  checkout: {lease_time: 20s, on_busy: skip}
rules:
  - http: POST /orders/:id/pay
    key: "order:pay:#{path.id}"
    profile: checkout
  - grpc: /shop.Orders/*
    key: "order:#{req.order_id}"
    wait_time: none
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range set.Rules() {
		fmt.Println(r.Endpoint, r.Source("key"))
		fmt.Println("  wait_time comes from", r.Source("wait_time"))
		fmt.Println("  lease_time comes from", r.Source("lease_time"))
	}
	// Output:
	// http POST /orders/:id/pay locks.yaml:7:10
	//   wait_time comes from default, locks.yaml:3:24
	//   lease_time comes from profile checkout, locks.yaml:4:26
	// grpc /shop.Orders/* locks.yaml:10:10
	//   wait_time comes from locks.yaml:11:16
	//   lease_time comes from default
}

func ExampleDump_WriteText() {
	set, err := ruleset.Load("locks.yaml", []byte(`
dry_run: true
rules:
  - http: POST /orders/:id/pay
    key: "order:pay:#{path.id}"
    profile: quick
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := set.Dump().WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// dry_run:  true  # locks.yaml:2:10
	// rules:
	//   - http:         POST /orders/:id/pay    # locks.yaml:4:11
	//     key:          "order:pay:#{path.id}"  # locks.yaml:5:10
	//     kind:         reentrant               # default
	//     wait_time:    3s                      # profile quick
	//     lease_time:   10s                     # profile quick
	//     on_busy:      error                   # default
	//     on_backend:   error                   # default
	//     on_key:       error                   # default
	//     on_overload:  error                   # default
	//     on_lost:      cancel                  # default
	//     key_format:   encode                  # default
	//     profile:      quick                   # locks.yaml:6:14
	//     dry_run:      true                    # locks.yaml:2:10
}

type payment struct {
	OrderID string
	Cents   int
}

// functions returns an Aspect for rules around functions. Its Redis is embedded, and another client can take
// locks in it.
func functions() (*aspect.Aspect, *redistest.Server, func()) {
	srv, err := redistest.Start()
	if err != nil {
		panic(err)
	}
	locks, err := core.New(srv.Client())
	if err != nil {
		panic(err)
	}
	locking, err := aspect.New(locks)
	if err != nil {
		panic(err)
	}
	return locking, srv, func() {
		_ = locks.Close(context.Background())
		srv.Close()
	}
}

// After each success, further calls are refused for the window.
func ExampleRule_debounce() {
	locking, _, done := functions()
	defer done()
	remind, err := aspect.Wrap(locking, ruleset.Rule{
		Name:     "remind",
		Key:      "remind:#{in.OrderID}",
		Debounce: 24 * time.Hour,
	}, func(_ context.Context, p payment) (string, error) {
		return "reminded of " + p.OrderID, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	fmt.Println(remind(ctx, payment{OrderID: "42"}))
	_, err = remind(ctx, payment{OrderID: "42"})
	if refused, ok := errors.AsType[*aspect.RefusedError](err); ok {
		fmt.Println(refused.Cause, refused.Status.HTTP, "try again in", refused.RetryAfter.Round(time.Hour))
	}
	fmt.Println(remind(ctx, payment{OrderID: "43"}))
	// Output:
	// reminded of 42 <nil>
	// debounced 429 try again in 24h0m0s
	// reminded of 43 <nil>
}

// The lock is taken only if the condition is true.
func ExampleRule_when() {
	locking, srv, done := functions()
	defer done()
	pay, err := aspect.Wrap(locking, ruleset.Rule{
		Name:     "pay",
		Key:      "order:pay:#{in.OrderID}",
		When:     "in.Cents > 0", // an order that costs nothing may be paid more than once
		WaitTime: ruleset.NoWait,
	}, func(_ context.Context, p payment) (string, error) {
		return "paid " + p.OrderID, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	srv.Take("order:pay:42", time.Minute) // another client pays order 42
	ctx := context.Background()
	fmt.Println(pay(ctx, payment{OrderID: "42"}))
	_, err = pay(ctx, payment{OrderID: "42", Cents: 990})
	fmt.Println(errors.Is(err, core.ErrNotAcquired))
	// Output:
	// paid 42 <nil>
	// true
}

// guard stands for the adapter of a router. It prepares data for each route and uses the data until the next
// set comes into force.
type guard struct {
	keys atomic.Pointer[map[ruleset.Endpoint]string]
}

func (g *guard) prepare(next *ruleset.Set) (commit func(), err error) {
	keys := map[ruleset.Endpoint]string{}
	for _, r := range next.Rules() {
		keys[r.Endpoint] = r.Key
	}
	return func() { g.keys.Store(&keys) }, nil
}

func (g *guard) key(method, path string) string { return (*g.keys.Load())[ruleset.Route(method, path)] }

func ExampleWatch() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "locks.yaml")
	save := func(text string) {
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			fmt.Println(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			fmt.Println(err)
		}
	}
	save(`rules: [{http: "POST /pay", key: "order:#{query.id}"}]`)

	seen := make(chan ruleset.Reload, 10) // instead of a log
	rules, err := ruleset.Watch(path, ruleset.WithReloadObserver(func(r ruleset.Reload) { seen <- r }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rules.Close()
	var g guard
	if _, err := rules.Subscribe(g.prepare); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("in force:", (<-seen).Hash, g.key(http.MethodPost, "/pay"))

	// Another key is refused, because programs with the old one may still run.
	save(`rules: [{http: "POST /pay", key: "pay:#{query.id}"}]`)
	fmt.Println("refused:", (<-seen).Err != nil, g.key(http.MethodPost, "/pay"))

	save(`{allow_rekey: true, rules: [{http: "POST /pay", key: "pay:#{query.id}"}]}`)
	fmt.Println("refused:", (<-seen).Err != nil, g.key(http.MethodPost, "/pay"))
	// Output:
	// in force: 3292e76d8518 order:#{query.id}
	// refused: true order:#{query.id}
	// refused: false pay:#{query.id}
}
