package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// outlastLease counts spoons for more than twice the lease while a customer waits to buy one.
func outlastLease(ctx context.Context, d *demo) (string, error) {
	const work = "/items/spoon/count?for=4500ms"
	if err := d.stock.Write(ctx, "spoon", 1); err != nil {
		return "", err
	}
	d.curl(d.gin[0], work)
	d.out.linef("the lease is %s; the watchdog renews it every third of that", watchdogLease)
	count := inBackground(func() (*httpAnswer, error) { return d.gin[0].post(ctx, work, nil) })
	first, err := d.await(ctx, "spoon", count.done, isHeld)
	if err != nil {
		return "", err
	}
	customer := inBackground(func() (outcome, error) { return d.grpc[0].buy(ctx, "spoon") })
	held, err := d.watch(ctx, "spoon", first, count.done)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("1 holder for %.1f s", held.Seconds()), d.checkCount(held, count, customer)
}

func (d *demo) checkCount(held time.Duration, count *background[*httpAnswer], customer *background[outcome]) error {
	answer, err := count.wait()
	if err != nil {
		return err
	}
	bought, err := customer.wait()
	if err != nil {
		return err
	}
	d.out.linef("the count: HTTP %d; then the waiting customer: %s", answer.code, bought)
	if answer.code != http.StatusOK || bought != sold || held <= watchdogLease {
		return fmt.Errorf("HTTP %d, %q, held for %s; want 200, %q, more than %s", answer.code, bought, held, sold, watchdogLease)
	}
	return nil
}

// watch prints the lock of an item twice a second until the work is done. It returns the time for
// which the first holder was seen. It returns an error if it sees another holder before the work
// is done.
func (d *demo) watch(ctx context.Context, item string, first lockState, done <-chan struct{}) (time.Duration, error) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	var held time.Duration
	for began := time.Now(); ; {
		select {
		case <-done:
			return held, nil
		case <-tick.C:
		}
		s, err := d.readLock(ctx, item)
		if err != nil {
			return held, err
		}
		if !s.sameHolder(first) {
			return held, checkDone(done)
		}
		held = time.Since(began)
		d.out.linef("after %.1f s: held by %s, %d ms left", held.Seconds(), s.holders(), s.ttl.Milliseconds())
	}
}

// checkDone returns nil if work whose lock was released is done or is about to answer.
func checkDone(done <-chan struct{}) error {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return fmt.Errorf("another holder got the lock while the handler ran")
	}
}
