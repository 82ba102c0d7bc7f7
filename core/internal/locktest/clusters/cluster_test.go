package clusters_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// These tests use the same keys of one Cluster, so they run one after the other.
func TestCluster(t *testing.T) {
	t.Parallel()
	redisserver.EachBinary(t, func(t *testing.T, binary redisserver.Binary) {
		c := locktest.ClusterOf(binary.StartCluster(t))
		t.Run("LockReenterRelease", func(t *testing.T) { clusterLockReenterRelease(t, c) })
		t.Run("Contend", func(t *testing.T) { clusterContend(t, c) })
		t.Run("ShardedWakeUp", func(t *testing.T) { clusterShardedWakeUp(t, c) })
		t.Run("ClassicWakeUp", func(t *testing.T) { clusterClassicWakeUp(t, c) })
		t.Run("ForceReleasePublishesSharded", func(t *testing.T) { clusterForceReleasePublishesSharded(t, c) })
		t.Run("BadBracesRefused", func(t *testing.T) { clusterBadBracesRefused(t, c) })
		t.Run("MultiAcrossSlots", func(t *testing.T) { clusterMultiAcrossSlots(t, c) })
		t.Run("MultiInOneSlot", func(t *testing.T) { clusterMultiInOneSlot(t, c) })
		t.Run("RenewsOnEveryNode", func(t *testing.T) { clusterRenewsOnEveryNode(t, c) })
		t.Run("ReadyAndState", func(t *testing.T) { clusterReadyAndState(t, c) })
	})
}

func clusterLockReenterRelease(t *testing.T, c *locktest.Cluster) {
	locks := c.Locks(t)
	for _, name := range []string{"one", "two", "three", "order:{42}"} {
		l := locks.Lock(name)
		ctx, outer := locktest.MustAcquire(t, t.Context(), l)
		_, inner := locktest.MustAcquire(t, ctx, l)
		if got := c.Redis.HGet(t.Context(), name, outer.Field()).Val(); got != "2" {
			t.Errorf("%s: count %q, want 2", name, got)
		}
		_, _, err := c.Locks(t).Lock(name).Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, outer)
		c.WantGone(t, name)
	}
}

func clusterContend(t *testing.T, c *locktest.Cluster) {
	var held atomic.Int32
	var group sync.WaitGroup
	for range 2 {
		locks := c.Locks(t)
		for range 8 {
			group.Go(func() {
				for range 10 {
					err := locks.Lock("hot").Do(t.Context(), func(context.Context) error {
						if held.Add(1) != 1 {
							t.Error("two holders")
						}
						held.Add(-1)
						return nil
					})
					locktest.WantOK(t, err)
				}
			})
		}
	}
	group.Wait()
	c.WantGone(t, "hot")
}

// Redisson in a Cluster of Redis 7 listens by SSUBSCRIBE and publishes by SPUBLISH.
func clusterShardedWakeUp(t *testing.T, c *locktest.Cluster) {
	c.NeedSharded(t)
	locks := c.Locks(t)
	channel := locktest.ChannelOf("k")
	sub := c.Redis.SSubscribe(t.Context(), channel)
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
	locktest.MustRelease(t, hold)
	if m, err := sub.ReceiveMessage(t.Context()); err != nil || m.Payload != "0" {
		t.Errorf("message: got %v, %v", m, err)
	}
	clusterWantWoken(t, c, locks, func(key string) { c.Redis.SPublish(t.Context(), locktest.ChannelOf(key), "0") }, func(key string) bool {
		n, err := c.OnMaster(t, key).PubSubShardNumSub(t.Context(), locktest.ChannelOf(key)).Result()
		return err == nil && n[locktest.ChannelOf(key)] == 1
	})
}

func clusterClassicWakeUp(t *testing.T, c *locktest.Cluster) {
	locks := c.Locks(t, core.WithPubSub(core.PubSubClassic))
	clusterWantWoken(t, c, locks, func(key string) { c.Redis.Publish(t.Context(), locktest.ChannelOf(key), "0") }, func(key string) bool {
		for _, m := range c.Masters {
			n, err := m.Client().PubSubNumSub(t.Context(), locktest.ChannelOf(key)).Result()
			if err == nil && n[locktest.ChannelOf(key)] == 1 {
				return true
			}
		}
		return false
	})
	// Two classic clients wake each other.
	other := c.Locks(t, core.WithPubSub(core.PubSubClassic))
	_, hold := locktest.MustAcquire(t, t.Context(), other.Lock("k"))
	got := locktest.Go(func() error { return locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }) })
	locktest.AwaitWaiters(t, locks, 1)
	locktest.MustRelease(t, hold)
	locktest.WantOK(t, <-got)
}

