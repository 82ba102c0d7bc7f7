package main

import (
	"context"
	"fmt"
	"time"
)

// overlay pays an order over gRPC while another caller pays it over HTTP. The wait time is 30 s in
// orders.proto, but locks.yaml sets it to 600 ms.
func overlay(ctx context.Context, d *demo) (string, error) {
	c, err := d.collide(ctx, "1008", post("/orders/%s/pay"), payRPC)
	if err != nil {
		return "", err
	}
	d.out.linef("orders.proto has wait_time: \"30s\", locks.yaml has 600ms")
	d.out.linef("rpc Pay, while the handler of POST /orders/1008/pay works: %s after %s", c.second, milliseconds(c.waited))
	if c.second != "ABORTED" || c.waited < 600*time.Millisecond || c.waited > 10*time.Second {
		err = fmt.Errorf("%s after %s, want ABORTED after 600 ms", c.second, c.waited)
	}
	return fmt.Sprintf("%s after %s", c.second, milliseconds(c.waited)), err
}
