package core_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// countSort is a kind without holds: a semaphore of one permit, and a latch.
type countSort struct {
	scripts     string
	free, taken string // what its key says
	acquire     func(ctx context.Context, c *core.Client, opts ...core.AcquireOption) error
	release     func(ctx context.Context, c *core.Client) error
}

var countSorts = map[string]countSort{
	"semaphore": {
		"plain_semaphore/", "1", "0",
		func(ctx context.Context, c *core.Client, opts ...core.AcquireOption) error {
			return c.PlainSemaphore(pool).Acquire(ctx, 1, opts...)
		},
		func(ctx context.Context, c *core.Client) error { return c.PlainSemaphore(pool).Release(ctx, 1) },
	},
	"latch": {
		"latch/", "", "1",
		func(ctx context.Context, c *core.Client, opts ...core.AcquireOption) error {
			return c.CountDownLatch(pool).Await(ctx, opts...)
		},
		func(ctx context.Context, c *core.Client) error { return c.CountDownLatch(pool).CountDown(ctx) },
	},
}

// eachCount runs a test for every kind that counts, in a bubble.
func eachCount(t *testing.T, body func(t *testing.T, s countSort, b *bed, locks *core.Client, proxy *faultproxy.Proxy)) {
	t.Helper()
	for name, s := range countSorts {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing()
			b.set(s.free)
			body(t, s, b, locks, proxy)
		})
	}
}

// set writes the count; "" is none.
func (b *bed) set(count string) {
	b.t.Helper()
	if count == "" {
		must(b.t, b.Del(context.Background(), pool).Err())
		return
	}
	must(b.t, b.Set(context.Background(), pool, count, 0).Err())
}

// wantSet wants the count to be that, and nothing beside it but what is remembered of operations.
func (b *bed) wantSet(when, count string) {
	b.t.Helper()
	if got := b.Get(context.Background(), pool).Val(); got != count {
		b.t.Errorf("%s: the count is %q, want %q", when, got, count)
	}
	keys := b.Keys(context.Background(), "*").Val()
	keys = slices.DeleteFunc(keys, func(key string) bool {
		return key == pool || key == "{pool}:interlock_ops" || key == "warm"
	})
	if len(keys) > 0 {
		b.t.Errorf("%s: left behind: %q", when, keys)
	}
}

// One who takes a permit, or waits at a latch, leaves in the middle: at once, and nothing is taken,
// now or when it lands.
func TestPitfalls_CountEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	const after = 50 * time.Millisecond
	for when, f := range map[string]fault{"not executed": holdRequest, "executed": holdReply} {
		for end, want := range leavings() {
			t.Run(when+"/"+end, func(t *testing.T) {
				t.Parallel()
				eachCount(t, func(t *testing.T, s countSort, b *bed, locks *core.Client, proxy *faultproxy.Proxy) {
					rule := f(proxy, faultproxy.Once(script(t, s.scripts+"acquire")))
					ctx, opts := leaving(t, end, after)
					start := time.Now()
					wantErr(t, s.acquire(ctx, locks, opts...), want)
					if took := time.Since(start); took > after+5*time.Millisecond || rule.Hits() != 1 {
						t.Errorf("it took %s, and %d are held", took, rule.Hits())
					}
					pass(2 * time.Second)
					b.wantSet("while it is held", s.free)
					rule.Remove()
					pass(2 * time.Second)
					b.wantSet("after it has landed", s.free)
					must(t, s.acquire(t.Context(), locks, core.WaitTime(0)))
				})
			})
		}
	}
}

// What Redis refuses is unavailable, and waits that make no sense are errors without a command.
func TestPitfalls_CountRefusals(t *testing.T) {
	t.Parallel()
	eachCount(t, func(t *testing.T, s countSort, b *bed, locks *core.Client, proxy *faultproxy.Proxy) {
		for _, says := range []string{"OOM command not allowed", "READONLY You can't write", "NOPERM no permissions", "LOADING Redis is loading", "BUSY a script runs", "MASTERDOWN Link with MASTER is down"} {
			rule := proxy.AnswerError(scripts, says)
			wantOnly(t, s.acquire(t.Context(), locks, core.WaitTime(300*time.Millisecond)), core.ErrUnavailable, core.ErrNotAcquired)
			wantErr(t, s.release(t.Context(), locks), core.ErrUnavailable)
			rule.Remove()
			pass(5 * time.Second)
			b.set(s.free)
		}
		sent := proxy.Watch(scripts)
		for _, opt := range []core.AcquireOption{core.WaitTime(-1), core.WaitTime(time.Microsecond)} {
			wantErr(t, s.acquire(t.Context(), locks, opt), core.ErrInvalid)
		}
		if n := sent.Hits(); n > 0 {
			t.Errorf("%d scripts", n)
		}
		must(t, b.ScriptFlush(t.Context()).Err())
		must(t, s.acquire(t.Context(), locks, core.WaitTime(0)))
	})
}

// Redis falls silent under one who waits: it knows in time.
func TestPitfalls_CountUnderSilence(t *testing.T) {
	t.Parallel()
	eachCount(t, func(t *testing.T, s countSort, b *bed, locks *core.Client, proxy *faultproxy.Proxy) {
		b.set(s.taken)
		waited := make(chan error, 1)
		start := time.Now()
		go func() { waited <- s.acquire(t.Context(), locks, core.WaitTime(3*time.Second)) }()
		pass(500 * time.Millisecond)
		proxy.BlackHole(true)
		wantErr(t, <-waited, core.ErrUnavailable)
		wantSoon(t, "it took %s", start, 3*time.Second+5*time.Millisecond)
	})
}

// Many come while Redis is silent: nothing is taken, and the client is quiet when it answers again.
func TestPitfalls_CountOutage(t *testing.T) {
	t.Parallel()
	eachCount(t, func(t *testing.T, s countSort, b *bed, locks *core.Client, proxy *faultproxy.Proxy) {
		proxy.BlackHole(true)
		many := make(chan error, 60)
		for i := range cap(many) {
			go func() { many <- s.acquire(t.Context(), locks, core.WaitTime(time.Duration(1+i)*100*time.Millisecond)) }()
			pass(50 * time.Millisecond)
		}
		for range cap(many) {
			wantErr(t, <-many, core.ErrUnavailable)
		}
		proxy.BlackHole(false)
		pass(2 * time.Second)
		sent := proxy.Watch(scripts)
		pass(10 * time.Second)
		if n := sent.Hits(); n > 20 {
			t.Errorf("%d scripts in ten seconds in which nobody wants anything", n)
		}
		b.wantSet("when redis answers again", s.free)
		must(t, s.acquire(t.Context(), locks, core.WaitTime(time.Second)))
	})
}
