package kinds_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// countSort is a kind without holders: a semaphore with one permit and without leases, or a latch.
type countSort struct {
	scripts     string
	free, taken string // the value of its key
	acquire     func(ctx context.Context, c *core.Client, opts ...core.AcquireOption) error
	release     func(ctx context.Context, c *core.Client) error
}

var countSorts = map[string]countSort{
	"semaphore": {
		"plain_semaphore/", "1", "0",
		func(ctx context.Context, c *core.Client, opts ...core.AcquireOption) error {
			return c.PlainSemaphore(locktest.Pool).Acquire(ctx, 1, opts...)
		},
		func(ctx context.Context, c *core.Client) error {
			return c.PlainSemaphore(locktest.Pool).Release(ctx, 1)
		},
	},
	"latch": {
		"latch/", "", "1",
		func(ctx context.Context, c *core.Client, opts ...core.AcquireOption) error {
			return c.CountDownLatch(locktest.Pool).Await(ctx, opts...)
		},
		func(ctx context.Context, c *core.Client) error { return c.CountDownLatch(locktest.Pool).CountDown(ctx) },
	},
}

// eachCount runs a test in a bubble for every kind without holders.
func eachCount(t *testing.T, body func(t *testing.T, s countSort, b *locktest.Redis, locks *core.Client, proxy *faultproxy.Proxy)) {
	t.Helper()
	for name, s := range countSorts {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			setCount(b, s.free)
			body(t, s, b, locks, proxy)
		})
	}
}

// setCount writes the count, or deletes it if it is "".
func setCount(b *locktest.Redis, count string) {
	b.T.Helper()
	if count == "" {
		locktest.Must(b.T, b.Del(context.Background(), locktest.Pool).Err())
		return
	}
	locktest.Must(b.T, b.Set(context.Background(), locktest.Pool, count, 0).Err())
}

// wantCountSet compares the count, and checks that no key exists beside it except the record of operations.
func wantCountSet(b *locktest.Redis, when, count string) {
	b.T.Helper()
	if got := b.Get(context.Background(), locktest.Pool).Val(); got != count {
		b.T.Errorf("%s: the count is %q, want %q", when, got, count)
	}
	keys := b.Keys(context.Background(), "*").Val()
	keys = slices.DeleteFunc(keys, func(key string) bool {
		return key == locktest.Pool || key == "{pool}:interlock_ops" || key == "warm"
	})
	if len(keys) > 0 {
		b.T.Errorf("%s: left behind: %q", when, keys)
	}
}

// The wait of a caller for a permit or a latch ends before Redis answers. The call returns at once and takes nothing,
// even after its command has landed.
func TestCounts_LeftBeforeTheEnd(t *testing.T) {
	t.Parallel()
	const after = 50 * time.Millisecond
	for _, f := range []locktest.Fault{locktest.HoldRequest, locktest.HoldReply} {
		for end, want := range locktest.WaysToLeave() {
			t.Run(f.Name+"/"+end, func(t *testing.T) {
				t.Parallel()
				eachCount(t, func(t *testing.T, s countSort, b *locktest.Redis, locks *core.Client, proxy *faultproxy.Proxy) {
					rule := f.Inject(proxy, faultproxy.Once(locktest.Script(t, s.scripts+"acquire")))
					ctx, opts := locktest.Leaving(t, end, after)
					start := time.Now()
					locktest.WantErr(t, s.acquire(ctx, locks, opts...), want)
					if took := time.Since(start); took > after+5*time.Millisecond || rule.Hits() != 1 {
						t.Errorf("the call took %s, and %d commands are held", took, rule.Hits())
					}
					locktest.Pass(2 * time.Second)
					wantCountSet(b, "while it is held", s.free)
					rule.Remove()
					locktest.Pass(2 * time.Second)
					wantCountSet(b, "after it has landed", s.free)
					locktest.Must(t, s.acquire(t.Context(), locks, core.WaitTime(0)))
				})
			})
		}
	}
}

// If Redis refuses a command, the error is ErrUnavailable. Invalid wait times are errors, and no command is sent.
func TestCounts_ErrorReplies(t *testing.T) {
	t.Parallel()
	eachCount(t, func(t *testing.T, s countSort, b *locktest.Redis, locks *core.Client, proxy *faultproxy.Proxy) {
		for _, says := range locktest.Refusals() {
			rule := proxy.AnswerError(locktest.Scripts, says)
			locktest.WantOnly(t, s.acquire(t.Context(), locks, core.WaitTime(300*time.Millisecond)), core.ErrUnavailable, core.ErrNotAcquired)
			locktest.WantErr(t, s.release(t.Context(), locks), core.ErrUnavailable)
			rule.Remove()
			locktest.Pass(5 * time.Second)
			setCount(b, s.free)
		}
		sent := proxy.Watch(locktest.Scripts)
		for _, opt := range []core.AcquireOption{core.WaitTime(-1), core.WaitTime(time.Microsecond)} {
			locktest.WantErr(t, s.acquire(t.Context(), locks, opt), core.ErrInvalid)
		}
		if n := sent.Hits(); n > 0 {
			t.Errorf("%d scripts, want none", n)
		}
		locktest.Must(t, b.ScriptFlush(t.Context()).Err())
		locktest.Must(t, s.acquire(t.Context(), locks, core.WaitTime(0)))
	})
}

// Redis falls silent while a caller waits. The caller gets an error in time.
func TestCounts_SilentRedis(t *testing.T) {
	t.Parallel()
	eachCount(t, func(t *testing.T, s countSort, b *locktest.Redis, locks *core.Client, proxy *faultproxy.Proxy) {
		setCount(b, s.taken)
		waited := make(chan error, 1)
		start := time.Now()
		go func() { waited <- s.acquire(t.Context(), locks, core.WaitTime(3*time.Second)) }()
		locktest.Pass(500 * time.Millisecond)
		proxy.BlackHole(true)
		locktest.WantErr(t, <-waited, core.ErrUnavailable)
		locktest.WantSoon(t, "the wait took %s", start, 3*time.Second+5*time.Millisecond)
	})
}

// Many callers come while Redis is silent. They take nothing, and the client sends nothing more when Redis answers
// again.
func TestCounts_Outage(t *testing.T) {
	t.Parallel()
	eachCount(t, func(t *testing.T, s countSort, b *locktest.Redis, locks *core.Client, proxy *faultproxy.Proxy) {
		proxy.BlackHole(true)
		many := make(chan error, 60)
		for i := range cap(many) {
			go func() { many <- s.acquire(t.Context(), locks, core.WaitTime(time.Duration(1+i)*100*time.Millisecond)) }()
			locktest.Pass(50 * time.Millisecond)
		}
		for range cap(many) {
			locktest.WantErr(t, <-many, core.ErrUnavailable)
		}
		proxy.BlackHole(false)
		locktest.Pass(2 * time.Second)
		sent := proxy.Watch(locktest.Scripts)
		locktest.Pass(10 * time.Second)
		if n := sent.Hits(); n > 20 {
			t.Errorf("%d scripts in ten seconds without callers, want at most 20", n)
		}
		wantCountSet(b, "when redis answers again", s.free)
		locktest.Must(t, s.acquire(t.Context(), locks, core.WaitTime(time.Second)))
	})
}
