package outages_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// The scenario of an outage: callers that wait for less than the backend timeout.
const (
	crowd     = 200
	crowdWait = 100 * time.Millisecond
	outage    = 4 * time.Second
)

// Many callers, none of which waits as long as the backend timeout, call a silent Redis for a while. They soon fail
// at once and need few goroutines. When Redis is back, the client sends nothing more within a second, and nothing is
// left behind.
func TestOutage_IsNotAmplified(t *testing.T) {
	t.Parallel()
	r := locktest.NewProxied(t)
	c := locktest.StartChild(t, "crowd", r.Proxy.Addr())
	if got := c.Hear(); got != "warm" {
		t.Fatal(got)
	}
	sent := r.Proxy.Watch(faultproxy.Any())
	r.Proxy.BlackHole(true)
	c.Tell("begin")
	var attempts, peak, after int
	scanf(t, c.Hear(), "attempts %d peak %d", &attempts, &peak)
	during := sent.Hits()
	r.Proxy.BlackHole(false)
	c.Tell("over")
	if got := c.Hear(); got != "look" {
		t.Fatal(got)
	}
	quiet := sent.Hits()
	scanf(t, c.Hear(), "after %d", &after)
	perSecond := sent.Hits() - quiet
	t.Logf("%d attempts, %d goroutines at most, %d commands; afterwards %d goroutines, %d commands in a second",
		attempts, peak, during, after, perSecond)
	if wanted := 3 * crowd * int(core.DefaultBackendTimeout/crowdWait); attempts > wanted {
		t.Errorf("%d attempts were sent to a silent Redis, want about as many as in a backend timeout: at most %d", attempts, wanted)
	}
	const some = 50 // tens of goroutines
	if peak > some || after > some {
		t.Errorf("%d goroutines beside the callers, and %d afterwards, want at most %d", peak, after, some)
	}
	if perSecond > 500 {
		t.Errorf("%d commands in a second after the outage, want at most 500", perSecond)
	}
	c.Tell("end")
	if got := c.Hear(); got != "closed" {
		t.Error(got)
	}
	if keys := r.Client.Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("left: %v", keys)
	}
}

func scanf(t *testing.T, line, format string, into ...any) {
	t.Helper()
	if _, err := fmt.Sscanf(line, format, into...); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
}

// crowdRole is the main function of the process with the callers.
func crowdRole(c locktest.ChildSide) error {
	locks, err := core.New(c.Redis)
	if err != nil {
		return err
	}
	locktest.Warm(c.T, locks)
	c.Tellf("warm")
	c.Hear()
	before, tries := runtime.NumGoroutine(), &tries{locks: locks, end: time.Now().Add(outage)}
	peak := tries.run(c.Ctx) - before - crowd
	c.Tellf("attempts %d peak %d", tries.sent, peak)
	c.Hear()
	time.Sleep(time.Second) // the time after which the client is quiet
	after := runtime.NumGoroutine() - before
	c.Tellf("look")
	time.Sleep(time.Second) // the time in which its commands are counted
	c.Tellf("after %d", after)
	c.Hear()
	if err := locks.Close(c.Ctx); err != nil {
		return err
	}
	c.Tellf("closed")
	return nil
}

// tries runs callers during an outage and counts their attempts.
type tries struct {
	locks *core.Client
	end   time.Time

	mu   sync.Mutex
	sent int // attempts that did not fail at once
}

// run runs all callers until the end. It returns the largest number of goroutines that existed throughout 50 ms, so
// that short-lived goroutines do not count.
func (tr *tries) run(ctx context.Context) (most int) {
	var all sync.WaitGroup
	for i := range crowd {
		all.Go(func() { tr.one(ctx, fmt.Sprint("k", i)) })
	}
	for time.Now().Before(tr.end) {
		least := runtime.NumGoroutine()
		for range 10 {
			time.Sleep(5 * time.Millisecond) // for a while
			least = min(least, runtime.NumGoroutine())
		}
		most = max(most, least)
	}
	all.Wait()
	return most
}

// one calls again and again, once in each wait time.
func (tr *tries) one(ctx context.Context, name string) {
	tick := time.NewTicker(crowdWait)
	defer tick.Stop()
	for time.Now().Before(tr.end) {
		_, hold, err := tr.locks.Lock(name).Acquire(ctx, core.WaitTime(crowdWait))
		switch {
		case err == nil:
			_ = hold.Release(ctx)
		case !errors.Is(err, core.ErrUnavailable):
			panic(err)
		case !strings.Contains(err.Error(), "failing fast"):
			tr.mu.Lock()
			tr.sent++
			tr.mu.Unlock()
		}
		<-tick.C
	}
}
