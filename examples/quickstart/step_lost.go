package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/examples/quickstart/shoppb"
	"github.com/interlock-go/interlock/failpolicy"
)

// loseLock takes the lock away from a Gin handler and lets the lease of a gRPC handler expire.
func loseLock(ctx context.Context, d *demo) (string, error) {
	d.log.take(nil)
	answer, err := d.forceLoss(ctx)
	if err != nil {
		return "", err
	}
	ginSaw := d.log.take(core.ErrLost)
	expired := d.expireLoss(ctx)
	grpcSaw := d.log.take(core.ErrLost)
	seen := fmt.Sprintf("%d, %s", answer.code, expired.code())
	switch {
	case !ginSaw || !grpcSaw:
		return seen, errors.New("a handler was not notified that its lock is lost")
	case answer.code != http.StatusInternalServerError || answer.problemType() != failpolicy.Lost.Type():
		return seen, fmt.Errorf("HTTP %d %s, want 500 %s", answer.code, answer.problemType(), failpolicy.Lost.Type())
	case expired.code() != "INTERNAL" || expired.reason() != failpolicy.Lost.Reason():
		return seen, fmt.Errorf("%s %s, want INTERNAL %s", expired.code(), expired.reason(), failpolicy.Lost.Reason())
	}
	return seen, nil
}

// forceLoss releases the lock of the jugs by force while they are counted, like an operator.
func (d *demo) forceLoss(ctx context.Context) (*httpAnswer, error) {
	const work = "/items/jug/count?for=20s"
	d.curl(d.gin[0], work)
	count := inBackground(func() (*httpAnswer, error) { return d.gin[0].post(ctx, work, nil) })
	if _, err := d.await(ctx, "jug", count.done, isHeld); err != nil {
		return nil, err
	}
	d.out.linef("an operator releases the lock by force: ForceRelease")
	if _, err := d.other.Lock(lockName("jug")).ForceRelease(ctx); err != nil {
		return nil, err
	}
	answer, err := count.wait()
	if err != nil {
		return nil, err
	}
	d.showHTTP(answer)
	return answer, nil
}

// expireLoss calls a method that takes longer than the fixed lease of its rule.
func (d *demo) expireLoss(ctx context.Context) *grpcAnswer {
	d.grpcurl(d.grpc[0], shoppb.Shop_Reprice_FullMethodName, `{"item": "jug", "milliseconds": 20000}`)
	d.out.linef("its rule has a fixed lease of 500 ms")
	answer := d.grpc[0].invoke(ctx, shoppb.Shop_Reprice_FullMethodName,
		&shoppb.CountRequest{Item: "jug", Milliseconds: 20_000}, &shoppb.CountReply{})
	d.showGRPC(answer)
	return answer
}
