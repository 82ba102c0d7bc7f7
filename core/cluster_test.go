package core_test

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
)

// clusterBed is a Cluster of three masters and a client to look at it.
type clusterBed struct {
	*redisserver.Cluster

	t   *testing.T
	rdb *redis.ClusterClient
}

func newClusterBed(t *testing.T) *clusterBed {
	t.Helper()
	return clusterOf(t, redisserver.StartCluster(t))
}

func clusterOf(t *testing.T, c *redisserver.Cluster) *clusterBed {
	t.Helper()
	return &clusterBed{Cluster: c, t: t, rdb: c.Client()}
}

func (c *clusterBed) locks(t *testing.T, opts ...core.Option) *core.Client {
	t.Helper()
	return locktest.NewClient(t, c.Client(), append([]core.Option{locktest.Patient}, opts...)...)
}

func (c *clusterBed) wantGone(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if c.rdb.Exists(context.Background(), key).Val() != 0 {
			t.Errorf("%s is still there", key)
		}
	}
}

// What runs on one cluster, and on the same keys, runs one after the other.
func TestCluster(t *testing.T) {
	t.Parallel()
	redisserver.EachBinary(t, func(t *testing.T, binary redisserver.Binary) {
		c := clusterOf(t, binary.StartCluster(t))
		t.Run("LockReenterRelease", c.lockReenterRelease)
		t.Run("Contend", c.contend)
		t.Run("ShardedWakeUp", c.shardedWakeUp)
		t.Run("ClassicWakeUp", c.classicWakeUp)
		t.Run("ForceReleasePublishesSharded", c.forceReleasePublishesSharded)
		t.Run("BadBracesRefused", c.badBracesRefused)
		t.Run("MultiAcrossSlots", c.multiAcrossSlots)
		t.Run("MultiInOneSlot", c.multiInOneSlot)
		t.Run("RenewsOnEveryNode", c.renewsOnEveryNode)
		t.Run("ReadyAndState", c.readyAndState)
		t.Run("Hooks", c.hooks)
	})
}

func (c *clusterBed) lockReenterRelease(t *testing.T) {
	locks := c.locks(t)
	for _, name := range []string{"one", "two", "three", "order:{42}"} {
		l := locks.Lock(name)
		ctx, outer := locktest.MustAcquire(t, t.Context(), l)
		_, inner := locktest.MustAcquire(t, ctx, l)
		if got := c.rdb.HGet(t.Context(), name, outer.Field()).Val(); got != "2" {
			t.Errorf("%s: count %q, want 2", name, got)
		}
		_, _, err := c.locks(t).Lock(name).Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, outer)
		c.wantGone(t, name)
	}
}

func (c *clusterBed) contend(t *testing.T) {
	var held atomic.Int32
	var group sync.WaitGroup
	for range 2 {
		locks := c.locks(t)
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
	c.wantGone(t, "hot")
}

// Redisson in a Cluster of Redis 7 listens by SSUBSCRIBE and publishes by SPUBLISH.
func (c *clusterBed) shardedWakeUp(t *testing.T) {
	c.NeedSharded(t)
	locks := c.locks(t)
	channel := locktest.ChannelOf("k")
	sub := c.rdb.SSubscribe(t.Context(), channel)
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
	locktest.MustRelease(t, hold)
	if m, err := sub.ReceiveMessage(t.Context()); err != nil || m.Payload != "0" {
		t.Errorf("message: got %v, %v", m, err)
	}
	c.wantWoken(t, locks, func(key string) { c.rdb.SPublish(t.Context(), locktest.ChannelOf(key), "0") }, func(key string) bool {
		n, err := c.onMaster(key).PubSubShardNumSub(t.Context(), locktest.ChannelOf(key)).Result()
		return err == nil && n[locktest.ChannelOf(key)] == 1
	})
}

func (c *clusterBed) classicWakeUp(t *testing.T) {
	locks := c.locks(t, core.WithPubSub(core.PubSubClassic))
	c.wantWoken(t, locks, func(key string) { c.rdb.Publish(t.Context(), locktest.ChannelOf(key), "0") }, func(key string) bool {
		for _, m := range c.Masters {
			n, err := m.Client().PubSubNumSub(t.Context(), locktest.ChannelOf(key)).Result()
			if err == nil && n[locktest.ChannelOf(key)] == 1 {
				return true
			}
		}
		return false
	})
	// Two classic clients wake each other.
	other := c.locks(t, core.WithPubSub(core.PubSubClassic))
	_, hold := locktest.MustAcquire(t, t.Context(), other.Lock("k"))
	got := make(chan error, 1)
	go func() { got <- locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }) }()
	locktest.AwaitWaiters(t, locks, 1)
	locktest.MustRelease(t, hold)
	locktest.WantOK(t, <-got)
}

