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
)

type payment struct {
	OrderID string
	Cents   int
}

// Two payments of one order at the same time: the second is refused.
func ExampleWrap() {
	srv, err := redistest.Start() // your own Redis client, in production
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	locks, err := core.New(srv.Client())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = locks.Close(context.Background()) }()
	locking, err := aspect.New(locks)
	if err != nil {
		fmt.Println(err)
		return
	}

	var pay func(context.Context, payment) (string, error)
	pay, err = aspect.Wrap(locking, ruleset.Rule{
		Name:      "pay",
		Key:       "order:pay:#{in.OrderID}",
		WaitTime:  ruleset.NoWait,
		LeaseTime: 30 * time.Second,
	}, func(_ context.Context, p payment) (string, error) {
		_, second := pay(context.Background(), p)
		if refused, ok := errors.AsType[*aspect.RefusedError](second); ok {
			fmt.Println("second:", refused.Cause, refused.Status.HTTP)
		}
		return "paid " + p.OrderID, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pay(context.Background(), payment{OrderID: "42", Cents: 990}))
	// Output:
	// second: busy 409
	// paid 42 <nil>
}
