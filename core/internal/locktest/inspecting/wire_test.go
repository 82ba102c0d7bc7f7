package inspecting_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// wireOf calls Wire, which must succeed.
func wireOf(t *testing.T, locks *core.Client) core.Wire {
	t.Helper()
	w, err := locks.Wire(t.Context())
	locktest.Must(t, err)
	return w
}

// wantWire compares all fields but the warnings, and checks that there is one warning for each text.
func wantWire(t *testing.T, got, want core.Wire, warnings ...string) {
	t.Helper()
	found := got.Warnings
	got.Warnings, want.Warnings = nil, nil
	if !slices.Equal([]any{
		got.Topology, got.Database, got.Channels, got.ServerSharded, got.Prefix, got.Mapped,
	}, []any{want.Topology, want.Database, want.Channels, want.ServerSharded, want.Prefix, want.Mapped}) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(found) != len(warnings) {
		t.Fatalf("got the warnings %q, want %d", found, len(warnings))
	}
	for i, text := range warnings {
		if !strings.Contains(found[i], text) {
			t.Errorf("warning: got %q, want %q in it", found[i], text)
		}
	}
}

func TestWire_SingleServer(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		wantWire(t, wireOf(t, b.Locks(core.WithPrefix("shop:"))),
			core.Wire{Topology: "single server", Channels: "classic", Prefix: "shop:"})

		second := b.Connect(func(o *redis.Options) { o.DB = 2 })
		mapped := locktest.NewClient(t, second, core.WithNameMapper(around), core.WithPubSub(core.PubSubSharded))
		wantWire(t, wireOf(t, mapped),
			core.Wire{Topology: "single server", Database: 2, Channels: "classic", Mapped: true})
	})
}

// A client with only the rights that locks need gets no warnings about rights that matter in a Cluster only.
func TestWire_SingleServerWithoutRights(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	locktest.Must(t, srv.Client().Do(t.Context(), "acl", "setuser", "shop", "on", ">secret", "~*", "&*", "+@all", "-pubsub").Err())
	locks := locktest.NewClient(t, srv.Client(func(o *redis.Options) { o.Username, o.Password = "shop", "secret" }))
	wantWire(t, wireOf(t, locks), core.Wire{Topology: "single server", Channels: "classic"})
}

func TestWire_Sentinel(t *testing.T) {
	t.Parallel()
	s := redisserver.StartSentinel(t)
	wantWire(t, wireOf(t, locktest.NewClient(t, s.Client())), core.Wire{Topology: "Sentinel", Channels: "classic"})
}

func TestWire_RedisDownOrClientClosed(t *testing.T) {
	t.Parallel()
	locks := locktest.NewClient(t, locktest.Nowhere(t), core.WithBackendTimeout(50*time.Millisecond))
	_, err := locks.Wire(t.Context())
	locktest.WantErr(t, err, core.ErrUnavailable)
	locktest.Must(t, locks.Close(t.Context()))
	_, err = locks.Wire(t.Context())
	locktest.WantErr(t, err, core.ErrClosed)
}

// These tests look at the listeners of one Cluster, so they run one after the other.
func TestWire_Cluster(t *testing.T) {
	t.Parallel()
	redisserver.EachBinary(t, func(t *testing.T, binary redisserver.Binary) {
		c := locktest.ClusterOf(binary.StartCluster(t))
		c.NeedSharded(t)
		t.Run("Modes", func(t *testing.T) { wireModes(t, c) })
		t.Run("OthersListenClassic", func(t *testing.T) { wireOthersListenClassic(t, c) })
		t.Run("OthersListenSharded", func(t *testing.T) { wireOthersListenSharded(t, c) })
		t.Run("OtherNames", func(t *testing.T) { wireOtherNames(t, c) })
		t.Run("NoRightToAsk", func(t *testing.T) { wireNoRightToAsk(t, c) })
		t.Run("ClientOfOneNode", func(t *testing.T) { wireClientOfOneNode(t, c) })
		t.Run("AnotherClientWaits", func(t *testing.T) { wireAnotherClientWaits(t, c) }) // the client listens for a while longer
		t.Run("NodeIsSilent", func(t *testing.T) { wireNodeIsSilent(t, c) })             // and the Cluster may notice
	})
}

var (
	shardedWire = core.Wire{Topology: "Cluster", Channels: "sharded", ServerSharded: true}
	classicWire = core.Wire{Topology: "Cluster", Channels: "classic", ServerSharded: true}
)

