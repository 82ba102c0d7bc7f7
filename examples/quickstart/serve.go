package main

import (
	"context"
	"net/url"

	"github.com/interlock-go/interlock/examples/quickstart/shoppb"
)

// serve prints commands to try and keeps the servers running until ctx is done.
func (d *demo) serve(ctx context.Context) {
	if err := d.stock.Write(ctx, "teapot", pieces); err != nil {
		return
	}
	a, b, g := d.gin[0], d.gin[1], d.grpc[0]
	d.out.titlef("The servers are running; Ctrl-C ends them. There are %d teapots. Try", pieces)
	d.curl(a, "/items/teapot/buy")
	d.grpcurl(g, shoppb.Shop_Buy_FullMethodName, `{"item": "teapot"}`)
	d.out.titlef("Hold the lock for 20 seconds, and run the other commands in another terminal during that time")
	d.curl(a, "/items/teapot/count?for=20s")
	d.out.commandf("redis-cli -u %s HGETALL %s", withoutPassword(d.backend.url), d.lockKey("teapot"))
	d.curl(b, "/items/teapot/buy")
	for _, path := range []string{"reserve-or-fail", "reserve-or-skip", "reserve-or-null", "reserve-or-queue", "reserve-anyway"} {
		d.curl(b, "/items/teapot/"+path)
	}
	d.grpcurl(g, shoppb.Shop_ReserveOrFail_FullMethodName, `{"item": "teapot"}`)
	d.out.commandf("grpcurl -plaintext %s describe %s", g.addr, shoppb.Shop_ServiceDesc.ServiceName)
	<-ctx.Done()
}

func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Redacted()
}
