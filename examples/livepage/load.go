package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core"
)

// load simulates the customers of the shop and other programs.
type load struct {
	address   string
	locks     *core.Client
	elsewhere *core.Client
	wg        sync.WaitGroup
}

// run generates the load until ctx is done.
func (l *load) run(ctx context.Context) {
	for i := range 4 {
		l.repeat(ctx, 10*time.Millisecond, func() { l.post(ctx, fmt.Sprintf("/items/%d/buy", hot(20))) })
		l.repeat(ctx, 40*time.Millisecond, func() { l.post(ctx, fmt.Sprintf("/items/%d/reserve", hot(3))) })
		l.repeat(ctx, time.Second, func() { l.wait(ctx, "report", fmt.Sprintf("report-%d", i+1)) })
	}
	l.repeat(ctx, time.Second, func() { l.deadlock(ctx) })
	l.repeat(ctx, 4*time.Second, func() { l.post(ctx, "/imports/nightly") })
	l.repeat(ctx, time.Second, func() { l.hold(ctx, l.elsewhere.Lock("report"), "") })
	l.repeat(ctx, time.Second, func() { l.hold(ctx, l.elsewhere.FencedLock("ledger"), "") })
	l.repeat(ctx, time.Second, func() { l.hold(ctx, l.elsewhere.FairLock("counter"), "") })
	for range 3 {
		l.repeat(ctx, time.Second, func() { l.queue(ctx, "counter") })
	}
	pause(ctx, 2*time.Second) // so that ordinary names are used first
	l.repeat(ctx, time.Second, func() { l.hold(ctx, l.locks.Lock("item:stuck"), "POST /items/:id/buy") })
	for _, text := range hostile() {
		l.repeat(ctx, time.Second, func() { l.hold(ctx, l.locks.Lock(text), text) })
	}
	l.wg.Wait()
}

// repeat calls do, with pauses, until ctx is done.
func (l *load) repeat(ctx context.Context, every time.Duration, do func()) {
	l.wg.Go(func() {
		for ctx.Err() == nil {
			do()
			pause(ctx, every)
		}
	})
}

// hot returns a random number below n. Small numbers are more frequent.
func hot(n int) int { return int(float64(n) * rand.Float64() * rand.Float64() * rand.Float64()) }

func (l *load) post(ctx context.Context, path string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.address+path, http.NoBody)
	if err != nil {
		return
	}
	answer, err := http.DefaultClient.Do(r)
	if err == nil {
		answer.Body.Close()
	}
}

// deadlock sends two customers to the endpoints that take their locks in opposite orders.
func (l *load) deadlock(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { l.post(ctx, "/orders/7/pay") })
	both.Go(func() { l.post(ctx, "/stock/7/move") })
	both.Wait()
}

// hold holds a lock for some minutes.
func (l *load) hold(ctx context.Context, lock core.Lock, label string) {
	_ = lock.Do(ctx, func(ctx context.Context) error { //nolint:errcheck // the program exits, or the operator releases the lock
		pause(ctx, 10*time.Minute)
		return nil
	}, core.Label(label))
}

// wait waits for a lock that another process holds, while it holds another lock.
func (l *load) wait(ctx context.Context, name, label string) {
	nothing := func(context.Context) error { return nil }
	_ = l.locks.Lock("mine:"+label).Do(ctx, func(ctx context.Context) error { //nolint:errcheck // as above
		return l.locks.Lock(name).Do(ctx, nothing, core.Label("wait for the report"))
	}, core.Label(label))
}

// queue waits for a fair lock.
func (l *load) queue(ctx context.Context, name string) {
	_ = l.locks.FairLock(name).Do(ctx, func(context.Context) error { return nil }, core.Label("next, please")) //nolint:errcheck // as above
}

// hostile returns names that try to break the page.
func hostile() []string {
	return []string{
		`<script>document.body.textContent = "gone"</script>`,
		`"><img src=x onerror=alert(1)>`,
		"</td></tr></table></main><h1>gone</h1>",
		"line\nbreak\x00nul\x1b[31mred",
		"\u202eesrever\u202c of what it says",
		"not \xff\xfe UTF-8",
		"piled up: z" + strings.Repeat("\u0301", 200),
		strings.Repeat("long", 2_500),
	}
}
