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

// exampleAspect is an Aspect on an embedded Redis, in which somebody else can take locks.
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

// A window after each success, in which further calls are refused.
func ExampleWrap_debounce() {
	locking, _, done := exampleAspect()
	defer done()
	remind, err := aspect.Wrap(locking, ruleset.Rule{
		Name:     "remind",
		Key:      "remind:#{in.OrderID}",
		Debounce: time.Hour,
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
		fmt.Println(refused.Cause, refused.Status.HTTP, "try again in", refused.RetryAfter.Round(time.Minute))
	}
	fmt.Println(remind(ctx, payment{OrderID: "43"}))
	// Output:
	// reminded of 42 <nil>
	// debounced 429 try again in 1h0m0s
	// reminded of 43 <nil>
}

// The lock is taken only where the condition is true.
func ExampleWrap_when() {
	locking, srv, done := exampleAspect()
	defer done()
	pay, err := aspect.Wrap(locking, ruleset.Rule{
		Name:     "pay",
		Key:      "order:pay:#{in.OrderID}",
		When:     "in.Cents > 0", // what costs nothing may be paid twice
		WaitTime: ruleset.NoWait,
	}, func(_ context.Context, p payment) (string, error) {
		return "paid " + p.OrderID, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	srv.Take("order:pay:42", time.Minute) // somebody else pays order 42
	ctx := context.Background()
	fmt.Println(pay(ctx, payment{OrderID: "42"}))
	_, err = pay(ctx, payment{OrderID: "42", Cents: 990})
	fmt.Println(errors.Is(err, core.ErrNotAcquired))
	// Output:
	// paid 42 <nil>
	// true
}

// A cron job that one instance of many runs. Its rule is in a file, under the name that the
// program gives the function: operators change it without a new build.
func ExampleWithSet() {
	rules, err := ruleset.Load("locks.yaml", []byte(`
rules:
  - func: close-day
    key: close-day
    wait_time: none   # who comes second has nothing to do
    on_busy: skip
`)) // in a program: ruleset.Watch("locks.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	locking, srv, done := exampleAspect(aspect.WithSet(rules))
	defer done()
	closeDay, err := aspect.Wrap(locking, ruleset.Rule{Endpoint: ruleset.Func("close-day")},
		func(_ context.Context, day time.Weekday) (string, error) { return "closed " + day.String(), nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := locking.Check(); err != nil { // each func: rule of the file has a function
		fmt.Println(err)
		return
	}

	ctx := context.Background() // of the scheduler's tick
	fmt.Println(closeDay(ctx, time.Monday))
	srv.Take("close-day", time.Minute) // another instance has begun
	report, err := closeDay(ctx, time.Tuesday)
	fmt.Printf("%q %v\n", report, err)
	// Output:
	// closed Monday <nil>
	// "" <nil>
}

// What a caller does with a refusal: the cause says why, the status what to answer.
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
