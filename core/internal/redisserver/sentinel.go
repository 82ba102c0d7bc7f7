package redisserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// MasterName is the name under which a [Sentinel] watches its master.
const MasterName = "interlock"

// Sentinel is a master with one replica and one Redis Sentinel that watches the master. The Redis Sentinel starts a failover
// by itself (quorum 1) when the master has been silent for 300 ms.
type Sentinel struct {
	Master   *Server // the master at the start
	Replica  *Server // the replica at the start
	Sentinel *Server

	t testing.TB
}

// StartSentinel starts the three processes. It returns when the replica is in sync and the Redis Sentinel knows it.
func StartSentinel(tb testing.TB) *Sentinel {
	tb.Helper()
	s := &Sentinel{t: tb, Master: start(tb, masterArgs)}
	s.Replica = start(tb, replicaOf(s.Master))
	s.awaitSync()
	s.Sentinel = start(tb, sentinelOf(tb, s.Master, 300*time.Millisecond))
	s.awaitDiscovery()
	return s
}

// masterArgs returns the arguments for a master that synchronizes a replica at once. By default, a master waits five seconds
// for more replicas.
func masterArgs(ctx context.Context, port int) ([]string, error) {
	args, err := plainArgs(ctx, port)
	return append(args, "--repl-diskless-sync-delay", "0"), err
}

func replicaOf(master *Server) commandLine {
	return func(ctx context.Context, port int) ([]string, error) {
		args, err := masterArgs(ctx, port)
		host, master, _ := net.SplitHostPort(master.Addr())
		return append(args, "--replicaof", host, master), err
	}
}

// sentinelOf returns the arguments for a Redis Sentinel that watches master. The Redis Sentinel considers master dead
// after it was silent for down. sentinelOf writes the configuration file, which a Redis Sentinel requires and rewrites.
func sentinelOf(tb testing.TB, master *Server, down time.Duration) commandLine {
	return func(_ context.Context, port int) ([]string, error) {
		host, master, _ := net.SplitHostPort(master.Addr())
		conf := strings.Join([]string{
			"port " + strconv.Itoa(port),
			"bind 127.0.0.1",
			fmt.Sprintf("sentinel monitor %s %s %s 1", MasterName, host, master),
			fmt.Sprintf("sentinel down-after-milliseconds %s %d", MasterName, down.Milliseconds()),
			fmt.Sprintf("sentinel failover-timeout %s 3000", MasterName),
			fmt.Sprintf("sentinel parallel-syncs %s 5", MasterName),
			"",
		}, "\n")
		path := filepath.Join(memoryDir(tb), "sentinel.conf")
		return []string{path, "--sentinel"}, os.WriteFile(path, []byte(conf), 0o600)
	}
}

// Client returns a new failover client. opts change the defaults of go-redis. When the test ends, the client is closed before
// the servers are killed.
func (s *Sentinel) Client(opts ...func(*redis.FailoverOptions)) *redis.Client {
	s.t.Helper()
	return failoverClient(s.t, s.Sentinel, opts)
}

func failoverClient(tb testing.TB, sentinel *Server, opts []func(*redis.FailoverOptions)) *redis.Client {
	tb.Helper()
	o := &redis.FailoverOptions{MasterName: MasterName, SentinelAddrs: []string{sentinel.Addr()}}
	for _, opt := range opts {
		opt(o)
	}
	rdb := redis.NewFailoverClient(o)
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// DownAfter sets the time after which the Redis Sentinel considers a silent master dead.
func (s *Sentinel) DownAfter(d time.Duration) {
	s.t.Helper()
	s.Sentinel.await("sentinel", func(ctx context.Context, rdb *redis.Client) error {
		return rdb.Do(ctx, "sentinel", "set", MasterName, "down-after-milliseconds", d.Milliseconds()).Err()
	})
}

// AwaitFailover returns when the Redis Sentinel names s.Replica as the master and s.Replica accepts writes. Kill or stop
// s.Master before.
func (s *Sentinel) AwaitFailover() {
	s.t.Helper()
	s.Sentinel.await("sentinel", func(ctx context.Context, rdb *redis.Client) error {
		now, err := rdb.Do(ctx, "sentinel", "get-master-addr-by-name", MasterName).StringSlice()
		if err != nil {
			return err
		}
		if addr := strings.Join(now, ":"); addr != s.Replica.Addr() {
			return fmt.Errorf("the master is still %s", addr)
		}
		return nil
	})
	s.Replica.await("replica", infoHas("replication", "role:master"))
}

func (s *Sentinel) awaitSync() {
	s.t.Helper()
	s.Replica.await("replica", infoHas("replication", "master_link_status:up"))
	s.Master.await("master", infoHas("replication", "state=online"))
}

func (s *Sentinel) awaitDiscovery() {
	s.t.Helper()
	s.Sentinel.await("sentinel", infoHas("sentinel", "status=ok,address="+s.Master.Addr()+",slaves=1"))
}

func infoHas(section, text string) func(context.Context, *redis.Client) error {
	return func(ctx context.Context, rdb *redis.Client) error {
		info, err := rdb.Info(ctx, section).Result()
		if err != nil {
			return err
		}
		if !strings.Contains(info, text) {
			return errors.New("INFO " + section + " lacks " + text)
		}
		return nil
	}
}
