package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/interlock-go/interlock/examples/quickstart/shoppb"
	"github.com/interlock-go/interlock/failpolicy"
)

// stopRedis stops Redis, tries to buy a plate, starts Redis and buys one.
func stopRedis(ctx context.Context, d *demo) (string, error) {
	if err := d.stock.Write(ctx, "plate", pieces); err != nil {
		return "", err
	}
	before := d.stock.Writes()
	seen, err := d.buyWithoutRedis(ctx)
	if err != nil {
		return seen, err
	}
	unlocked := d.stock.Writes() - before
	d.out.linef("purchases during the outage: %d", unlocked)
	seen = fmt.Sprintf("%s, %d unlocked", seen, unlocked)
	if unlocked != 0 {
		return seen, errors.New("a handler ran without its lock")
	}
	return seen, d.sellAgain(ctx)
}

func (d *demo) buyWithoutRedis(ctx context.Context) (seen string, err error) {
	d.backend.outage.Down()
	defer d.backend.outage.Up()
	d.out.linef("Redis is down")
	d.curl(d.gin[0], "/items/plate/buy")
	answer, err := d.gin[0].post(ctx, "/items/plate/buy", nil)
	if err != nil {
		return "", err
	}
	d.showHTTP(answer)
	d.grpcurl(d.grpc[0], shoppb.Shop_Buy_FullMethodName, `{"item": "plate"}`)
	reply := d.grpc[0].invoke(ctx, shoppb.Shop_Buy_FullMethodName, &shoppb.BuyRequest{Item: "plate"}, &shoppb.BuyReply{})
	d.showGRPC(reply)
	seen = fmt.Sprintf("%d, %s", answer.code, reply.code())
	if answer.code != http.StatusServiceUnavailable || answer.problemType() != failpolicy.Backend.Type() ||
		reply.code() != "UNAVAILABLE" || reply.reason() != failpolicy.Backend.Reason() {
		return seen, fmt.Errorf("%s %s %s, want 503, UNAVAILABLE", seen, answer.problemType(), reply.reason())
	}
	return seen, nil
}

// sellAgain buys at every instance until each sells again, without a restart.
func (d *demo) sellAgain(ctx context.Context) error {
	d.out.linef("Redis is back")
	back := time.Now()
	for _, i := range d.instances() {
		if err := buyAgain(ctx, i); err != nil {
			return err
		}
		d.out.linef("%s %s sells again after %d ms", i.kind, i.addr, time.Since(back).Milliseconds())
	}
	return nil
}

func buyAgain(ctx context.Context, i *instance) error {
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for {
		bought, err := i.buy(ctx, "plate")
		if bought == sold {
			return nil
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return fmt.Errorf("no recovery: %w", err)
		}
	}
}
