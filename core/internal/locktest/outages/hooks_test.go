package outages_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// requestKey is the key of the name of a request in contexts, like the span of a trace.
type requestKey struct{}

func request(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, requestKey{}, name)
}

// sighting is a run of a hook.
type sighting struct {
	request  string // in the context; "": none
	level    string // of the hook
	above    string // the level of the hook around it
	commands [][]any
}

// commandLog is a hook that records what it sees.
type commandLog struct {
	level string

	mu    sync.Mutex
	seen  []sighting
	dials int
}

type levelKey struct{}

// text returns a string in a context.
func text(ctx context.Context, key any) string {
	s, _ := ctx.Value(key).(string)
	return s
}

func (r *commandLog) record(ctx context.Context, cmds []redis.Cmder) context.Context {
	s := sighting{request: text(ctx, requestKey{}), level: r.level, above: text(ctx, levelKey{})}
	for _, cmd := range cmds {
		s.commands = append(s.commands, cmd.Args())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, s)
	return context.WithValue(ctx, levelKey{}, r.level)
}

func (r *commandLog) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		r.mu.Lock()
		r.dials++
		r.mu.Unlock()
		return next(ctx, network, addr)
	}
}

func (r *commandLog) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return next(r.record(ctx, []redis.Cmder{cmd}), cmd)
	}
}

func (r *commandLog) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return next(r.record(ctx, cmds), cmds) }
}

// scripts returns the runs with a script about key.
func (r *commandLog) scripts(key string) []sighting {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []sighting
	for _, s := range r.seen {
		if s.count(key) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// count returns how many of the commands are scripts about key.
func (s sighting) count(key string) (n int) {
	for _, args := range s.commands {
		if verb, _ := args[0].(string); strings.HasPrefix(verb, "eval") && len(args) > 3 && args[3] == key {
			n++
		}
	}
	return n
}

// total returns how many scripts about key the hook has seen.
func (r *commandLog) total(key string) (n int) {
	for _, s := range r.scripts(key) {
		n += s.count(key)
	}
	return n
}

// dialed reports whether the hook has seen a dial.
func (r *commandLog) dialed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dials > 0
}

func (r *commandLog) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen, r.dials = nil, 0
}

// Every operation of a lock runs through the hooks of the caller's client, with the context of the caller.
func TestHooks_SeeEveryOperation(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		hook := &commandLog{}
		proxy, locks := b.BehindHooks(hook)
		b.Warm(locks)
		sent := proxy.Watch(faultproxy.All(locktest.Scripts, faultproxy.Containing("k")))
		forEachOperation(b, locks, func(what string, do func(ctx context.Context) error) {
			hook.forget()
			before := sent.Hits()
			if err := do(request(t.Context(), what)); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			wantSeen(t, hook, what, sent.Hits()-before)
		})
		b.Take("k", locktest.Stranger, time.Minute)
		hook.forget()
		ctx, cancel := context.WithCancel(t.Context())
		got := locktest.GoAcquire(ctx, locks.Lock("k"))
		locktest.Eventually(t, "the dial of the subscription was seen", hook.dialed)
		cancel()
		locktest.WantErr(t, (<-got).Err, core.ErrNotAcquired, context.Canceled)
	})
}

// forEachOperation runs every operation of a lock on the key k.
func forEachOperation(b *locktest.Redis, locks *core.Client, each func(what string, do func(ctx context.Context) error)) {
	l := locks.Lock("k")
	var held context.Context
	var outer, inner *core.Hold
	each("acquire", func(ctx context.Context) (err error) {
		held, outer, err = l.Acquire(ctx, core.WaitTime(0))
		return err
	})
	each("re-entry", func(ctx context.Context) (err error) {
		_, inner, err = l.Acquire(request(held, text(ctx, requestKey{})))
		return err
	})
	each("refresh", func(ctx context.Context) error { return inner.Refresh(ctx, time.Minute) })
	each("inner release", func(ctx context.Context) error { return inner.Release(ctx) })
	each("state", func(ctx context.Context) error {
		_, err := l.State(ctx)
		return err
	})
	each("release", func(ctx context.Context) error { return outer.Release(ctx) })
	each("force", func(ctx context.Context) error {
		_, err := l.ForceRelease(ctx)
		return err
	})
}