// clusterWantWoken checks that a message wakes a waiter for a lock that a stranger holds. The bound is relative, for
// busy machines: without a message, the poll of the waiter finds the free lock later.
func clusterWantWoken(t *testing.T, c *locktest.Cluster, locks *core.Client, publish func(key string), listening func(key string) bool) {
	t.Helper()
	var woken, polled time.Duration
	for i := range 4 {
		woken += clusterFreed(t, c, locks, fmt.Sprintf("loud:%d", i), publish, listening)
		polled += clusterFreed(t, c, locks, fmt.Sprintf("silent:%d", i), func(string) {}, listening)
	}
	if woken > polled/2 {
		t.Errorf("four waiters were woken after %s by messages and after %s by the poll", woken, polled)
	}
}

// clusterFreed deletes a lock, calls publish, and returns how long its waiter goes on waiting. The key is new, so its
// waiter subscribes, and attempts once more, before it sleeps.
func clusterFreed(t *testing.T, c *locktest.Cluster, locks *core.Client, key string, publish func(key string), listening func(key string) bool) time.Duration {
	t.Helper()
	c.Redis.HSet(t.Context(), key, locktest.Stranger, 1)
	c.Redis.PExpire(t.Context(), key, time.Minute)
	before := clusterScripts(t, c, key)
	at := locktest.AcquiredAt(t, locks, key)
	locktest.AwaitWaiters(t, locks, 1)
	locktest.Eventually(t, "a subscription", func() bool { return listening(key) })
	locktest.Eventually(t, "the attempt after the subscription", func() bool { return clusterScripts(t, c, key) >= before+2 })
	freed := time.Now()
	c.Redis.Del(t.Context(), key)
	publish(key)
	return (<-at).Sub(freed)
}

// clusterScripts returns how many scripts the master of a key has executed.
func clusterScripts(t *testing.T, c *locktest.Cluster, key string) int {
	t.Helper()
	var n int
	for line := range strings.Lines(c.OnMaster(t, key).Info(context.Background(), "commandstats").Val()) {
		if calls, ok := strings.CutPrefix(line, "cmdstat_evalsha:calls="); ok {
			n, _ = strconv.Atoi(calls[:strings.IndexByte(calls, ',')]) // 0 if it is not a number
		}
	}
	return n
}

// A client that has never acquired a lock uses the right kind of messages.
func clusterForceReleasePublishesSharded(t *testing.T, c *locktest.Cluster) {
	c.NeedSharded(t)
	sub := c.Redis.SSubscribe(t.Context(), locktest.ChannelOf("k"))
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Redis.HSet(t.Context(), "k", locktest.Stranger, 1)
	locktest.WantGot(t, "ForceRelease", true)(c.Locks(t).Lock("k").ForceRelease(t.Context()))
	if m, err := sub.ReceiveTimeout(t.Context(), 10*time.Second); err != nil {
		t.Errorf("message: got %v, %v", m, err)
	}
}

func clusterBadBracesRefused(t *testing.T, c *locktest.Cluster) {
	locks := c.Locks(t)
	for _, name := range []string{"a{b", "a}b", "{}x", "}a{b}"} {
		_, _, err := locks.Lock(name).Acquire(t.Context())
		locktest.WantErr(t, err, core.ErrInvalid)
		locktest.WantErr(t, locks.MultiLock("fine", name).Do(t.Context(), nil), core.ErrInvalid)
	}
	_, _, err := c.Locks(t, core.WithPrefix("shop{")).Lock("k").Acquire(t.Context())
	locktest.WantErr(t, err, core.ErrInvalid)
}

