package readmetest_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// TestReadme_ACLSuffices lets a user with the rights that the text names do what
// locks do, and asks Redis whether it refused anything.
func TestReadme_ACLSuffices(t *testing.T) {
	t.Parallel()
	const user, password = "shop", "secret"
	srv := redisserver.Start(t)
	admin := srv.Client()
	setUser := append([]any{"acl", "setuser", user, "on", ">" + password}, aclRules(t)...)
	if err := admin.Do(t.Context(), setUser...).Err(); err != nil {
		t.Fatal(err)
	}

	open := func(opts ...core.Option) *core.Client {
		rdb := srv.Client(func(o *redis.Options) {
			o.Username, o.Password, o.DisableIdentity = user, password, true
		})
		return openLocks(t, rdb, append(opts, core.WithPrefix("shop:"))...)
	}
	seen := &seen{renewed: make(chan struct{})}
	one, other := open(core.WithObserver(seen), core.WithWatchdog(3*time.Second)), open()
	useEverything(t, one)
	contend(t, one, other)
	seen.awaitRenewal(t, one)

	if !seen.handoff.Load() {
		t.Error("no lock was passed on inside a client: the test asks too little")
	}
	refused, err := admin.ACLLog(t.Context(), 10).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range refused {
		t.Errorf("Redis refused %s %s (%s)", e.Reason, e.Object, e.Context)
	}
}

// aclRules are the rights for a user that the text names: the block that begins
// with a key pattern.
func aclRules(t *testing.T) []any {
	t.Helper()
	var rules []any
	for _, text := range readme(t) {
		if strings.HasPrefix(text, "```") && len(rules) > 0 {
			return rules
		}
		if len(rules) > 0 || strings.HasPrefix(text, "~shop:*") {
			for rule := range strings.FieldsSeq(text) {
				rules = append(rules, rule)
			}
		}
	}
	t.Fatal("README.md has no block that begins with ~shop:*")
	return nil
}

func openLocks(t *testing.T, rdb redis.UniversalClient, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(rdb, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(context.WithoutCancel(t.Context())) })
	return locks
}

// seen notes what a client does by itself.
type seen struct {
	handoff atomic.Bool
	once    sync.Once
	renewed chan struct{}
}

func (s *seen) ObserveHoldEnd(_ context.Context, r core.HoldResult) {
	if r.HandedOff {
		s.handoff.Store(true)
	}
}

func (s *seen) ObserveRenewal(context.Context, core.Renewal) { s.once.Do(func() { close(s.renewed) }) }

// awaitRenewal holds a lock until the watchdog has renewed one.
func (s *seen) awaitRenewal(t *testing.T, locks *core.Client) {
	t.Helper()
	err := locks.Lock("order:4").Do(t.Context(), func(ctx context.Context) error {
		select {
		case <-s.renewed:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	if err != nil {
		t.Error(err)
	}
}

// useEverything calls what a lock can do beside Acquire and Release.
func useEverything(t *testing.T, locks *core.Client) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	must(locks.Ready(t.Context()))
	lock := locks.Lock("order:1")
	must(lock.Do(t.Context(), func(ctx context.Context) error {
		hold, _ := core.Held(ctx, "order:1")
		must(hold.Refresh(ctx, time.Minute))
		_, err := lock.State(ctx)
		must(err)
		return lock.Do(ctx, func(context.Context) error { return nil })
	}))
	must(locks.MultiLock("order:1", "order:2").Do(t.Context(), func(context.Context) error { return nil }))

	_, left, err := locks.Lock("order:3").Acquire(t.Context())
	must(err)
	must(left.Leave(t.Context(), time.Second))
	_, err = locks.Lock("order:3").ForceRelease(t.Context())
	must(err)
}

// contend lets callers of all clients wait for one lock, which is held until all
// the others of its client are queued.
func contend(t *testing.T, clients ...*core.Client) {
	t.Helper()
	const each = 8
	ctx, first, err := clients[0].Lock("order:42").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for _, locks := range clients {
		for range each {
			callers.Go(func() {
				err := locks.Lock("order:42").Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(time.Minute))
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	for _, locks := range clients {
		for ctx.Err() == nil && locks.Stats().Waiters < each {
			time.Sleep(time.Millisecond) // between two looks
		}
	}
	if err := first.Release(ctx); err != nil {
		t.Error(err)
	}
	callers.Wait()
}
