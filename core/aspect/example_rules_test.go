package aspect_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// exampleAspect returns an Aspect on an embedded Redis, in which other holders can take locks.
func exampleAspect(opts ...aspect.Option) (*aspect.Aspect, *redistest.Server, func()) {
	srv, err := redistest.Start()
	if err != nil {
		panic(err)
	}
	locks, err := core.New(srv.Client())
	if err != nil {
		panic(err)
	}
	locking, err := aspect.New(locks, opts...)
	if err != nil {
		panic(err)
	}
	return locking, srv, func() {
		_ = locks.Close(context.Background())
		srv.Close()
	}
}

// Every instance starts a cron job, but only one instance runs it. Each tick has a separate lock. After a
// tick, a debounce window keeps late instances from running the same tick again. The rule is in a file under
// the name of the function, so that operators can change it without a new build.
func ExampleWrap_cron() {
	rules, err := ruleset.Load("locks.yaml", []byte(`
rules:
  - func: close-day
    key: "close-day:#{in.Day}"
    debounce: 1h     # longer than the clocks of the instances differ
    on_busy: skip
`)) // in a program: ruleset.Watch("locks.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	locking, srv, done := exampleAspect(aspect.WithSet(rules))
	defer done()
	type tick struct{ Day string }
	closeDay, err := aspect.Wrap(locking, ruleset.Rule{Endpoint: ruleset.Func("close-day")},
		func(_ context.Context, t tick) (string, error) { return "closed " + t.Day, nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := locking.Check(); err != nil { // each func: rule of the file has a function
		fmt.Println(err)
		return
	}

	ctx := context.Background() // the context of the tick
	for _, day := range []string{"monday", "monday", "tuesday"} {
		if day == "tuesday" {
			srv.Take("close-day:tuesday", time.Hour) // another instance runs this tick
		}
		report, err := closeDay(ctx, tick{day})
		fmt.Printf("%s: %q %v\n", day, report, err)
	}
	// Output:
	// monday: "closed monday" <nil>
	// monday: "" <nil>
	// tuesday: "" <nil>
}

// A RefusedError contains the cause of a refusal and the status for a client.
func ExampleRefusedError() {
	locking, srv, done := exampleAspect()
	defer done()
	pay, err := aspect.Wrap(locking, ruleset.Rule{Name: "pay", Key: "order:pay:#{in.OrderID}", WaitTime: ruleset.NoWait},
		func(context.Context, payment) (string, error) { return "paid", nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	srv.Take("order:pay:42", time.Minute)
	for _, order := range []string{"42", ""} {
		_, err = pay(context.Background(), payment{OrderID: order})
		refused, ok := errors.AsType[*aspect.RefusedError](err)
		if !ok {
			continue
		}
		switch refused.Cause {
		case failpolicy.Busy:
			fmt.Println("later:", refused.Status.HTTP, refused.RetryAfter > 0)
		case failpolicy.Key:
			fmt.Println("never:", refused.Status.HTTP, refused.RetryAfter > 0)
		default:
			fmt.Println(refused)
		}
	}
	// Output:
	// later: 409 true
	// never: 400 false
}
