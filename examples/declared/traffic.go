package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// trafficMark is part of the subject of every call of the traffic.
const trafficMark = "traffic"

// traffic has callers that call without a pause, each with orders that no other caller
// uses. None of their calls may fail, whatever happens to the rules.
type traffic struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	served  atomic.Int64

	mu     sync.Mutex
	failed []error
}

// startTraffic starts two callers over HTTP and two over gRPC.
func startTraffic(ctx context.Context, c *client) *traffic {
	ctx, cancel := context.WithCancel(ctx)
	t := &traffic{cancel: cancel}
	for n := range 2 {
		t.running.Go(func() { t.callAll(ctx, c, post("/orders/%s/pay"), fmt.Sprintf("%s-web%d", trafficMark, n), "200") })
		t.running.Go(func() { t.callAll(ctx, c, payRPC, fmt.Sprintf("%s-rpc%d", trafficMark, n), "OK") })
	}
	return t
}

// callAll calls until ctx ends. A call that ends with ctx does not count as failed.
func (t *traffic) callAll(ctx context.Context, c *client, call call, subject, want string) {
	for n := 0; ctx.Err() == nil; n++ {
		answer, err := call(ctx, c, fmt.Sprintf("%s-%d", subject, n))
		switch {
		case ctx.Err() != nil:
		case err != nil:
			t.fail(err)
		case answer != want:
			t.fail(fmt.Errorf("%s: answer %s, want %s", subject, answer, want))
		default:
			t.served.Add(1)
		}
		time.Sleep(2 * time.Millisecond) // leaves time for other work on this machine
	}
}

func (t *traffic) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = append(t.failed, err)
}

// failures returns the number of failed calls so far.
func (t *traffic) failures() (count int, first error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.failed) == 0 {
		return 0, nil
	}
	return len(t.failed), t.failed[0]
}

// await waits until a number of further calls were served.
func (t *traffic) await(ctx context.Context, more int64) error {
	failed, _ := t.failures() //nolint:errcheck // the callers report errors
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for want := t.served.Load() + more; t.served.Load() < want; {
		if now, err := t.failures(); now > failed {
			return fmt.Errorf("%d calls failed, the first one: %w", now, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("no more calls were served")
		}
	}
	return nil
}

func (t *traffic) stop() {
	t.cancel()
	t.running.Wait()
}