func (c *clusterBed) onMaster(key string) *redis.Client {
	c.t.Helper()
	node, err := c.rdb.MasterForKey(context.Background(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	return node
}

// wantWoken wants a waiter behind a stranger to be woken by a message. How long that takes says
// nothing on a busy machine, but beside how long it takes without one, when the waiter's poll finds
// the lock free.
func (c *clusterBed) wantWoken(t *testing.T, locks *core.Client, publish func(key string), listening func(key string) bool) {
	t.Helper()
	var woken, polled time.Duration
	for i := range 4 {
		woken += c.freed(t, locks, fmt.Sprintf("told:%d", i), publish, listening)
		polled += c.freed(t, locks, fmt.Sprintf("silent:%d", i), func(string) {}, listening)
	}
	if woken > polled/2 {
		t.Errorf("four times woken by a message took %s, by the poll %s", woken, polled)
	}
}

// freed is how long a waiter goes on waiting for a lock that is deleted, of which publish may tell.
// The key is a new one: its waiter subscribes, and looks once more, before it sleeps.
func (c *clusterBed) freed(t *testing.T, locks *core.Client, key string, publish func(key string), listening func(key string) bool) time.Duration {
	t.Helper()
	c.rdb.HSet(t.Context(), key, locktest.Stranger, 1)
	c.rdb.PExpire(t.Context(), key, time.Minute)
	before := c.scripts(key)
	at := locktest.AcquiredAt(t, locks, key)
	locktest.AwaitWaiters(t, locks, 1)
	locktest.Eventually(t, "a subscription", func() bool { return listening(key) })
	locktest.Eventually(t, "the look after it", func() bool { return c.scripts(key) >= before+2 })
	freed := time.Now()
	c.rdb.Del(t.Context(), key)
	publish(key)
	return (<-at).Sub(freed)
}

// scripts is how many scripts the master of a key has run.
func (c *clusterBed) scripts(key string) int {
	var n int
	for line := range strings.Lines(c.onMaster(key).Info(context.Background(), "commandstats").Val()) {
		if calls, ok := strings.CutPrefix(line, "cmdstat_evalsha:calls="); ok {
			n, _ = strconv.Atoi(calls[:strings.IndexByte(calls, ',')]) // 0 is fewer than any
		}
	}
	return n
}

// A client that has never acquired anything still knows how wake-ups travel.
func (c *clusterBed) forceReleasePublishesSharded(t *testing.T) {
	c.NeedSharded(t)
	sub := c.rdb.SSubscribe(t.Context(), locktest.ChannelOf("k"))
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.rdb.HSet(t.Context(), "k", locktest.Stranger, 1)
	locktest.WantGot(t, "ForceRelease", true)(c.locks(t).Lock("k").ForceRelease(t.Context()))
	if m, err := sub.ReceiveTimeout(t.Context(), 10*time.Second); err != nil {
		t.Errorf("message: got %v, %v", m, err)
	}
}

func (c *clusterBed) badBracesRefused(t *testing.T) {
	locks := c.locks(t)
	for _, name := range []string{"a{b", "a}b", "{}x", "}a{b}"} {
		_, _, err := locks.Lock(name).Acquire(t.Context())
		locktest.WantErr(t, err, core.ErrInvalid)
		locktest.WantErr(t, locks.MultiLock("fine", name).Do(t.Context(), nil), core.ErrInvalid)
	}
	_, _, err := c.locks(t, core.WithPrefix("shop{")).Lock("k").Acquire(t.Context())
	locktest.WantErr(t, err, core.ErrInvalid)
}

func (c *clusterBed) multiAcrossSlots(t *testing.T) {
	locks := c.locks(t)
	names := []string{"alpha", "beta", "gamma", "delta"}
	_, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock(names...))
	for _, name := range names {
		if c.rdb.HLen(t.Context(), name).Val() != 1 {
			t.Errorf("%s is not held", name)
		}
	}
	_, _, err := c.locks(t).MultiLock("gamma", "zeta").Acquire(t.Context(), core.WaitTime(0))
	locktest.WantErr(t, err, core.ErrNotAcquired)
	c.wantGone(t, "zeta")
	locktest.MustRelease(t, hold)
	c.wantGone(t, names...)

	c.rdb.HSet(t.Context(), "gamma", locktest.Stranger, 1)
	_, _, err = locks.MultiLock(names...).Acquire(t.Context(), core.WaitTime(time.Second))
	locktest.WantErr(t, err, core.ErrNotAcquired)
	locktest.Eventually(t, "rolled back", func() bool { return c.rdb.Exists(t.Context(), "alpha").Val() == 0 })
	c.wantGone(t, "beta", "delta")
	c.rdb.Del(t.Context(), "gamma")

	var group sync.WaitGroup
	for _, order := range [][]string{{"alpha", "beta", "gamma"}, {"gamma", "beta", "alpha"}} {
		group.Go(func() {
			for range 10 {
				locktest.WantOK(t, c.locks(t).MultiLock(order...).Do(t.Context(), func(context.Context) error { return nil }))
			}
		})
	}
	group.Wait()
	c.wantGone(t, names...)
}

func (c *clusterBed) multiInOneSlot(t *testing.T) {
	locks := c.locks(t)
	names := []string{"a{shop}", "b{shop}", "c{shop}"}
	_, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock(names...))
	for _, name := range names {
		if got := c.rdb.HGet(t.Context(), name, hold.Field()).Val(); got != "1" {
			t.Errorf("%s: count %q, want 1 for the one field", name, got)
		}
	}
	locktest.MustRelease(t, hold)
	c.wantGone(t, names...)
}