func wireModes(t *testing.T, c *locktest.Cluster) {
	wantWire(t, wireOf(t, c.Locks(t)), shardedWire)
	wantWire(t, wireOf(t, c.Locks(t, core.WithPubSub(core.PubSubSharded))), shardedWire)
	wantWire(t, wireOf(t, c.Locks(t, core.WithPubSub(core.PubSubClassic))), classicWire)
}

// Wire asks every node, because only the node of a subscriber knows a classic channel.
func wireOthersListenClassic(t *testing.T, c *locktest.Cluster) {
	for _, channel := range []string{
		"redisson_lock__channel:{k}", "redisson_lock__channel:a{t}b:0e6b1a52:57", "redisson_rwlock:{k}",
		"redisson_sc:{k}", "redisson_countdownlatch__channel__{k}",
	} {
		for _, node := range c.Masters {
			end := clusterListen(t, c, node.Client().Subscribe(t.Context(), channel, "another"))
			wantWire(t, wireOf(t, c.Locks(t)), shardedWire,
				`by SUBSCRIBE, on channels such as "`+channel+`" (1 in all), and this client sends by SPUBLISH, which is not heard there: give them Redisson 3.22`)
			wantWire(t, wireOf(t, c.Locks(t, core.WithPubSub(core.PubSubClassic))), classicWire)
			end()
		}
	}
	wantWire(t, wireOf(t, c.Locks(t)), shardedWire)
}

func wireOthersListenSharded(t *testing.T, c *locktest.Cluster) {
	for _, name := range []string{"one", "two", "three", "four", "five"} {
		channel := locktest.ChannelOf(name)
		end := clusterListen(t, c, c.Redis.SSubscribe(t.Context(), channel))
		wantWire(t, wireOf(t, c.Locks(t, core.WithPubSub(core.PubSubClassic))), classicWire,
			`by SSUBSCRIBE, on channels such as "`+channel+`" (1 in all), and this client sends by PUBLISH, which is not heard there: give them shardedSubscriptionMode OFF`)
		wantWire(t, wireOf(t, c.Locks(t, core.WithPubSub(core.PubSubSharded))), shardedWire)
		end()
	}
}

// Wire finds a waiter of this library in the wrong mode like a waiter of Redisson.
func wireAnotherClientWaits(t *testing.T, c *locktest.Cluster) {
	_, hold := locktest.MustAcquire(t, t.Context(), c.Locks(t).Lock("wanted"))
	other, locks := c.Locks(t, core.WithPubSub(core.PubSubClassic)), c.Locks(t)
	done := make(chan error, 1)
	go func() {
		done <- other.Lock("wanted").Do(context.Background(), func(context.Context) error { return nil }, core.WaitTime(time.Minute))
	}()
	locktest.Eventually(t, "a warning of the waiter", func() bool { return len(wireOf(t, locks).Warnings) == 1 })
	locktest.MustRelease(t, hold)
	locktest.Must(t, <-done)
}

// Clients with other names may listen in any mode.
func wireOtherNames(t *testing.T, c *locktest.Cluster) {
	end := clusterListen(t, c, c.Masters[1].Client().Subscribe(t.Context(), locktest.ChannelOf("shop:k"), locktest.ChannelOf("shop:{k}"), locktest.ChannelOf("bank:k"), "redisson_topic"))
	defer end()
	wantWire(t, wireOf(t, c.Locks(t, core.WithPrefix("tax:"))), core.Wire{
		Topology: "Cluster", Channels: "sharded", ServerSharded: true, Prefix: "tax:",
	})
	wantWire(t, wireOf(t, c.Locks(t, core.WithPrefix("shop:"))), core.Wire{
		Topology: "Cluster", Channels: "sharded", ServerSharded: true, Prefix: "shop:",
	}, "(2 in all)")
	wantWire(t, wireOf(t, c.Locks(t, core.WithNameMapper(func(name string) string { return name }))), core.Wire{
		Topology: "Cluster", Channels: "sharded", ServerSharded: true, Mapped: true,
	}, "(3 in all)")
}

func wireNoRightToAsk(t *testing.T, c *locktest.Cluster) {
	for _, m := range c.Masters {
		locktest.Must(t, m.Client().Do(t.Context(), "acl", "setuser", "blind", "on", ">secret", "~*", "&*", "+@all", "-pubsub").Err())
	}
	rdb := c.Client(func(o *redis.ClusterOptions) { o.Username, o.Password = "blind", "secret" })
	w := wireOf(t, locktest.NewClient(t, rdb, core.WithPubSub(core.PubSubSharded)))
	wantWire(t, w, shardedWire, "it is not known which other programs listen: ")
	if text := w.Warnings[0]; strings.Count(text, "NOPERM") != len(c.Masters) {
		t.Errorf("got %q, want the reason of each node", text)
	}
}

