package ruleset_test

import (
	"fmt"

	"github.com/interlock-go/interlock/core/ruleset"
)

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
