package kinds_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// Every acquisition draws a larger token from Redisson's counter: the first one, one by a hand-off, and one after a
// forced release.
func TestFenced_TokensRise(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		l := locks.FencedLock("order:42")
		_, first := locktest.MustAcquire(t, t.Context(), l)
		next := make(chan *core.Hold)
		go func() {
			_, hold, err := l.Acquire(context.Background())
			locktest.WantOK(t, err)
			next <- hold
		}()
		locktest.AwaitWaiters(t, locks, 1)
		locktest.MustRelease(t, first)
		handed := <-next
		if _, err := locks.FencedLock("order:42").ForceRelease(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, last := locktest.MustAcquire(t, t.Context(), b.Locks().FencedLock("order:42"))
		if first.Token() <= 0 || handed.Token() <= first.Token() || last.Token() <= handed.Token() {
			t.Errorf("tokens: got %d, %d, %d, want rising tokens", first.Token(), handed.Token(), last.Token())
		}
		if got := b.Get(t.Context(), tokens).Val(); got != strconv.FormatInt(last.Token(), 10) {
			t.Errorf("counter: got %q, want %d", got, last.Token())
		}
		locktest.WantErr(t, handed.Release(t.Context()), core.ErrLost)
		locktest.MustRelease(t, last)
		if ttl := b.TTL(t.Context(), tokens).Val(); ttl >= 0 {
			t.Errorf("the counter has the TTL %s, want none", ttl)
		}
	})
}

// A re-entry has the token of the hold that it re-enters.
func TestFenced_ReentryHasTheTokenOfItsHold(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().FencedLock("order:42")
		ctx, outer := locktest.MustAcquire(t, t.Context(), l)
		_, inner := locktest.MustAcquire(t, ctx, l)
		if outer.Token() == 0 || inner.Token() != outer.Token() {
			t.Errorf("tokens: got %d and %d, want the same", outer.Token(), inner.Token())
		}
		b.WantCount(outer, "2")
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, outer)
	})
}

// Each of these kinds draws a token on request only. The token is larger than Redisson's tokens and than the time of
// the server, so it is larger than all earlier tokens even if the counter is lost.
func TestWithToken_NeverFalls(t *testing.T) {
	t.Parallel()
	for _, kind := range locktest.KindsWithTokens() {
		locktest.ParallelEachRedis(t, kind.Name, func(t *testing.T, b *locktest.Redis) {
			l := kind.On(b.Locks(), "order:42")
			last := int64(41)
			draw := func(what string) {
				t.Helper()
				before, err := b.Time(t.Context()).Result()
				locktest.Must(t, err)
				_, hold := locktest.MustAcquire(t, t.Context(), l, core.WithToken())
				if token := hold.Token(); token <= last || token < before.UnixMicro() {
					t.Errorf("%s: token %d, want more than the last, %d, and than the time, %d", what, token, last, before.UnixMicro())
				}
				last = hold.Token()
				locktest.MustRelease(t, hold)
			}
			b.Set(t.Context(), tokens, last, 0)
			draw("after Redisson")
			draw("the next one")
			b.Del(t.Context(), tokens)
			draw("the counter is lost")
			last += int64(time.Hour / time.Microsecond)
			b.Set(t.Context(), tokens, last, 0)
			draw("the counter is before the clock")
			if counter, err := b.Get(t.Context(), tokens).Int64(); err != nil || counter != last {
				t.Errorf("the counter is %d (%v), want %d, for Redisson to go on from", counter, err, last)
			}
			if _, hold := locktest.MustAcquire(t, t.Context(), l); (hold.Token() != 0) != (kind.Name == "fenced") {
				t.Errorf("token %d without WithToken", hold.Token())
			}
		})
	}
}

