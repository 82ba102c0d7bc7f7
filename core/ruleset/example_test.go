package ruleset_test

import (
	"fmt"
	"time"

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
