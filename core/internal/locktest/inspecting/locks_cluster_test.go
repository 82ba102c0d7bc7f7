package inspecting_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// writeLocks writes n locks into Redis and returns their keys.
func writeLocks(t *testing.T, rdb redis.UniversalClient, n int) map[string]core.Kind {
	t.Helper()
	keys := map[string]core.Kind{}
	for i := range n {
		key := fmt.Sprint("k", i)
		keys[key] = core.KindReentrant
		locktest.Must(t, rdb.HSet(t.Context(), key, locktest.Stranger, 1).Err())
	}
	return keys
}

// Locks lists the locks of all masters of a Cluster, in pages of any size.
func TestLocks_OfACluster(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	locks, rdb := locktest.ClusterClient(t, cluster), cluster.Client()
	want := writeLocks(t, rdb, 60)
	locktest.Must(t, rdb.RPush(t.Context(), "redisson_lock_queue:{k7}", locktest.Stranger).Err())
	locktest.Must(t, rdb.RPush(t.Context(), "redisson_lock_queue:{free}", locktest.Stranger).Err())
	want["k7"], want["free"] = core.KindFair, core.KindFair
	for _, limit := range []int{0, 1, 7, 1000} {
		wantListed(t, listAll(t, locks, core.LockQuery{Limit: limit}), want)
	}
	for key := range want {
		if e := locktest.MustInspect(t, locks, key); e.Kind != want[key] {
			t.Errorf("%s: got %+v, want kind %s", key, e, want[key])
		}
	}
	_, err := locks.Inspect(t.Context(), "a}b{c}")
	locktest.WantErr(t, err, core.ErrInvalid)
}

// An eviction notifies waiters in a Cluster, where messages are sharded.
func TestEvict_InACluster(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	locks, operator, rdb := locktest.ClusterClient(t, cluster), locktest.ClusterClient(t, cluster), cluster.Client()
	for name, lock := range map[string]core.Lock{
		"plain": locks.Lock("plain"), "of{42}": locks.Lock("of{42}"), "fair": locks.FairLock("fair"), "read": locks.WriteLock("read"),
	} {
		locktest.Must(t, rdb.HSet(t.Context(), name, locktest.Stranger, 1).Err()) // without a TTL: only a message wakes the waiter
		if name == "read" {
			locktest.Must(t, rdb.HSet(t.Context(), name, "mode", "read").Err())
			locktest.Must(t, rdb.Set(t.Context(), "{read}:"+locktest.Stranger+":rwlock_timeout:1", 1, 0).Err())
		}
		got := make(chan error, 1)
		go func() {
			got <- lock.Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(time.Minute))
		}()
		locktest.AwaitWaiters(t, locks, 1)
		e, err := operator.Evict(t.Context(), name, locktest.Stranger)
		locktest.Must(t, err)
		if len(e.Holders) != 1 {
			t.Errorf("%s: got %+v, want one holder", name, e)
		}
		locktest.Must(t, <-got)
	}
}

// While a slot moves, locks are listed, inspected and freed on the node that has them.
func TestLocks_SlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	locks, rdb := locktest.ClusterClient(t, cluster), cluster.Client()
	want := map[string]core.Kind{"stays{moving}": core.KindReentrant, "goes{moving}": core.KindReentrant, "moving": core.KindReentrant}
	for key := range want {
		locktest.Must(t, rdb.HSet(t.Context(), key, locktest.Stranger, 1).Err())
	}
	move := cluster.BeginMove("moving")
	move.Keys("goes{moving}")
	wantListed(t, listAll(t, locks, core.LockQuery{}), want)
	for _, key := range []string{"stays{moving}", "goes{moving}"} {
		if e := locktest.MustInspect(t, locks, key); e.HolderCount != 1 {
			t.Errorf("%s: got %+v, want one holder", key, e)
		}
		if e, err := locks.Evict(t.Context(), key, locktest.Stranger); err != nil || e.HolderCount != 1 {
			t.Errorf("%s: got %+v, %v", key, e, err)
		}
		delete(want, key)
	}
	move.Keys("moving")
	move.End()
	wantListed(t, listAll(t, locks, core.LockQuery{}), want)
}

// If a replica becomes master during a list, the list starts again at its beginning, so that no lock is missed.
func TestLocks_MasterChanges(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	replica := cluster.AddReplica(cluster.Masters[0])
	rdb := cluster.Client()
	want := writeLocks(t, rdb, 300)
	locks := locktest.ClusterClient(t, cluster)
	first, err := locks.Locks(t.Context(), core.LockQuery{Limit: 20})
	locktest.Must(t, err)
	locktest.Must(t, replica.Client().ClusterFailover(t.Context()).Err())
	locktest.Eventually(t, "the replica is the master", func() bool {
		return replica.Client().Do(t.Context(), "role").Val().([]any)[0] == "master"
	})
	got := map[string]core.LockEntry{}
	for _, e := range first.Locks {
		got[e.Key] = e
	}
	locktest.Eventually(t, "a page from the new master", func() bool {
		page, err := locks.Locks(t.Context(), core.LockQuery{Cursor: first.Cursor, Limit: 10_000})
		for _, e := range page.Locks {
			got[e.Key] = e
		}
		return err == nil && page.Cursor == "" && len(got) == len(want)
	})
	wantListed(t, got, want)
}