// If one node is silent, Wire reports what the other nodes answer.
func wireNodeIsSilent(t *testing.T, c *locktest.Cluster) {
	answering := c.Master("ready")
	silent := c.Masters[(slices.Index(c.Masters, answering)+1)%len(c.Masters)]
	_, err := answering.Client().Subscribe(t.Context(), "redisson_lock__channel:{silent}").Receive(t.Context())
	locktest.Must(t, err)
	locks := c.Locks(t, core.WithBackendTimeout(3*time.Second), core.WithPrefix("silent"))
	want := shardedWire
	want.Prefix = "silent"
	wantWire(t, wireOf(t, locks), want, "{silent}") // the slots are known
	silent.Stop()
	defer silent.Continue()
	wantWire(t, wireOf(t, locks), want, "{silent}", "it is not known which other programs listen: "+silent.Addr())
}

// A client of one node sends classic messages, and Redisson listens for sharded ones.
func wireClientOfOneNode(t *testing.T, c *locktest.Cluster) {
	node := c.Masters[0]
	for _, protocol := range []int{2, 3} {
		locks := locktest.NewClient(t, node.Client(func(o *redis.Options) { o.Protocol = protocol }))
		wantWire(t, wireOf(t, locks), core.Wire{Topology: "single server", Channels: "classic"}, "use redis.NewClusterClient")
	}
	end := clusterListen(t, c, node.Client().SSubscribe(t.Context(), locktest.ChannelOf(locktest.KeysOn(c.Cluster, node, 1)[0])))
	defer end()
	wantWire(t, wireOf(t, locktest.NewClient(t, node.Client())), core.Wire{Topology: "single server", Channels: "classic"},
		"use redis.NewClusterClient", "by SSUBSCRIBE")
}

// clusterListen waits until the subscriptions exist. The function that it returns ends them and waits until no node
// knows them.
func clusterListen(t *testing.T, c *locktest.Cluster, sub *redis.PubSub) (end func()) {
	t.Helper()
	_, err := sub.Receive(t.Context())
	locktest.Must(t, err)
	return func() {
		locktest.Must(t, sub.Close())
		locktest.Eventually(t, "the end of the subscriptions", func() bool {
			return !slices.ContainsFunc(c.Masters, func(m *redisserver.Server) bool {
				classic, err := m.Client().PubSubChannels(t.Context(), "redisson_*").Result()
				sharded, unsharded := m.Client().PubSubShardChannels(t.Context(), "redisson_*").Result()
				return err != nil || unsharded != nil || len(classic)+len(sharded) > 0
			})
		})
	}
}

func TestWire_SaysWhatRedissonNeeds(t *testing.T) {
	t.Parallel()
	mapped, old := shardedWire, classicWire
	mapped.Mapped, old.ServerSharded = true, false
	for want, w := range map[string]core.Wire{
		`This client uses database 2 of a single server, classic channels and the prefix "shop:". Redisson needs database 2, ` +
			`a configuration that is not useClusterServers and a nameMapper that puts "shop:" in front of every name.`: {
			Topology: "single server", Database: 2, Channels: "classic", Prefix: "shop:",
		},
		`This client uses database 0 of a Sentinel, classic channels and names as they are. Redisson needs database 0, ` +
			`a configuration that is not useClusterServers and no nameMapper.`: {
			Topology: "Sentinel", Channels: "classic",
		},
		`This client uses a Cluster, sharded channels and a name mapper. Redisson needs useClusterServers, ` +
			`version 3.22 or later with shardedSubscriptionMode AUTO (the default) or ON and a nameMapper that makes the same keys.`: mapped,
		`This client uses a Cluster, classic channels and names as they are. Redisson needs useClusterServers, ` +
			`shardedSubscriptionMode OFF (since version 3.29; before 3.22 without it) and no nameMapper.`: classicWire,
		`This client uses a Cluster, classic channels and names as they are. Redisson needs useClusterServers, ` +
			`shardedSubscriptionMode AUTO (the default) or OFF and no nameMapper.`: old,
		`This client uses a Cluster, sharded channels and names as they are. Redisson needs useClusterServers, ` +
			`shardedSubscriptionMode ON and no nameMapper.`: {Topology: "Cluster", Channels: "sharded"},
	} {
		locktest.WantSame(t, "got\n, want\n", w.String(), want)
	}
}

// around maps a name in a way that no prefix can express. Tests notice if the mapping is applied twice.
func around(name string) string { return "shop:{" + name + "}:v2" }