// wantSeen checks that a hook saw scripts about k, in the context of a request, and each sending once. A server that does
// not know the script gets its source, too. On a slow machine the client may send the command again, and the reaper may
// clear up, in no caller's context.
func wantSeen(t *testing.T, hook *commandLog, request string, sent int) {
	t.Helper()
	seen, own := hook.scripts("k"), 0
	for n, s := range seen {
		if len(s.commands) != 1 || s.request != request && (n == 0 || s.request != "") {
			t.Errorf("%s: a hook saw %d commands in the context of %q", request, len(s.commands), s.request)
		}
		if s.request == request {
			own++
		}
	}
	if own == 0 || own > sent {
		t.Errorf("%s: a hook saw %d scripts of %d, want each once", request, own, sent)
	}
}

// Concurrent callers share a pipeline. A hook still sees every command once, in the context of its caller.
func TestHooks_SharedPipeline(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		hook := &commandLog{}
		proxy, locks := b.BehindHooks(hook)
		b.Warm(locks)
		sent := proxy.Watch(locktest.Scripts)
		hook.forget()
		locktest.Concurrently(64, func(i int) {
			name := "k" + string(rune('A'+i))
			_, hold, err := locks.Lock(name).Acquire(request(context.Background(), name), core.WaitTime(20*time.Second))
			if err != nil {
				t.Error(err)
				return
			}
			locktest.WantOK(t, hold.Release(request(context.Background(), name)))
		})
		seen := 0
		for i := range 64 {
			name := "k" + string(rune('A'+i))
			for n, s := range hook.scripts(name) {
				seen += len(s.commands)
				// On a slow machine the reaper may clear up an attempt, in no caller's context.
				if s.request != name && (n == 0 || s.request != "") {
					t.Errorf("script %d about %s is seen in the context of %q", n, name, s.request)
				}
			}
		}
		if seen < 128 || seen != sent.Hits() {
			t.Errorf("the hook saw %d scripts and redis %d, want the same, 128 at least", seen, sent.Hits())
		}
	})
}

// A hook that ends its context does not cancel the command, which is sent already.
func TestHooks_ContextDoesNotEndWithTheCaller(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		ends := make(chan error, 4)
		ctx, cancel := context.WithCancelCause(request(t.Context(), "impatient"))
		hook := &locktest.ScriptHook{Around: func(seen context.Context, next func() error) error {
			if text(seen, requestKey{}) != "impatient" {
				return next()
			}
			cancel(errors.New("the client has left"))
			err := next()
			ends <- errors.Join(seen.Err(), context.Cause(seen))
			return err
		}}
		_, locks := b.BehindHooks(hook)
		b.Warm(locks)
		_, _, err := locks.Lock("k").Acquire(ctx)
		locktest.WantErr(t, err, core.ErrNotAcquired, context.Canceled)
		locktest.WantOK(t, <-ends)
		locktest.Eventually(t, "the lock is cleared up", func() bool { return b.Exists(context.Background(), "k").Val() == 0 })
	})
}

// A hook that calls next again, as a retry does, gets the same answer. So a hook cannot send a lock command twice. On a
// slow machine the client may send a command again. The hooks run again for it.
func TestHooks_CannotSendTwice(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		for name, keys := range map[string]int{"alone": 1, "together": 16} {
			around := &commandLog{}
			proxy, locks := b.BehindHooks(around, &locktest.ScriptHook{Around: func(_ context.Context, next func() error) error {
				if err := next(); err != nil {
					return err
				}
				return next()
			}})
			b.Warm(locks)
			rule := proxy.Watch(locktest.Scripts)
			key := func(i int) string { return name + string(rune('a'+i)) }
			locktest.Concurrently(keys, func(i int) {
				_, hold, err := locks.Lock(key(i)).Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				locktest.MustRelease(t, hold)
			})
			sent, seen := rule.Hits(), 0
			for i := range keys {
				seen += around.total(key(i))
			}
			if sent < 2*keys || sent > seen {
				t.Errorf("%s: %d scripts were sent, want at least %d, and at most the %d that the outer hook saw", name, sent, 2*keys, seen)
			}
		}
	})
}

// A hook that refuses or panics makes Redis unavailable for that command only.
func TestHooks_FailureIsUnavailable(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused by policy")
	for name, tt := range map[string]struct {
		fail func() error
		want error
	}{
		"refuses": {func() error { return refused }, refused},
		"panics":  {func() error { panic("broken hook") }, core.ErrUnavailable},
	} {
		locktest.ParallelEachRedis(t, name, func(t *testing.T, b *locktest.Redis) {
			failing := true
			var mu sync.Mutex
			_, locks := b.BehindHooks(&locktest.ScriptHook{Around: func(_ context.Context, next func() error) error {
				mu.Lock()
				fail := failing
				mu.Unlock()
				if fail {
					return tt.fail()
				}
				return next()
			}})
			_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(100*time.Millisecond))
			locktest.WantErr(t, err, core.ErrUnavailable, tt.want)
			mu.Lock()
			failing = false
			mu.Unlock()
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			locktest.MustRelease(t, hold)
		})
	}
}

