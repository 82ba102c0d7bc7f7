package ruleset_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
)

type payment struct {
	OrderID string
	Cents   int
}

// functions puts rules around functions, on an embedded Redis in which somebody else can take locks.
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

// A window after each success, in which further calls are refused.
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

// The lock is taken only where the condition is true.
func ExampleRule_when() {
	locking, srv, done := functions()
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
