package main

import (
	"context"
	"fmt"
)

// endTraffic stops the callers and counts their calls.
func endTraffic(_ context.Context, d *demo) (string, error) {
	d.traffic.stop()
	failed, err := d.traffic.failures()
	d.out.linef("%d calls served, %d failed", d.traffic.served.Load(), failed)
	return fmt.Sprintf("%d failed of %d", failed, d.traffic.served.Load()+int64(failed)), err
}
