package aspect_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// serverBench is a bench with a real redis-server, in real time. The embedded Redis imitates a server, so
// these tests check that a real one behaves in the same way. Without a redis-server on PATH, its tests are
// skipped; see [redisserver.Start].
type serverBench struct {
	*bench

	server   *redisserver.Server
	stranger *core.Client // another process
}

func newServerBench(t *testing.T, opts ...core.Option) *serverBench {
	t.Helper()
	srv := redisserver.Start(t)
	b := &serverBench{bench: &bench{rdb: srv.Client()}, server: srv}
	b.locks, b.stranger = locksOf(t, srv, opts...), locksOf(t, srv)
	return b
}

func locksOf(t *testing.T, srv *redisserver.Server, opts ...core.Option) *core.Client {
	t.Helper()
	opts = append([]core.Option{core.WithBackendTimeout(10 * time.Second)}, opts...) // for a busy machine
	locks, err := core.New(srv.Client(func(o *redis.Options) { o.DialerRetries = 1 }), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(t.Context()) }) // Close does not wait, because the context has ended
	return locks
}

// take lets another process hold a lock until the test ends.
func (b *serverBench) take(t *testing.T, key string) *core.Hold {
	t.Helper()
	_, hold, err := b.stranger.Lock(key).Acquire(context.WithoutCancel(t.Context()), core.WaitTime(10*time.Second))
	if err != nil {
		t.Fatalf("the stranger: %v", err)
	}
	return hold
}

func TestServer_EachStrategyForEachCause(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cause   failpolicy.Cause
		timeout time.Duration
		provoke func(t *testing.T, b *serverBench)
	}{
		"busy": {failpolicy.Busy, 10 * time.Second, func(t *testing.T, b *serverBench) { t.Helper(); b.take(t, "order:42") }},
		"dead": {failpolicy.Backend, 200 * time.Millisecond, func(_ *testing.T, b *serverBench) { b.server.Kill() }},
		"key of another type": {failpolicy.Backend, 10 * time.Second, func(t *testing.T, b *serverBench) {
			t.Helper()
			if err := b.rdb.Set(t.Context(), "order:42", "not a lock", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		for _, s := range failpolicy.Strategies() {
			t.Run(name+"/"+string(s), func(t *testing.T) {
				t.Parallel()
				obs := &record{}
				b := newServerBench(t, core.WithBackendTimeout(tt.timeout), core.WithObserver(obs.observer()))
				checkStrategy(t, b.bench, obs, tt.cause, s, func(*bench, *call) { tt.provoke(t, b) })
			})
		}
	}
}

func TestServer_DeletedLock(t *testing.T) {
	t.Parallel()
	for onLost, verdict := range map[failpolicy.OnLost]aspect.Verdict{failpolicy.Cancel: aspect.VerdictRan, failpolicy.Fail: aspect.VerdictLost} {
		t.Run(string(onLost), func(t *testing.T) {
			t.Parallel()
			b := newServerBench(t, core.WithWatchdog(3*time.Second))
			rule := pay()
			rule.OnLost = onLost
			p := mustCompile(t, mustAspect(t, b.locks), rule)
			var strangers *core.Hold
			out := p.Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
				want(t, "deleted", b.rdb.Del(ctx, "order:42").Val(), 1)
				strangers = b.take(t, "order:42")
				select {
				case <-ctx.Done():
				case <-time.After(5 * time.Minute): // only if the test fails
					t.Error("the context of the handler did not end with the lock")
				}
				wantErr(t, "cause", context.Cause(ctx), core.ErrLost)
				return nil
			}})
			want(t, "verdict", out.Verdict, verdict)
			want(t, "lost", out.Lost, true)
			if err := strangers.Release(t.Context()); err != nil {
				t.Errorf("the lock of the new holder: %v", err)
			}
		})
	}
}

