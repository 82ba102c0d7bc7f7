package adaptertest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// lock tests the lock around a handler.
func lock(t *testing.T, a Adapter) {
	each(t, a, map[string]func(*testing.T, *bench){
		"one at a time":       oneAtATime,
		"held while it runs":  heldWhileItRuns,
		"another key is free": anotherKeyIsFree,
		"several rules":       severalRules,
		"later rule refuses":  laterRuleRefuses,
		"early release":       earlyRelease,
		"token":               token,
		"without the lock":    withoutTheLock,
		"kill switch":         killSwitch,
		"caller leaves":       callerLeaves,
		"redis refuses":       redisRefuses,
		"full semaphore":      fullSemaphore,
	})
}

func oneAtATime(t *testing.T, b *bench) {
	var inside, met atomic.Int32
	b.handler(func(context.Context) (string, error) {
		if inside.Add(1) > 1 {
			met.Add(1)
		}
		inside.Add(-1)
		return "paid", nil
	})
	b.serveUnder(b.rule(func(r *ruleset.Rule) { r.WaitTime = time.Minute }))
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() { b.wantOK(b.call(), "paid", "") })
	}
	calls.Wait()
	b.wantRan(8)
	if n := met.Load(); n > 0 {
		t.Errorf("%d handlers ran at the same time as another handler", n)
	}
}

func heldWhileItRuns(t *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) {
		if !b.isTaken() || b.server.Hold(ctx) == nil {
			t.Error("the handler runs without the lock")
		}
		core.MustHold(ctx, "order:42")
		err := b.locks.Lock("order:42").Do(ctx, func(context.Context) error { return nil }, core.WaitTime(0))
		if err != nil {
			t.Errorf("the handler cannot take its own lock again: %v", err)
		}
		return "paid", nil
	})
	b.serveUnder(b.rule())
	b.wantOK(b.call(), "paid", "")
	if b.isTaken() {
		t.Error("the lock is still held after the call")
	}
}

func anotherKeyIsFree(_ *testing.T, b *bench) {
	b.serveUnder(b.rule())
	b.redis.Take(prefix+"order:41", time.Hour)
	b.wantOK(b.call(), "paid", "")
}

// severalRules tests that the handler has the locks of all rules, and that the rules take them in order.
func severalRules(t *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) {
		if key := b.server.Hold(ctx).Key(); key != prefix+"tenant:acme" || !b.isTaken() {
			t.Errorf("the handler runs with %q, and the lock of the order is taken: %v", key, b.isTaken())
		}
		return "paid", nil
	})
	b.serveUnder(
		b.rule(func(r *ruleset.Rule) { r.Name = "order" }),
		b.rule(func(r *ruleset.Rule) { r.Name, r.Key = "tenant", "tenant:#{"+b.adapter.Tenant+"}" }),
	)
	b.wantOK(b.call(), "paid", "")
	for _, key := range []string{"order:42", "tenant:acme"} {
		b.redis.Take(prefix+key, time.Hour)
		b.wantRefused(b.call(), failpolicy.Busy)
		b.redis.Free(prefix + key)
	}
	if b.isTaken() {
		t.Error("the lock of the order is still held, although the lock of the tenant was not acquired")
	}
	b.wantRan(1)
}

// laterRuleRefuses tests that the fallback of a rule runs without the locks of the rules before it.
func laterRuleRefuses(t *testing.T, b *bench) {
	b.serveUnder(
		b.rule(func(r *ruleset.Rule) { r.Name = "order" }),
		b.rule(func(r *ruleset.Rule) {
			r.Name, r.Key, r.OnBusy, r.Fallback = "tenant", "tenant:#{"+b.adapter.Tenant+"}", failpolicy.Fallback, "queue"
		}),
	)
	b.redis.Take(prefix+"tenant:acme", time.Hour)
	b.wantOK(b.call(), "queued", "")
	if b.isTaken() {
		t.Error("the lock of the order is still held")
	}
	b.wantRan(0)
}

// earlyRelease tests that another call runs while a handler that has released its lock continues.
func earlyRelease(t *testing.T, b *bench) {
	var first atomic.Bool
	b.handler(func(ctx context.Context) (string, error) {
		if first.Swap(true) {
			return "second", nil
		}
		if err := b.server.Hold(ctx).Release(ctx); err != nil {
			t.Errorf("Release: %v", err)
		}
		if ctx.Err() == nil {
			t.Error("the handler's context is not canceled after the release")
		}
		b.wantOK(b.call(), "second", "")
		return "paid", nil
	})
	b.serveUnder(b.rule())
	b.wantOK(b.call(), "paid", "")
}