// Hooks see renewals without the context of a request.
func TestHooks_SeeRenewals(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		hook := &commandLog{}
		rdb := b.Connect()
		rdb.AddHook(hook)
		locks := locktest.NewClient(t, rdb, core.WithWatchdog(locktest.Unhurried(3*time.Second)))
		_, hold := locktest.MustAcquire(t, request(t.Context(), "acquire"), locks.Lock("k"))
		defer locktest.MustRelease(t, hold)
		hook.forget()
		locktest.Eventually(t, "a renewal is seen", func() bool { return hook.total("k") > 0 })
		if seen := hook.scripts("k"); seen[0].request != "" {
			t.Errorf("a renewal is seen in the context of %q", seen[0].request)
		}
	})
}

// The hooks of a ClusterClient run around the hooks of its nodes. Each hook sees each command once.
func TestHooks_InACluster(t *testing.T) {
	t.Parallel()
	redisserver.EachBinary(t, func(t *testing.T, binary redisserver.Binary) {
		seeHooksOfACluster(t, binary.StartCluster(t))
	})
}

func seeHooksOfACluster(t *testing.T, c *redisserver.Cluster) {
	t.Helper()
	outer, inner := &commandLog{level: "cluster"}, &commandLog{level: "node"}
	rdb := c.Client()
	rdb.OnNewNode(func(node *redis.Client) { node.AddHook(inner) })
	rdb.AddHook(outer)
	locks := locktest.NewClient(t, rdb, locktest.Patient)
	for _, warm := range []string{"one", "two", "three", "k"} {
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock(warm), core.LeaseTime(time.Minute))
		locktest.MustRelease(t, hold)
	}
	b := &locktest.Redis{T: t}
	forEachOperation(b, locks, func(what string, do func(ctx context.Context) error) {
		outer.forget()
		inner.forget()
		if err := do(request(t.Context(), what)); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		wantSeen(t, outer, what, inner.total("k"))
		wantSeen(t, inner, what, outer.total("k"))
		if seen := inner.scripts("k"); len(seen) > 0 && seen[0].above != "cluster" {
			t.Errorf("%s: the hook of the node runs inside of %q, want the hook of the cluster", what, seen[0].above)
		}
	})
	locktest.WantOK(t, rdb.Set(t.Context(), "mine", 1, time.Minute).Err())
	_, hold := locktest.MustAcquire(t, t.Context(), locktest.NewClient(t, rdb, core.WithWatchdog(locktest.Unhurried(3*time.Second))).Lock("k"))
	defer locktest.MustRelease(t, hold)
	outer.forget()
	locktest.Eventually(t, "a renewal is seen", func() bool { return outer.total("k") > 0 })
}

// prefixHook adds a prefix to the keys of scripts, as a hook for tenants does. If alone is true, it also changes
// commands outside of pipelines.
type prefixHook struct {
	prefix func(ctx context.Context) string
	alone  bool
}

func (prefixHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h prefixHook) change(ctx context.Context, cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		if locktest.IsScript(cmd) {
			args := cmd.Args()
			for i := range args[2].(int) {
				args[3+i] = h.prefix(ctx) + args[3+i].(string)
			}
		}
	}
}

func (h prefixHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.alone {
			h.change(ctx, cmd)
		}
		return next(ctx, cmd)
	}
}

func (h prefixHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.change(ctx, cmds...)
		return next(ctx, cmds)
	}
}

// tenants are the prefixes that a hook may set.
var tenants = map[string]func(ctx context.Context) string{
	"constant":   func(context.Context) string { return "tenant:" },
	"in_context": func(ctx context.Context) string { return text(ctx, requestKey{}) },
	"none":       func(context.Context) string { return "" },
}

// wantChanged checks that an error names the options for a prefix.
func wantChanged(t *testing.T, err error) {
	t.Helper()
	locktest.WantErr(t, err, core.ErrUnavailable)
	for _, option := range []string{"core.WithPrefix", "core.WithNameMapper"} {
		if err != nil && (!strings.Contains(err.Error(), option) || !strings.Contains(core.ErrorText(err), option)) {
			t.Errorf("got %q, in logs %q, want %s named", err, core.ErrorText(err), option)
		}
	}
}