// If a server restarts during a list, the list starts again at its beginning, because the cursor belongs to the old
// process.
func TestLocks_ServerRestarts(t *testing.T) {
	t.Parallel()
	srv := redisserver.StartDurable(t)
	want := writeLocks(t, srv.Client(), 500)
	locks := locktest.NewClient(t, srv.Client())
	first, err := locks.Locks(t.Context(), core.LockQuery{Limit: 100})
	locktest.Must(t, err)
	srv.Kill()
	srv.Restart()
	var page core.LockPage
	locktest.Eventually(t, "the server answers", func() bool {
		page, err = locks.Locks(t.Context(), core.LockQuery{Cursor: first.Cursor, Limit: 10_000})
		return err == nil
	})
	if len(page.Locks) != len(want) {
		t.Errorf("got %d locks, want all %d", len(page.Locks), len(want))
	}
}

// Behind a Sentinel, Locks asks the master, and the new master after a failover.
func TestLocks_Sentinel(t *testing.T) {
	t.Parallel()
	s := redisserver.StartSentinel(t)
	want := writeLocks(t, s.Client(), 20)
	locks := locktest.NewClient(t, s.Client(), locktest.Patient)
	wantListed(t, listAll(t, locks, core.LockQuery{}), want)
	locktest.Must(t, s.Master.Client().Do(t.Context(), "wait", 1, 10_000).Err())
	s.Master.Kill()
	s.AwaitFailover()
	locktest.Eventually(t, "the new master answers", func() bool {
		page, err := locks.Locks(context.Background(), core.LockQuery{})
		return err == nil && len(page.Locks) == len(want)
	})
}

// If Redis is down, Locks returns an error. The same page can be requested again when Redis is back.
func TestLocks_RedisIsDown(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	locks := locktest.NewClient(t, srv.Client(), core.WithBackendTimeout(time.Second))
	want := writeLocks(t, srv.Client(), 20)
	srv.Stop()
	_, err := locks.Locks(t.Context(), core.LockQuery{})
	locktest.WantErr(t, err, core.ErrUnavailable)
	srv.Continue()
	locktest.Eventually(t, "the server answers", func() bool {
		page, err := locks.Locks(t.Context(), core.LockQuery{})
		return err == nil && len(page.Locks) == len(want)
	})
}

// However many holders and waiters a lock has, Inspect costs Redis few commands, none of which reads everything.
func TestInspect_CostsRedisLittle(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	const many = 20_000
	ctx := context.Background()
	readers, waiters := map[string]any{"mode": "read"}, []any{}
	fields := map[string]any{}
	for i := range many {
		readers[fmt.Sprintf("0e6b1a52-1a3c-4d65-9c53-8d4c8a0b7f11:%d", i)] = 3
		waiters = append(waiters, fmt.Sprint("w:", i))
		fields[fmt.Sprint("f", i)] = "v"
	}
	locktest.Must(t, b.HSet(ctx, "read", readers).Err())
	locktest.Must(t, b.HSet(ctx, "fair", locktest.Stranger, 1).Err())
	locktest.Must(t, b.HSet(ctx, "else", fields).Err())
	locktest.Must(t, b.RPush(ctx, "redisson_lock_queue:{fair}", waiters...).Err())
	locks := b.Locks()
	b.Warm(locks)
	for _, key := range []string{"read", "fair", "else"} {
		locktest.MustInspect(t, locks, key) // the server knows the script from here on
		locktest.Must(t, b.ConfigResetStat(ctx).Err())
		locktest.MustInspect(t, locks, key)
		wantFewCommands(t, b.Info(ctx, "commandstats").Val(), key == "fair") // a hash with one field
	}
}

// wantFewCommands checks that Redis has executed only a few commands since its statistics were reset, and no command
// whose cost grows with the number of holders, except on a small hash.
func wantFewCommands(t *testing.T, stats string, small bool) {
	t.Helper()
	all := 0
	for line := range strings.Lines(stats) {
		name, values, ok := strings.Cut(strings.TrimSpace(line), ":calls=")
		if !ok {
			continue
		}
		calls, _, _ := strings.Cut(values, ",")
		n, err := strconv.Atoi(calls)
		locktest.Must(t, err)
		all += n
		if slices.Contains([]string{"hgetall", "hkeys", "hvals", "keys"}, strings.TrimPrefix(name, "cmdstat_")) && !small {
			t.Errorf("%s was called", name)
		}
	}
	if all > 120 {
		t.Errorf("%d commands for one key:\n%s", all, stats)
	}
}
