package main

import (
	"context"
	"fmt"
	"time"
)

// overlay has somebody pay over gRPC while somebody pays the same order over HTTP:
// orders.proto says that he waits for 30 s, and locks.yaml 600 ms.
func overlay(ctx context.Context, d *demo) (string, error) {
	c, err := d.collide(ctx, "1008", post("/orders/%s/pay"), payRPC)
	if err != nil {
		return "", err
	}
	d.out.linef("orders.proto says wait_time: \"30s\", locks.yaml 600ms")
	d.out.linef("rpc Pay, while POST /orders/1008/pay is at work: %s after %s", c.second, milliseconds(c.waited))
	if c.second != "ABORTED" || c.waited < 600*time.Millisecond || c.waited > 10*time.Second {
		err = fmt.Errorf("%s after %s, want ABORTED after 600 ms", c.second, c.waited)
	}
	return fmt.Sprintf("%s after %s", c.second, milliseconds(c.waited)), err
}