func token(t *testing.T, b *bench) {
	b.handler(func(ctx context.Context) (string, error) {
		return strconv.FormatInt(b.server.Hold(ctx).Token(), 10), nil
	})
	b.serveUnder(b.rule(func(r *ruleset.Rule) { r.Kind = ruleset.Fenced }))
	first, second := b.call(), b.call()
	if first.Token == "" || first.Token != first.Text || second.Token != second.Text || first.Token == second.Token {
		t.Errorf("got tokens %q and %q of holds %q and %q", first.Token, second.Token, first.Text, second.Text)
	}
}

// withoutTheLock tests that the handler runs if a rule says so, although another holder has the lock.
func withoutTheLock(t *testing.T, b *bench) {
	for name, change := range map[string]func(*ruleset.Rule){
		"disabled": func(r *ruleset.Rule) { r.Disabled = true },
		"dry run":  func(r *ruleset.Rule) { r.DryRun = true },
		"when":     func(r *ruleset.Rule) { r.When = b.adapter.ID + ` == "41"` },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, b.adapter)
			b.serveUnder(b.rule(change))
			b.redis.Take(prefix+"order:42", time.Hour)
			b.wantOK(b.call(), "paid", "")
			b.wantRan(1)
		})
	}
}

func killSwitch(_ *testing.T, b *bench) {
	b.serveUnder(b.rule())
	b.redis.Take(prefix+"order:42", time.Hour)
	b.server.Aspect.Suspend()
	b.wantOK(b.call(), "paid", "")
	b.server.Aspect.Resume()
	if got := b.call(); got.OK {
		b.t.Errorf("after Resume: got %+v", got)
	}
	b.wantRan(1)
}

// callerLeaves tests that the handler of a caller that leaves during its wait never runs.
func callerLeaves(t *testing.T, b *bench) {
	if b.adapter.Unaware {
		t.Skip("the server does not notice that a caller leaves")
	}
	b.serveUnder(b.rule(func(r *ruleset.Rule) { r.WaitTime = ruleset.WaitForever }))
	b.redis.Take(prefix+"order:42", time.Hour)
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan Answer)
	go func() { done <- b.send(ctx, Call{ID: "42"}) }()
	awaitEvent(t, "a call waits", func() bool { return b.locks.Stats().Waiters == 1 })
	leave()
	if got := <-done; got.OK {
		t.Errorf("got %+v", got)
	}
	awaitEvent(t, "the call leaves", func() bool { return b.locks.Stats().Waiters == 0 })
	b.redis.Free(prefix + "order:42")
	b.wantOK(b.call(), "paid", "")
	b.wantRan(1)
}

// redisRefuses tests that an error of Redis counts as an outage, and not as a lock that is taken.
func redisRefuses(t *testing.T, b *bench) {
	b.serveUnder(b.rule(func(r *ruleset.Rule) { r.OnBusy = failpolicy.Skip }))
	if err := b.redis.Client().Set(t.Context(), prefix+"order:42", "not a lock", 0).Err(); err != nil {
		t.Fatal(err)
	}
	b.wantRefused(b.call(), failpolicy.Backend)
	b.wantRan(0)
}

// fullSemaphore tests that a caller that finds no permit gets the status for too many calls, unless the rule sets another
// status.
func fullSemaphore(t *testing.T, b *bench) {
	tooMany, own := failpolicy.Status{HTTP: 429, GRPC: 8 /* RESOURCE_EXHAUSTED */}, failpolicy.Status{HTTP: 503, GRPC: 14 /* UNAVAILABLE */}
	for _, status := range []failpolicy.Status{tooMany, own} {
		b := newBench(t, b.adapter)
		b.handler(func(context.Context) (string, error) {
			got := b.call()
			if got.Code != b.adapter.Code(status) || got.Retry == 0 {
				t.Errorf("got %+v, want %+v and a hint", got, status)
			}
			wantText(t, errors.New(got.All), "The maximum number of concurrent requests is already in progress")
			return "paid", nil
		})
		b.serveUnder(b.rule(func(r *ruleset.Rule) {
			r.Kind, r.Permits = ruleset.Semaphore, 1
			if status == own {
				r.Status.Busy = own
			}
		}))
		b.wantOK(b.call(), "paid", "")
		b.wantRan(1)
	}
}
