package clusters_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// A ClusterClient made for Sentinels treats their servers as a Cluster. No other client would hear its sharded
// messages.
func TestNew_RefusesAFailoverClusterClient(t *testing.T) {
	t.Parallel()
	sentinels := []string{"127.0.0.1:1"}
	for name, rdb := range map[string]redis.UniversalClient{
		"failover_cluster":         redis.NewFailoverClusterClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: sentinels}),
		"universal_by_latency":     redis.NewUniversalClient(&redis.UniversalOptions{MasterName: "m", Addrs: sentinels, RouteByLatency: true}),
		"universal_randomly":       redis.NewUniversalClient(&redis.UniversalOptions{MasterName: "m", Addrs: sentinels, RouteRandomly: true}),
		"universal_as_a_cluster":   redis.NewUniversalClient(&redis.UniversalOptions{MasterName: "m", Addrs: sentinels, IsClusterMode: true}),
		"ok_universal":             redis.NewUniversalClient(&redis.UniversalOptions{MasterName: "m", Addrs: sentinels}),
		"ok_cluster":               redis.NewUniversalClient(&redis.UniversalOptions{Addrs: sentinels, IsClusterMode: true}),
		"ok_slots_that_are_theirs": redis.NewClusterClient(&redis.ClusterOptions{ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return nil, nil }}),
	} {
		t.Cleanup(func() { _ = rdb.Close() })
		locks, err := core.New(rdb)
		if err == nil {
			t.Cleanup(func() { _ = locks.Close(t.Context()) })
		}
		if strings.HasPrefix(name, "ok_") {
			locktest.WantErr(t, err)
			continue
		}
		locktest.WantErr(t, err, core.ErrInvalid)
		if err != nil && !strings.Contains(err.Error(), "redis.NewFailoverClient") {
			t.Errorf("%s: the error does not name the client to use: %v", name, err)
		}
	}
}

// wantAdvice checks that an acquisition fails at once, and that its error and the text for logs say what to write.
func wantAdvice(t *testing.T, locks *core.Client, key, advice string) {
	t.Helper()
	_, _, err := locks.Lock(key).Acquire(t.Context(), core.WaitTime(time.Hour))
	locktest.WantErr(t, err, core.ErrUnavailable)
	if err != nil && (!strings.Contains(err.Error(), advice) || !strings.Contains(core.ErrorText(err), advice)) {
		t.Errorf("got %q, in logs %q, want %s named", err, core.ErrorText(err), advice)
	}
}

// A client for another kind of server gets errors that name the right client.
func TestAcquire_WrongKindOfClient(t *testing.T) {
	t.Parallel()
	locktest.Parallel(t, "client_on_a_node", func(t *testing.T) {
		cluster := redisserver.StartCluster(t)
		far := 0 // the index of a node without the key
		if cluster.Master("k") == cluster.Masters[0] {
			far = 1
		}
		wantAdvice(t, locktest.NewClient(t, cluster.Masters[far].Client()), "k", "redis.NewClusterClient")
	})
	locktest.Parallel(t, "cluster_client_on_a_server", func(t *testing.T) {
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{redisserver.Start(t).Addr()}})
		t.Cleanup(func() { _ = rdb.Close() })
		wantAdvice(t, locktest.NewClient(t, rdb), "k", "redis.NewClient")
	})
	locktest.Parallel(t, "client_on_a_sentinel", func(t *testing.T) {
		wantAdvice(t, locktest.NewClient(t, redisserver.StartSentinel(t).Sentinel.Client()), "k", "redis.NewFailoverClient")
	})
	locktest.Parallel(t, "scripts_are_checked", func(t *testing.T) {
		proxy, rdb := faultproxy.Around(t, locktest.Embedded(t).Client)
		proxy.AnswerError(locktest.Scripts, refusals["alibaba_check"])
		wantAdvice(t, locktest.NewClient(t, rdb), "k", "script_check_enable")
	})
	locktest.Parallel(t, "keys_of_one_lock_in_several_slots", func(t *testing.T) {
		proxy, rdb := faultproxy.Around(t, locktest.Embedded(t).Client)
		proxy.AnswerError(locktest.Scripts, refusals["redis"])
		wantAdvice(t, locktest.NewClient(t, rdb), "k", "order:{42}")
	})
}

// A server behind a fixed address that has never granted a lock and is a replica is not waited for, and Ready reports it.
func TestAcquire_AddressOfAReplica(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{2, 3} { // the reply to HELLO is a list, or a map
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			t.Parallel()
			r := redisserver.StartReplicated(t, 1)
			opts := *r.Replicas[0].Client().Options()
			opts.Protocol = protocol
			rdb := redis.NewClient(&opts)
			t.Cleanup(func() { locktest.Must(t, rdb.Close()) })
			locks := locktest.NewClient(t, rdb, locktest.Patient)
			wantAdvice(t, locks, "k", "the server is a replica: give the Redis client the address of the master")
			err := locks.Ready(t.Context())
			locktest.WantErr(t, err, core.ErrUnavailable)
			if err == nil || !strings.Contains(err.Error(), "the server is a replica") || !strings.Contains(core.ErrorText(err), "the server is a replica") {
				t.Errorf("Ready: %v", err)
			}
			locktest.Must(t, r.Replicas[0].Client().Do(t.Context(), "replicaof", "no", "one").Err())
			locktest.Must(t, locks.Ready(t.Context()))
			locktest.Must(t, locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }))
		})
	}
}

// A port without TLS does not answer a handshake.
func TestAcquire_TLSOnAPlainPort(t *testing.T) {
	t.Parallel()
	locks, err := core.Open("rediss://" + redisserver.Start(t).Addr())
	locktest.Must(t, err)
	defer func() { _ = locks.Close(t.Context()) }()
	const advice = "check that this port speaks TLS"
	wantAdvice(t, locks, "k", advice)
	if err := locks.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), advice) {
		t.Errorf("Ready: %v", err)
	}
}

// A renewal that a node of a Cluster redirects has the same advice.
func TestRenewal_WrongKindOfClient(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		proxy, rdb := faultproxy.Around(t, b.Client)
		seen := &locktest.Renewals{}
		_, _ = locktest.MustAcquire(t, t.Context(), locktest.NewClient(t, rdb, core.WithWatchdog(30*time.Second), core.WithObserver(seen.Observer())).Lock("k"))
		proxy.AnswerError(locktest.Scripts, "MOVED 1 10.0.0.2:6379")
		time.Sleep(11 * time.Second) // in the time of the bubble: after the first renewal
		if err := seen.Failure(); err == nil || !strings.Contains(err.Error(), "redis.NewClusterClient") {
			t.Errorf("got %v, want redis.NewClusterClient named", err)
		}
	})
}
