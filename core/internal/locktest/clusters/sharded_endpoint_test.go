package clusters_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// refusals are the answers of endpoints in front of several servers to a script over keys of several slots.
var refusals = map[string]string{
	"redis":            "CROSSSLOT Keys in request don't hash to the same slot",
	"redis_enterprise": "CROSSSLOT Keys in request don't hash to the same slot (command='EVALSHA', key='a')",
	"alibaba":          "ERR 'EVALSHA' command keys must in same slot",
	"alibaba_proxy":    "ERR eval/evalsha command keys must be in same slot",
	"dynomite":         "ERR Dynomite: Keys in the script cannot span multiple nodes",
	"alibaba_check":    "ERR bad lua script for redis cluster, all the keys that the script uses should be passed using the KEYS array",
}

// acrossSlots matches scripts over keys of several slots.
func acrossSlots(cmd []string) bool {
	if !locktest.Scripts(cmd) {
		return false
	}
	n, _ := strconv.Atoi(cmd[2])
	return slices.ContainsFunc(cmd[3:3+n], func(key string) bool { return wire.Slot(key) != wire.Slot(cmd[3]) })
}

// eachShardedEndpoint runs a test in a bubble for each of the refusals and counts them.
func eachShardedEndpoint(t *testing.T, body func(t *testing.T, b *locktest.Redis, refused *faultproxy.Rule)) {
	t.Helper()
	for name, says := range refusals {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			proxy, rdb := faultproxy.Around(t, b.Client)
			b.Connect = func(...func(*redis.Options)) *redis.Client { return rdb }
			body(t, b, proxy.AnswerError(acrossSlots, says))
		})
	}
}

// If the endpoint refuses a script over several holds, the watchdog renews them one by one, and none is lost.
func TestShardedEndpoint_RenewsOneByOne(t *testing.T) {
	t.Parallel()
	eachShardedEndpoint(t, func(t *testing.T, b *locktest.Redis, refused *faultproxy.Rule) {
		seen := &locktest.Renewals{}
		locks := b.Locks(core.WithWatchdog(30*time.Second), core.WithObserver(seen.Observer()))
		var holds []context.Context
		for _, lock := range []core.Lock{
			locks.Lock("a"), locks.Lock("b"), locks.SpinLock("c"), locks.FencedLock("d"), locks.FencedLock("e"),
			locks.FairLock("f"), locks.FairLock("g"), locks.ReadLock("h"), locks.ReadLock("i"), locks.Semaphore("j", 1).Lock, locks.Semaphore("k", 1).Lock,
		} {
			ctx, _ := locktest.MustAcquire(t, t.Context(), lock)
			holds = append(holds, ctx)
		}
		time.Sleep(2 * time.Minute) // in the time of the bubble: four leases
		for i, ctx := range holds {
			if ctx.Err() != nil {
				t.Errorf("hold %d has ended: %v", i, context.Cause(ctx))
			}
		}
		if err := seen.Failure(); err != nil || refused.Hits() == 0 || refused.Hits() > 5 {
			t.Errorf("%d refusals, a renewal has failed with %v; want at most one refusal of each kind, and no failure", refused.Hits(), err)
		}
	})
}

// If the endpoint refuses a script over several keys, the client takes the keys one by one. From then on it does not
// try such a script.
func TestShardedEndpoint_MultiLock(t *testing.T) {
	t.Parallel()
	eachShardedEndpoint(t, func(t *testing.T, b *locktest.Redis, refused *faultproxy.Rule) {
		locks, other := b.Locks(), b.Locks()
		for range 3 {
			_, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock("a", "b", "c"), core.WaitTime(0))
			_, _, err := other.Lock("b").Acquire(t.Context(), core.WaitTime(0))
			locktest.WantErr(t, err, core.ErrNotAcquired)
			_, _, err = other.MultiLock("z", "c").Acquire(t.Context(), core.WaitTime(0))
			locktest.WantErr(t, err, core.ErrNotAcquired)
			if b.Exists(t.Context(), "z").Val() != 0 {
				t.Error("a key that was taken before a held key is not given back")
			}
			freed := make(chan error, 1)
			time.AfterFunc(time.Second, func() { freed <- hold.Release(t.Context()) })
			_, next := locktest.MustAcquire(t, t.Context(), other.MultiLock("c", "b", "z"), core.WaitTime(10*time.Second))
			locktest.Must(t, <-freed) // "a" may be released last
			locktest.MustRelease(t, next)
		}
		locktest.WantSame(t, "refusals", refused.Hits(), 2)
	})
}

// The client clears up attempts without an answer although a script cannot ask about all their keys.
func TestShardedEndpoint_ClearsUp(t *testing.T) {
	t.Parallel()
	eachShardedEndpoint(t, func(t *testing.T, b *locktest.Redis, refused *faultproxy.Rule) {
		proxy, rdb := faultproxy.Around(t, b.Connect())
		locks := locktest.NewClient(t, rdb, core.WithBackendTimeout(time.Second))
		b.Warm(locks)
		lost := proxy.DropReply(locktest.Script(t, "acquire"))
		keys := []string{"a", "b", "c", "d", "e"}
		locktest.Concurrently(len(keys), func(i int) {
			_, _, err := locks.Lock(keys[i]).Acquire(t.Context(), core.WaitTime(0), core.LeaseTime(time.Hour))
			locktest.WantErr(t, err, core.ErrUnavailable)
		})
		lost.Remove()
		time.Sleep(10 * time.Second) // in the time of the bubble
		locktest.WantSame(t, "keys are left", b.Exists(t.Context(), keys...).Val(), 0)
		if n := refused.Hits(); n > 1 {
			t.Errorf("%d refusals, want at most one", n)
		}
	})
}

// The only node of a Cluster looks like a single server, but refuses scripts over several slots. Everything else works.
func TestShardedEndpoint_OnlyNodeOfACluster(t *testing.T) {
	t.Parallel()
	redisserver.EachBinary(t, func(t *testing.T, binary redisserver.Binary) {
		b := locktest.On(t, binary.StartCluster(t, 1).Masters[0])
		seen := &locktest.Renewals{}
		locks, other := b.Locks(core.WithWatchdog(locktest.Unhurried(3*time.Second)), core.WithObserver(seen.Observer())), b.Locks()
		var gives []func() error
		for _, m := range locktest.KindsOnOneServer() {
			has, err := m.Take(t.Context(), locks, m.Name)
			if err != nil {
				t.Fatalf("%s: %v", m.Name, err)
			}
			gives = append(gives, has.GiveBack)
		}
		_, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock("x", "y", "z"))
		_, _, err := other.MultiLock("w", "z").Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		page, err := other.Locks(t.Context(), core.LockQuery{})
		locktest.Must(t, err)
		for _, name := range []string{"reentrant", "fenced", "fair", "read", "permit", "x", "y", "z"} {
			if !slices.ContainsFunc(page.Locks, func(e core.LockEntry) bool { return e.Key == name }) {
				t.Errorf("%s is not listed", name)
			}
		}
		locktest.Eventually(t, "all have been renewed", func() bool { return seen.Good() >= 2*len(gives) })
		locktest.WantOK(t, seen.Failure())
		for _, give := range gives {
			locktest.Must(t, give())
		}
		locktest.MustRelease(t, hold)
	})
}