func TestServer_FixedLeaseExpires(t *testing.T) {
	t.Parallel()
	b := newServerBench(t)
	rule := pay()
	rule.LeaseTime, rule.OnLost = time.Second, failpolicy.Cancel
	p := mustCompile(t, mustAspect(t, b.locks), rule)
	out := p.Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
		b.take(t, "order:42") // waits until the lease has run out
		<-ctx.Done()
		return ctx.Err()
	}})
	want(t, "verdict", out.Verdict, aspect.VerdictLost)
	wantErr(t, "refusal", out.Refusal(), core.ErrLost)
	want(t, "holders", len(b.holders(t, "order:42")), 1)
}

func TestServer_Panic(t *testing.T) {
	t.Parallel()
	b := newServerBench(t)
	window := submit()
	window.Key = "window"
	p := mustCompile(t, mustAspect(t, b.locks), pay(), window)
	func() {
		defer func() { want(t, "recovered", recover(), any("boom")) }()
		p.Run(t.Context(), &call{in: order{ID: "42"}, handle: func(context.Context, aspect.Grant) error {
			b.wantHeld(t, "order:42", "window")
			panic("boom")
		}})
	}()
	b.wantFree(t, "order:42", "window")
}

func TestServer_DebounceWindow(t *testing.T) {
	t.Parallel()
	b := newServerBench(t)
	rule := submit()
	rule.Debounce = time.Minute
	p := mustCompile(t, mustAspect(t, b.locks), rule)
	failing := &call{in: order{ID: "42"}, handle: func(context.Context, aspect.Grant) error { return errHandler }}
	want(t, "failed", p.Run(t.Context(), failing).Err, errHandler)
	b.wantFree(t, "order:42")

	c := &call{in: order{ID: "42"}}
	want(t, "first", p.Run(t.Context(), c).Verdict, aspect.VerdictRan)
	if ttl := b.rdb.PTTL(t.Context(), "order:42").Val(); ttl > time.Minute || ttl < 30*time.Second {
		t.Errorf("the window lasts %s, want a minute at most and not much less", ttl)
	}
	want(t, "second", p.Run(t.Context(), c).Cause, failpolicy.Debounced)
	want(t, "handled", c.handled, 1)

	// Until the window has ended, no caller can take the lock.
	if !b.rdb.PExpire(t.Context(), "order:42", time.Millisecond).Val() {
		t.Fatal("the window does not exist")
	}
	if err := b.take(t, "order:42").Release(t.Context()); err != nil {
		t.Error(err)
	}
	want(t, "after the window", p.Run(t.Context(), c).Verdict, aspect.VerdictRan)
}

func TestServer_SeveralRules(t *testing.T) {
	t.Parallel()
	ends := &endings{}
	b := newServerBench(t, core.WithObserver(ends.observer()))
	p := mustCompile(t, mustAspect(t, b.locks), ruleset.Rule{Name: "a", Key: "a"},
		ruleset.Rule{Name: "list", Key: "stock:#{in.Items}", WaitTime: ruleset.NoWait}, ruleset.Rule{Name: "c", Key: "c"})
	c := &call{in: order{Items: []string{"pear", "apple"}}, handle: func(context.Context, aspect.Grant) error {
		b.wantHeld(t, "a", "stock:apple", "stock:pear", "c")
		return nil
	}}
	want(t, "verdict", p.Run(t.Context(), c).Verdict, aspect.VerdictRan)
	b.wantFree(t, "a", "stock:apple", "stock:pear", "c")
	if got := ends.keys; len(got) < 3 || got[0] != "c" || got[len(got)-1] != "a" {
		t.Errorf("freed in order %v, want c first and a last", got)
	}

	b.take(t, "stock:pear")
	out := p.Run(t.Context(), c)
	want(t, "cause", out.Cause, failpolicy.Busy)
	want(t, "index", out.Index, 1)
	want(t, "handled", c.handled, 1)
	b.wantFree(t, "a", "c")
}