func (c *clusterBed) renewsOnEveryNode(t *testing.T) {
	obs := &locktest.Recorder{}
	watchdog := locktest.Unhurried(3 * time.Second)
	locks := c.locks(t, core.WithWatchdog(watchdog), core.WithObserver(obs.Observer()))
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

func (c *clusterBed) readyAndState(t *testing.T) {
	locks := c.locks(t)
	locktest.WantOK(t, locks.Ready(t.Context()))
	_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("one"))
	state, err := c.locks(t).Lock("one").State(t.Context())
	if err != nil || state.Holders[hold.Field()] != 1 {
		t.Errorf("state: got %+v, %v", state, err)
	}
	locktest.MustRelease(t, hold)
}

// One node stops: its keys answer with ErrUnavailable in bounded time, those of the
// others are not delayed.
func TestCluster_StoppedNodeDelaysNoOther(t *testing.T) {
	t.Parallel()
	c := newClusterBed(t)
	locks := c.locks(t, core.WithBackendTimeout(3*time.Second)) // those of the others have it, too
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
	for _, m := range c.Masters { // which would refuse all keys once they have given one of them up
		locktest.Must(t, m.Client().ConfigSet(t.Context(), "cluster-node-timeout", "3600000").Err())
	}
	dead.Stop()
	defer dead.Continue()
	var callers sync.WaitGroup
	for _, name := range silent {
		callers.Go(func() { locktest.WantErr(t, locks.Lock(name).Do(t.Context(), nothing), core.ErrUnavailable) })
	}
	for range 2 { // while they wait, and when they fail at once
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
		t.Errorf("%v: down is taken for taken", err)
	}
	locktest.WantSoon(t, "known after %s", start, locktest.Measured(5*time.Second))
	dead.Continue()
	locktest.Eventually(t, "recovery", func() bool {
		return locks.Lock("alpha").Do(t.Context(), nothing) == nil
	})
}

// Nothing answers from the start on: the first acquisition, which has to find out
// about pub/sub, is bounded too.
func TestCluster_DownAtTheStart(t *testing.T) {
	t.Parallel()
	c := newClusterBed(t)
	locks := c.locks(t, core.WithBackendTimeout(time.Second))
	for _, m := range c.Masters {
		m.Stop()
	}
	start := time.Now()
	_, _, err := locks.Lock("k").Acquire(t.Context())
	locktest.WantErr(t, err, core.ErrUnavailable)
	locktest.WantSoon(t, "known after %s", start, locktest.Measured(5*time.Second))
	for _, m := range c.Masters {
		m.Continue()
	}
	locktest.Eventually(t, "recovery", func() bool {
		return locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }) == nil
	})
}
