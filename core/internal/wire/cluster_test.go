package wire_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/mempipe"
	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/interlock-go/interlock/core/redistest"
)

// Two nodes that redirect a key to each other agree sooner or later. So a redirection that follows another
// redirection is not a final answer.
func TestCall_Wait_RedirectionLoop(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"MOVED", "ASK"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cluster := newBoard(t, map[string]dialNode{
					"10.0.0.1:6379": answering("-" + verb + " 1 10.0.0.2:6379"),
					"10.0.0.2:6379": answering("-" + verb + " 1 10.0.0.1:6379"),
				})
				cluster.give("10.0.0.1:6379")
				b := storeOfCluster(t, cluster)
				defer b.Close()
				fate, err := acquiring(t.Context(), b)
				if !redis.HasErrorPrefix(err, verb) || fate != wire.Answered {
					t.Fatalf("got %v, fate %d", err, fate)
				}
				if !wire.Transient(err) || wire.Rejects(err) {
					t.Errorf("%v: transient %t, rejects %t", err, wire.Transient(err), wire.Rejects(err))
				}
			})
		})
	}
}

// If the address of a Cluster node is given for a single server, the redirections of the node are final
// answers.
func TestCall_Wait_RedirectedOutsideACluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := storeOf(t, embeddedClient(t, func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
				return answering("-MOVED 1 10.0.0.2:6379")(ctx)
			}
		}))
		defer b.Close()
		_, err := acquiring(t.Context(), b)
		if !redis.HasErrorPrefix(err, "MOVED") || wire.Transient(err) || !wire.Rejects(err) {
			t.Errorf("%v: transient %t, rejects %t", err, wire.Transient(err), wire.Rejects(err))
		}
	})
}

// blocking returns a node that accepts no connection. Its dialer ignores its context.
func blocking(released <-chan struct{}) dialNode {
	return func(context.Context) (net.Conn, error) {
		<-released
		return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
	}
}

// If a master leaves while clients connect to it, no call waits for it: neither the first call to the next
// master nor a call that has found the old master silent.
func TestCluster_MasterLeavesWhileConnecting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		cluster := newBoard(t, map[string]dialNode{
			"10.0.0.1:6379": blocking(released), "10.0.0.2:6379": embedded(t), "10.0.0.3:6379": embedded(t),
		})
		var silent atomic.Int64
		s, err := wire.New(cluster.client, wire.Config{
			Timeout: time.Second,
			Reports: wire.Reports{
				Silent:  func(string, error) { silent.Add(1) },
				Answers: func(string) { silent.Add(-1) },
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{Redis: s, t: t}
		cluster.give("10.0.0.1:6379")
		for range 3 {
			if fate, err := acquiring(t.Context(), b); err == nil {
				t.Fatalf("granted, fate %d", fate)
			}
		}
		if silent.Load() != 1 {
			t.Fatalf("%d nodes are silent, want none", silent.Load())
		}
		cluster.moveTo("10.0.0.2:6379")
		b.acquire("second", alice)
		time.Sleep(2 * time.Minute) // until go-redis closes the client of the first master
		if silent.Load() != 0 {
			t.Error("a node that has left is still silent")
		}
		cluster.moveTo("10.0.0.3:6379")
		start := time.Now()
		b.acquire("third", alice)
		if took := time.Since(start); took > 0 {
			t.Errorf("the first call to the new master took %s", took)
		}
		start = time.Now()
		s.Close()
		if took := time.Since(start); took > time.Second {
			t.Errorf("Close took %s", took)
		}
		close(released)
	})
}

// Close waits for all nodes at the same time.
func TestRedis_Close_AllNodesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		nodes := make(map[string]dialNode)
		for n := range 5 {
			nodes[fmt.Sprintf("10.0.0.%d:6379", n)] = blocking(released)
		}
		cluster := newBoard(t, nodes)
		b := storeOfCluster(t, cluster)
		for addr := range nodes {
			cluster.moveTo(addr)
			if fate, err := acquiring(t.Context(), b); err == nil {
				t.Fatalf("granted, fate %d", fate)
			}
		}
		start := time.Now()
		b.Close()
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %s", took)
		}
		close(released)
	})
}

// pings counts the pings that hooks see.
type pings struct {
	innerHook

	seen atomic.Int64
}

// innerHook changes nothing.
type innerHook struct{}

func (innerHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (innerHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (p *pings) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "ping" {
			p.seen.Add(1)
		}
		return next(ctx, cmd)
	}
}

// The hooks of the caller's client see the commands of locks, but no pings.
func TestCluster_HooksSeeNoPings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := newBoard(t, map[string]dialNode{"10.0.0.1:6379": embedded(t), "10.0.0.2:6379": embedded(t)})
		var hook pings
		cluster.client.OnNewNode(func(node *redis.Client) { node.AddHook(&hook) })
		b := storeOfCluster(t, cluster)
		defer b.Close()
		for _, addr := range []string{"10.0.0.1:6379", "10.0.0.2:6379"} {
			cluster.moveTo(addr)
			b.acquire(addr, alice)
		}
		time.Sleep(5 * time.Minute) // virtual time
		if n := hook.seen.Load(); n != 0 {
			t.Errorf("%d pings", n)
		}
	})
}