func clusterMultiAcrossSlots(t *testing.T, c *locktest.Cluster) {
	locks := c.Locks(t)
	names := []string{"alpha", "beta", "gamma", "delta"}
	_, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock(names...))
	for _, name := range names {
		if c.Redis.HLen(t.Context(), name).Val() != 1 {
			t.Errorf("%s does not have one holder", name)
		}
	}
	_, _, err := c.Locks(t).MultiLock("gamma", "zeta").Acquire(t.Context(), core.WaitTime(0))
	locktest.WantErr(t, err, core.ErrNotAcquired)
	c.WantGone(t, "zeta")
	locktest.MustRelease(t, hold)
	c.WantGone(t, names...)

	c.Redis.HSet(t.Context(), "gamma", locktest.Stranger, 1)
	_, _, err = locks.MultiLock(names...).Acquire(t.Context(), core.WaitTime(time.Second))
	locktest.WantErr(t, err, core.ErrNotAcquired)
	locktest.Eventually(t, "rolled back", func() bool { return c.Redis.Exists(t.Context(), "alpha").Val() == 0 })
	c.WantGone(t, "beta", "delta")
	c.Redis.Del(t.Context(), "gamma")

	var group sync.WaitGroup
	for _, order := range [][]string{{"alpha", "beta", "gamma"}, {"gamma", "beta", "alpha"}} {
		group.Go(func() {
			for range 10 {
				locktest.WantOK(t, c.Locks(t).MultiLock(order...).Do(t.Context(), func(context.Context) error { return nil }))
			}
		})
	}
	group.Wait()
	c.WantGone(t, names...)
}

func clusterMultiInOneSlot(t *testing.T, c *locktest.Cluster) {
	locks := c.Locks(t)
	names := []string{"a{shop}", "b{shop}", "c{shop}"}
	_, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock(names...))
	for _, name := range names {
		if got := c.Redis.HGet(t.Context(), name, hold.Field()).Val(); got != "1" {
			t.Errorf("%s: count %q, want 1 for the field", name, got)
		}
	}
	locktest.MustRelease(t, hold)
	c.WantGone(t, names...)
}

func clusterRenewsOnEveryNode(t *testing.T, c *locktest.Cluster) {
	obs := &locktest.Recorder{}
	watchdog := locktest.Unhurried(3 * time.Second)
	locks := c.Locks(t, core.WithWatchdog(watchdog), core.WithObserver(obs.Observer()))
	var contexts []context.Context
	var holds []*core.Hold
	for _, name := range []string{"alpha", "beta", "gamma", "delta", "one", "two", "three"} {
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock(name))
		contexts, holds = append(contexts, ctx), append(holds, hold)
	}
	start := time.Now()
	locktest.Eventually(t, "renewals beyond the first lease", func() bool {
		return time.Since(start) > 6*watchdog/5 && obs.Count("renewal") >= 2*len(holds)
	})
	for i, hold := range holds {
		locktest.WantAlive(t, contexts[i])
		locktest.MustRelease(t, hold)
	}
}

func clusterReadyAndState(t *testing.T, c *locktest.Cluster) {
	locks := c.Locks(t)
	locktest.WantOK(t, locks.Ready(t.Context()))
	_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("one"))
	state, err := c.Locks(t).Lock("one").State(t.Context())
	if err != nil || state.Holders[hold.Field()] != 1 {
		t.Errorf("state: got %+v, %v", state, err)
	}
	locktest.MustRelease(t, hold)
}

// One node stops. Acquisitions of its keys fail with ErrUnavailable in bounded time. Acquisitions of keys of other
// nodes are not delayed.
func TestCluster_StoppedNodeDelaysNoOther(t *testing.T) {
	t.Parallel()
	c := locktest.NewCluster(t)
	locks := c.Locks(t, core.WithBackendTimeout(3*time.Second)) // the keys of other nodes have this time, too
	dead := c.Master("alpha")
	nothing := func(context.Context) error { return nil }
	var alive, silent []string
	for i := range 40 {
		name := "k" + strconv.Itoa(i)
		locktest.Must(t, locks.Lock(name).Do(t.Context(), nothing))
		if c.Master(name) == dead {
			silent = append(silent, name)
		} else {
			alive = append(alive, name)
		}
	}
	for _, m := range c.Masters { // they would refuse all keys once they had declared a node dead
		locktest.Must(t, m.Client().ConfigSet(t.Context(), "cluster-node-timeout", "3600000").Err())
	}
	dead.Stop()
	defer dead.Continue()
	var callers sync.WaitGroup
	for _, name := range silent {
		callers.Go(func() { locktest.WantErr(t, locks.Lock(name).Do(t.Context(), nothing), core.ErrUnavailable) })
	}
	for range 2 { // first while callers wait, then while they fail at once
		for _, name := range alive {
			callers.Go(func() {
				if err := locks.Lock(name).Do(t.Context(), nothing); err != nil {
					t.Errorf("%s, on another node: %v", name, err)
				}
			})
		}
		callers.Wait()
	}
	start := time.Now()
	_, _, err := locks.Lock("alpha").Acquire(t.Context())
	locktest.WantErr(t, err, core.ErrUnavailable)
	if errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("%v: the error of a node that is down says that the lock is taken", err)
	}
	locktest.WantSoon(t, "the caller failed after %s", start, locktest.Measured(5*time.Second))
	dead.Continue()
	locktest.Eventually(t, "recovery", func() bool {
		return locks.Lock("alpha").Do(t.Context(), nothing) == nil
	})
}