// A hook that changes keys may change them differently each time a command is sent. The client refuses such a command
// and sends nothing.
func TestHooks_ChangedKeysAreRefused(t *testing.T) {
	t.Parallel()
	for name, prefix := range tenants {
		locktest.ParallelEachRedis(t, name, func(t *testing.T, b *locktest.Redis) {
			proxy, locks := b.BehindHooks(prefixHook{prefix: prefix, alone: true})
			sent := proxy.Watch(locktest.Scripts)
			ctx := request(t.Context(), "tenant:")
			if prefix(ctx) == "" {
				_, hold := locktest.MustAcquire(t, ctx, locks.Lock("k"))
				locktest.MustRelease(t, hold)
				return
			}
			for _, lock := range []core.Lock{locks.Lock("k"), locks.FencedLock("f"), locks.MultiLock("m", "n"), locks.FairLock("q"), locks.ReadLock("r")} {
				_, _, err := lock.Acquire(ctx) // without a wait time: one attempt
				wantChanged(t, err)
			}
			wantChanged(t, locks.PlainSemaphore("s").Release(ctx, 1))
			locktest.WantSame(t, "scripts", sent.Hits(), 0)
		})
	}
}

// A renewal travels in a pipeline, without the context of a caller. The client renews no other key and does not
// report a loss because a changed key does not exist.
func TestHooks_ChangedRenewalsAreRefused(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		rdb, seen := b.Connect(), &locktest.Renewals{}
		rdb.AddHook(prefixHook{prefix: tenants["constant"]})
		locks := locktest.NewClient(t, rdb, core.WithWatchdog(30*time.Second), core.WithObserver(seen.Observer()))
		ctx, _ := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		time.Sleep(11 * time.Second) // in the time of the bubble: after the first renewal
		if ctx.Err() != nil {
			t.Errorf("the hold has ended: %v", context.Cause(ctx))
		}
		if err := seen.Failure(); err == nil || !strings.Contains(err.Error(), "core.WithPrefix") {
			t.Errorf("the renewal: got %v, want core.WithPrefix named", err)
		}
		time.Sleep(20 * time.Second) // in the time of the bubble: the lease has expired
		locktest.WantEnded(t, ctx, core.ErrLost)
	})
}

// The client also refuses a changed command that replicas have to acknowledge. Such a command travels in a pipeline,
// too.
func TestHooks_ChangedAcknowledgedCommands(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	rdb := b.Connect()
	rdb.AddHook(prefixHook{prefix: tenants["constant"]})
	_, _, err := locktest.NewClient(t, rdb, core.WithReplicaAcks(core.AcksAll, time.Second)).Lock("k").Acquire(t.Context())
	wantChanged(t, err)
	locktest.WantSame(t, "keys", b.DBSize(t.Context()).Val(), 0)
}

// A hook that ends its goroutine, for example by t.FailNow, ends the acquisition of that goroutine only.
func TestHooks_EndOfTheGoroutine(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		var active atomic.Bool
		_, locks := b.BehindHooks(&locktest.ScriptHook{Around: func(_ context.Context, next func() error) error {
			if active.CompareAndSwap(true, false) {
				runtime.Goexit()
			}
			return next()
		}})
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		locktest.MustRelease(t, hold)
		active.Store(true)
		locktest.GoAcquire(t.Context(), locks.Lock("k"))
		locktest.Pass(time.Second)
		locktest.WantSame(t, "waiters", locks.Stats().Waiters, 0)
		_, hold = locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.WaitTime(10*time.Second))
		locktest.MustRelease(t, hold)
	})
}

// If a hook ends a goroutine that re-enters a lock, the client undoes the re-entry, because no caller could release it.
func TestHooks_EndOfAReenteringGoroutine(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]struct {
		lock    func(*core.Client) core.Lock
		scripts int64 // the last of them ends the goroutine
	}{
		"one key":      {func(c *core.Client) core.Lock { return c.Lock("k") }, 1},
		"several keys": {func(c *core.Client) core.Lock { return c.MultiLock("k", "other") }, 2},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			var left atomic.Int64
			_, locks := b.BehindHooks(&locktest.ScriptHook{Around: func(_ context.Context, next func() error) error {
				if left.Add(-1) == 0 {
					runtime.Goexit()
				}
				return next()
			}})
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			left.Store(last.scripts)
			locktest.GoAcquire(ctx, last.lock(locks))
			locktest.Pass(time.Second)
			locktest.WantSame(t, "scripts left", left.Load() <= 0, true)
			locktest.MustRelease(t, hold)
			_, hold = locktest.MustAcquire(t, t.Context(), b.Beside().MultiLock("k", "other"), core.WaitTime(5*time.Second))
			locktest.MustRelease(t, hold)
		})
	}
}