// For a slot without a master, go-redis chooses any known node, and that node answers. Calls succeed as soon
// as a node has the slot.
func TestCluster_SlotWithoutMaster(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"no node has it":   "-CLUSTERDOWN Hash slot not served",
		"another knows it": "-MOVED 1 10.0.0.2:6379",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cluster := newBoard(t, map[string]dialNode{"10.0.0.1:6379": answering(answer), "10.0.0.2:6379": embedded(t)})
				b := storeOfCluster(t, cluster)
				defer b.Close()
				cluster.slotsAre(redis.ClusterSlot{End: 0, Nodes: []redis.ClusterNode{{Addr: "10.0.0.1:6379"}}})
				cluster.learn()
				time.Sleep(2 * time.Minute) // until go-redis has forgotten the configured address
				for range 5 {
					_, err := acquiring(t.Context(), b)
					if !wire.Passes(err) && (err != nil || name == "no node has it") {
						t.Errorf("got %v", err)
					}
				}
				cluster.moveTo("10.0.0.2:6379")
				b.acquire("owned", alice)
			})
		})
	}
}

// A Cluster has no node for a key if its slots are not known or the client is closed.
func TestCluster_NoNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := newBoard(t, nil, func(o *redis.ClusterOptions) {
			o.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) { return nil, errors.New("unknown") }
		})
		b := storeOfCluster(t, cluster)
		defer b.Close()
		if fate, err := acquiring(t.Context(), b); fate != wire.NotSent || err == nil || !wire.Transient(err) {
			t.Errorf("slots not known: got %v, fate %d", err, fate)
		}
		_ = cluster.client.Close()
		if fate, err := acquiring(t.Context(), b); fate != wire.NotSent || err == nil {
			t.Errorf("closed: got %v, fate %d", err, fate)
		}
	})
}

// A redirected command is sent again with the values of the caller's context. So a hook that depends on these
// values handles the command as before.
func TestHooks_RedirectedCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := redistest.New(t).Client()
		cluster := newBoard(t, map[string]dialNode{
			"10.0.0.1:6379": answering("-MOVED 1 10.0.0.2:6379"),
			"10.0.0.2:6379": func(ctx context.Context) (net.Conn, error) { return rdb.Options().Dialer(ctx, "", "") },
		})
		cluster.client.AddHook(defaultTenant{})
		cluster.give("10.0.0.1:6379")
		b := storeOfCluster(t, cluster)
		defer b.Close()
		if _, err := acquiring(context.WithValue(t.Context(), tenantKey{}, true), b); err != nil {
			t.Fatal(err)
		}
		if keys := rdb.Keys(t.Context(), "*").Val(); len(keys) != 1 || keys[0] != key {
			t.Errorf("keys: got %q, want %q", keys, key)
		}
	})
}

// Neither a hook of the ClusterClient nor a hook of a node can change a key, alone or in a pipeline.
func TestHooks_ChangedKeyInACluster(t *testing.T) {
	t.Parallel()
	for name, hooked := range map[string]func(cluster *redis.ClusterClient){
		"of_the_cluster": func(cluster *redis.ClusterClient) { cluster.AddHook(defaultTenant{}) },
		"of_a_node": func(cluster *redis.ClusterClient) {
			cluster.OnNewNode(func(node *redis.Client) { node.AddHook(defaultTenant{}) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rdb := redistest.New(t).Client()
				cluster := newBoard(t, map[string]dialNode{
					"10.0.0.1:6379": func(ctx context.Context) (net.Conn, error) { return rdb.Options().Dialer(ctx, "", "") },
				})
				hooked(cluster.client)
				cluster.give("10.0.0.1:6379")
				b := storeOfCluster(t, cluster)
				defer b.Close()
				if fate, err := acquiring(t.Context(), b); fate != wire.NotSent || wire.Transient(err) {
					t.Errorf("acquire: got %v, fate %d, transient %t", err, fate, wire.Transient(err))
				}
				one, other := b.take(time.Now(), key, alice), b.take(time.Now(), "other", alice)
				b.Together(t.Context(), soon(), []*wire.Call{&one, &other})
				for _, call := range []*wire.Call{&one, &other} {
					if _, fate, err := call.Wait(t.Context(), soon()); fate != wire.NotSent || err == nil {
						t.Errorf("together: got %v, fate %d", err, fate)
					}
				}
				if keys := rdb.Keys(t.Context(), "*").Val(); len(keys) != 0 {
					t.Errorf("keys: got %q, want none", keys)
				}
			})
		})
	}
}

// defaultTenant puts a prefix before the keys of scripts, unless the context has a tenant.
type defaultTenant struct{}