func TestFenced_ObserversSeeTheToken(t *testing.T) {
	t.Parallel()
	b := locktest.Embedded(t)
	rec := &tokenRecorder{}
	_, hold := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithObserver(rec.observer())).FencedLock("order:42"))
	locktest.MustRelease(t, hold)
	if rec.acquired.Token == 0 || rec.acquired.Kind != core.KindFenced || rec.ended.Token == 0 {
		t.Errorf("got %+v and %+v, want the token of a fenced lock", rec.acquired, rec.ended)
	}
}

// If no single counter can order the holders of a lock, the lock refuses WithToken, and its error names the
// alternative.
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
			"Redlock":                  {core.Redlock("k", clients...), "WithToken for a Redlock: "},
			"Redlock of one":           {core.Redlock("k", c), "WithToken for a Redlock: "},
			"MultiLock":                {c.MultiLock("k", "l"), "WithToken for a MultiLock: "},
			"MultiLock of a free name": {c.MultiLock(), ""},
			"ReadLock":                 {c.ReadLock("k"), "WithToken for a read lock: "},
			"Semaphore":                {c.Semaphore("k", 1).Lock, "WithToken for a semaphore: "},
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
			t.Error("a MultiLock of one name, which is a Lock, has no token")
		}
	})
}

func lockWithToken(t *testing.T, l core.Lock) (hasContext bool, hold *core.Hold, err error) {
	t.Helper()
	ctx, hold, err := l.Acquire(t.Context(), core.WithToken(), core.WaitTime(0))
	return ctx != nil, hold, err
}

// A re-entry has the token of its hold. If the hold has no token, a re-entry WithToken is refused without a command,
// and the error says where to ask for a token.
func TestWithToken_OfAReentry(t *testing.T) {
	t.Parallel()
	for _, kind := range locktest.KindsWithTokens() {
		if kind.Name == "fenced" {
			continue // every hold of a fenced lock has a token
		}
		locktest.ParallelBubble(t, kind.Name, func(t *testing.T, b *locktest.Redis) {
			proxy, rdb := faultproxy.Around(t, b.Client)
			l := kind.On(locktest.NewClient(t, rdb), "order:42")

			ctx, without := locktest.MustAcquire(t, t.Context(), l)
			sent := proxy.Watch(locktest.Scripts)
			wantNoToken(t, ctx, l)
			wantNoToken(t, ctx, l, core.WaitTime(0))
			if sent.Hits() != 0 {
				t.Errorf("%d commands for refused re-entries, want none", sent.Hits())
			}
			locktest.WantAlive(t, ctx)
			_, again := locktest.MustAcquire(t, ctx, l)
			locktest.MustRelease(t, again)
			locktest.MustRelease(t, without)

			ctx, with := locktest.MustAcquire(t, t.Context(), l, core.WithToken())
			for _, opts := range [][]core.AcquireOption{{core.WithToken()}, nil} {
				_, again := locktest.MustAcquire(t, ctx, l, opts...)
				if again.Token() != with.Token() || with.Token() == 0 {
					t.Errorf("a re-entry has the token %d, want the token of its hold, %d", again.Token(), with.Token())
				}
				locktest.MustRelease(t, again)
			}
			locktest.MustRelease(t, with)
		})
	}
}

// A key that a MultiLock has taken has no token, so a re-entry WithToken is refused.
func TestWithToken_OfAReentryOfAMultiLock(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock("order:42", "order:43"))
		wantNoToken(t, ctx, locks.Lock("order:43"))
		locktest.MustRelease(t, hold)
	})
}

// wantNoToken checks that a re-entry WithToken is refused.
func wantNoToken(t *testing.T, ctx context.Context, l core.Lock, opts ...core.AcquireOption) {
	t.Helper()
	opts = append(opts, core.WithToken())
	inner, hold, err := l.Acquire(ctx, opts...)
	if inner != ctx || hold != nil || err == nil || !strings.Contains(err.Error(), "ask for the token there") {
		t.Errorf("got %v, want an error that says where to ask for the token", err)
	}
	locktest.WantErr(t, err, core.ErrInvalid)
}
