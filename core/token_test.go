package core_test

import (
	"context"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A lock whose holders no single counter could order refuses to give a token, whatever else is
// asked of it, and says what to take in its place.
func TestWithToken_OfALockThatCannotHaveOne(t *testing.T) {
	t.Parallel()
	locktest.BubbleOf(t, 3, func(t *testing.T, servers []*locktest.Redis) {
		clients := locktest.BehindEach(t, servers)
		c := clients[0]
		before := servers[0].Proxy.Watch(locktest.Scripts).Hits()
		for name, tt := range map[string]struct {
			lock core.Lock
			want string
		}{
			"Redlock":             {core.Redlock("k", clients...), "WithToken for a Redlock: "},
			"Redlock of one":      {core.Redlock("k", c), "WithToken for a Redlock: "},
			"MultiLock":           {c.MultiLock("k", "l"), "WithToken for a MultiLock: "},
			"MultiLock of nobody": {c.MultiLock(), ""},
			"ReadLock":            {c.ReadLock("k"), "WithToken for a read lock: "},
			"Semaphore":           {c.Semaphore("k", 1).Lock, "WithToken for a semaphore: "},
		} {
			_, hold, err := lockWithToken(t, tt.lock)
			if hold != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got %v, want %q", name, err, tt.want)
			}
			locktest.WantErr(t, err, core.ErrInvalid)
		}
		err := c.PlainSemaphore("k").Acquire(t.Context(), 1, core.WithToken())
		if locktest.WantErr(t, err, core.ErrInvalid); err != nil && !strings.Contains(err.Error(), "WithToken for a plain semaphore: ") {
			t.Error(err)
		}
		err = c.CountDownLatch("k").Await(t.Context(), core.WithToken())
		if locktest.WantErr(t, err, core.ErrInvalid); err != nil && !strings.Contains(err.Error(), "WithToken for a latch: ") {
			t.Error(err)
		}
		locktest.WantSame(t, "commands", servers[0].Proxy.Watch(locktest.Scripts).Hits()-before, 0)
		if _, hold := locktest.MustAcquire(t, t.Context(), c.MultiLock("k", "k"), core.WithToken()); hold.Token() == 0 {
			t.Error("no token of a MultiLock of one name, which is a Lock")
		}
	})
}

func lockWithToken(t *testing.T, l core.Lock) (hasContext bool, hold *core.Hold, err error) {
	t.Helper()
	ctx, hold, err := l.Acquire(t.Context(), core.WithToken(), core.WaitTime(0))
	return ctx != nil, hold, err
}

// A re-entry has the token of the hold that it enters again. Where that has none it is refused,
// without a command, and says where to ask for one.
func TestWithToken_OfAReentry(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]func(*core.Client) core.Lock{
		"reentrant": func(c *core.Client) core.Lock { return c.Lock("order:42") },
		"spin":      func(c *core.Client) core.Lock { return c.SpinLock("order:42") },
		"fair":      func(c *core.Client) core.Lock { return c.FairLock("order:42") },
		"write":     func(c *core.Client) core.Lock { return c.WriteLock("order:42") },
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			proxy, rdb := faultproxy.Around(t, b.Client)
			l := lock(locktest.NewClient(t, rdb))

			ctx, without := locktest.MustAcquire(t, t.Context(), l)
			sent := proxy.Watch(locktest.Scripts)
			wantNoToken(t, ctx, l)
			wantNoToken(t, ctx, l, core.WaitTime(0))
			if sent.Hits() != 0 {
				t.Errorf("%d commands for re-entries that are refused", sent.Hits())
			}
			locktest.WantAlive(t, ctx)
			_, again := locktest.MustAcquire(t, ctx, l)
			locktest.MustRelease(t, again)
			locktest.MustRelease(t, without)

			ctx, with := locktest.MustAcquire(t, t.Context(), l, core.WithToken())
			for _, opts := range [][]core.AcquireOption{{core.WithToken()}, nil} {
				_, again := locktest.MustAcquire(t, ctx, l, opts...)
				if again.Token() != with.Token() || with.Token() == 0 {
					t.Errorf("token %d inside of %d", again.Token(), with.Token())
				}
				locktest.MustRelease(t, again)
			}
			locktest.MustRelease(t, with)
		})
	}
}

// A lock that was taken together with others has no token, either.
func TestWithToken_OfAReentryOfAMultiLock(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock("order:42", "order:43"))
		wantNoToken(t, ctx, locks.Lock("order:43"))
		locktest.MustRelease(t, hold)
	})
}

// wantNoToken wants a re-entry to be refused that asks for a token.
func wantNoToken(t *testing.T, ctx context.Context, l core.Lock, opts ...core.AcquireOption) {
	t.Helper()
	opts = append(opts, core.WithToken())
	inner, hold, err := l.Acquire(ctx, opts...)
	if inner != ctx || hold != nil || err == nil || !strings.Contains(err.Error(), "ask for the token there") {
		t.Errorf("got %v, want an error that says where to ask for the token", err)
	}
	locktest.WantErr(t, err, core.ErrInvalid)
}