// No node answers from the start on. The first acquisition, which has to ask for the mode of pub/sub, ends in bounded
// time.
func TestCluster_DownAtTheStart(t *testing.T) {
	t.Parallel()
	c := locktest.NewCluster(t)
	locks := c.Locks(t, core.WithBackendTimeout(time.Second))
	for _, m := range c.Masters {
		m.Stop()
	}
	start := time.Now()
	_, _, err := locks.Lock("k").Acquire(t.Context())
	locktest.WantErr(t, err, core.ErrUnavailable)
	locktest.WantSoon(t, "the caller failed after %s", start, locktest.Measured(5*time.Second))
	for _, m := range c.Masters {
		m.Continue()
	}
	locktest.Eventually(t, "recovery", func() bool {
		return locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }) == nil
	})
}

// A Cluster refuses to answer whether it has sharded pub/sub. The client does not assume classic messages, because
// Redisson's messages might be sharded. WithPubSub makes the question unnecessary.
func TestCluster_QuestionAboutPubSubIsForbidden(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	cluster.NeedSharded(t)
	everywhere := func(args ...any) {
		t.Helper()
		locktest.Must(t, cluster.Client().ForEachMaster(t.Context(), func(ctx context.Context, rdb *redis.Client) error {
			return rdb.Do(ctx, args...).Err()
		}))
	}
	everywhere("acl", "setuser", "limited", "on", "nopass", "~*", "&*", "+@all", "-pubsub")
	store := func(sharded *bool) *redisstore.Store {
		t.Helper()
		s, err := redisstore.New(cluster.Client(func(o *redis.ClusterOptions) { o.Username, o.Password = "limited", "any" }),
			redisstore.Config{Config: wire.Config{Timeout: 5 * time.Second}, RenewTimeout: 5 * time.Second, Sharded: sharded})
		locktest.Must(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	asks, set := store(nil), store(new(true))
	limit := time.Now().Add(10 * time.Second)
	locktest.WantErr(t, asks.Detect(t.Context(), limit), redisstore.ErrUndetected)
	if asks.Reached() {
		t.Error("the client took NOPERM for an answer")
	}
	locktest.Must(t, set.Detect(t.Context(), limit))
	everywhere("acl", "setuser", "limited", "+pubsub")
	locktest.Eventually(t, "the answer of the Cluster", func() bool { // the refusal stands for a pause
		return asks.Detect(t.Context(), time.Now().Add(10*time.Second)) == nil
	})
	if !asks.Sharded() || !set.Sharded() {
		t.Errorf("sharded: got %v and %v, want it", asks.Sharded(), set.Sharded())
	}
}

// TestCluster_ShardedSubscriptionsComeBack kills the subscription connection of a client that waits for keys of one
// master in different slots. The client subscribes to all channels again, and the message of a release wakes each
// waiter.
func TestCluster_ShardedSubscriptionsComeBack(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	cluster.NeedSharded(t)
	node := cluster.Masters[0]
	direct := node.Client()
	keys := locktest.KeysOn(cluster, node, 3)
	holder, waiter := locktest.ClusterClient(t, cluster), locktest.ClusterClient(t, cluster)
	holds := make(map[string]*core.Hold)
	got := make(map[string]chan error)
	for _, key := range keys {
		_, hold, err := holder.Lock(key).Acquire(t.Context())
		locktest.Must(t, err)
		done := make(chan error, 1)
		holds[key], got[key] = hold, done
		go func() {
			done <- waiter.Lock(key).Do(context.Background(), func(context.Context) error { return nil }, core.WaitTime(time.Minute))
		}()
	}
	subscribed := func() bool {
		for _, key := range keys {
			channel := "redisson_lock__channel:{" + key + "}"
			if direct.PubSubShardNumSub(t.Context(), channel).Val()[channel] == 0 {
				return false
			}
		}
		return true
	}
	locktest.Eventually(t, "all channels to be subscribed", subscribed)
	locktest.Must(t, direct.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err())
	locktest.Eventually(t, "all channels to be subscribed again", subscribed)
	for _, key := range keys {
		locktest.Must(t, holds[key].Release(t.Context()))
		locktest.Must(t, <-got[key])
	}
}