type tenantKey struct{}

func (defaultTenant) change(ctx context.Context, cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		if args := cmd.Args(); len(args) > 3 && ctx.Value(tenantKey{}) == nil {
			args[3] = fmt.Sprint("tenant:", args[3])
		}
	}
}

func (defaultTenant) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h defaultTenant) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.change(ctx, cmd)
		return next(ctx, cmd)
	}
}

func (h defaultTenant) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.change(ctx, cmds...)
		return next(ctx, cmds)
	}
}

// Some nodes answer NOSCRIPT to every script. A call then ends and is not sent again.
func TestCall_Wait_ScriptNeverKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		b := storeOf(t, embeddedClient(t, func(o *redis.Options) {
			o.Dialer = func(context.Context, string, string) (net.Conn, error) {
				near, far := mempipe.New()
				go answerAll(far, func(verb string) string {
					switch verb {
					case "evalsha", "eval":
						if asked++; asked > 100 {
							return "" // more often than any client asks
						}
						return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
					default:
						return "+OK\r\n"
					}
				})
				return near, nil
			}
		}))
		defer b.Close()
		_, err := acquiring(t.Context(), b)
		if !redis.HasErrorPrefix(err, "NOSCRIPT") || asked != 2 {
			t.Errorf("got %v, asked %d times", err, asked)
		}
	})
}

// Calls are redirected to a node while the client discovers it, and while the node leaves and is closed. All
// of them succeed.
func TestCluster_RedirectDuringDiscovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := newBoard(t, map[string]dialNode{
			"10.0.0.1:6379": answering("-MOVED 1 10.0.0.2:6379"),
			"10.0.0.2:6379": answering(":1"),
		})
		cluster.give("10.0.0.1:6379")
		b := storeOfCluster(t, cluster)
		defer b.Close()
		ctx, cancel := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				for ctx.Err() == nil {
					if _, err := acquiring(t.Context(), b); err != nil {
						t.Errorf("got %v", err)
						return
					}
					time.Sleep(10 * time.Second) // virtual time, in which the client does not look for nodes
				}
			})
		}
		for range 30 {
			cluster.moveTo("10.0.0.1:6379")
			time.Sleep(9 * time.Second) // as above
			cluster.moveTo("10.0.0.2:6379")
			time.Sleep(2 * time.Minute) // until go-redis has closed the client of the other node
		}
		cancel()
		callers.Wait()
	})
}

// Calls for a moving key use the existing connection to its next node, even after a pause without commands.
// The pause does not count as silence of the node.
func TestCluster_MovingKeyAfterAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := 0
		far := faultproxy.NewLatency(t, 8*time.Millisecond).Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
			made++
			return answering(":1")(ctx)
		})
		cluster := newBoard(t, map[string]dialNode{
			"10.0.0.1:6379": answering("-ASK 1 10.0.0.2:6379"),
			"10.0.0.2:6379": func(ctx context.Context) (net.Conn, error) { return far(ctx, "", "") },
		})
		cluster.give("10.0.0.1:6379")
		b := storeOfCluster(t, cluster)
		defer b.Close()
		for range 20 {
			if _, err := acquiring(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // the pause, in virtual time
		}
		if made != 1 {
			t.Errorf("%d connections", made)
		}
	})
}

// While the nodes refuse the password, callers that have not reached the Cluster yet share few connections. When the
// nodes accept it, the Cluster is reached soon.
func TestRedis_Reach_BacksOffWhenRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		var accepts atomic.Bool
		cluster := newBoard(t, map[string]dialNode{"10.0.0.9:6379": func(context.Context) (net.Conn, error) {
			made.Add(1)
			near, far := mempipe.New()
			go answerAll(far, func(verb string) string {
				switch {
				case !accepts.Load() && (verb == "auth" || verb == "hello"):
					return "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
				case verb == "hello":
					return "-ERR unknown command\r\n"
				default:
					return "+OK\r\n"
				}
			})
			return near, nil
		}}, func(o *redis.ClusterOptions) { o.Password = "old" })
		cluster.give("10.0.0.9:6379")
		b := storeOfCluster(t, cluster)
		defer b.Close()
		reach := func() error {
			return b.Reach(t.Context(), time.Now().Add(time.Second), func(ctx context.Context, probe *redis.ClusterClient) error {
				return probe.Ping(ctx).Err()
			})
		}
		for range 6000 {
			if err := reach(); !redis.HasErrorPrefix(err, "WRONGPASS") {
				t.Fatalf("got %v", err)
			}
			time.Sleep(10 * time.Millisecond) // the pause between two calls, in virtual time
		}
		if n := made.Load(); n > 4*60 {
			t.Errorf("%d connections in a minute, want at most 240", n)
		}
		accepts.Store(true)
		time.Sleep(time.Second) // virtual time
		if err := reach(); err != nil {
			t.Errorf("after the refusals: %v", err)
		}
	})
}
