package redisserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Replicated is a master with replicas.
type Replicated struct {
	Master   *Server   // the last master that this kit found
	Replicas []*Server // the present replicas
	Sentinel *Server   // nil if no Sentinel watches

	t testing.TB
}

// StartReplicated starts a master with n replicas and returns when they are in sync.
func StartReplicated(tb testing.TB, n int) *Replicated {
	tb.Helper()
	r := &Replicated{t: tb, Master: start(tb, masterArgs)}
	for range n {
		r.Replicas = append(r.Replicas, start(tb, replicaOf(r.Master)))
	}
	r.awaitSync()
	return r
}

// StartWatched does the same as [StartReplicated] and starts one Sentinel. The Sentinel needs no consent for
// a failover and considers a master dead after 500 ms.
func StartWatched(tb testing.TB, n int) *Replicated {
	tb.Helper()
	r := StartReplicated(tb, n)
	r.Sentinel = start(tb, sentinelOf(tb, r.Master, 500*time.Millisecond))
	r.awaitDiscovery()
	return r
}

// Client returns a client of the master. If there is a Sentinel, the client connects to the server that the
// Sentinel names.
func (r *Replicated) Client(opts ...func(*redis.FailoverOptions)) *redis.Client {
	r.t.Helper()
	return failoverClient(r.t, r.Sentinel, opts)
}

// Promoted returns when the Sentinel promoted another server to master. Kill the Master before.
func (r *Replicated) Promoted() {
	r.t.Helper()
	before := r.Master
	r.Sentinel.until("sentinel", func(ctx context.Context, rdb *redis.Client) error {
		if err := r.resolve(ctx, rdb); err != nil {
			return err
		}
		if r.Master == before {
			return errors.New("the master is still " + before.Addr())
		}
		return nil
	})
	r.Master.until("promoted", infoHas("replication", "role:master"))
}

// resolve asks the Sentinel for the master.
func (r *Replicated) resolve(ctx context.Context, sentinel *redis.Client) error {
	named, err := sentinel.Do(ctx, "sentinel", "get-master-addr-by-name", MasterName).StringSlice()
	if err != nil {
		return err
	}
	for i, s := range r.Replicas {
		if s.Addr() == strings.Join(named, ":") {
			r.Master, r.Replicas[i] = s, r.Master
		}
	}
	return nil
}

// Rejoined starts the former master as a replica and returns when all are in sync. On a busy machine
// the Sentinel may consider a live master dead in that time and promote another one.
func (r *Replicated) Rejoined(old *Server) {
	r.t.Helper()
	old.args = replicaOf(r.Master)
	old.Restart()
	r.Sentinel.until("sentinel", func(ctx context.Context, rdb *redis.Client) error {
		if err := r.resolve(ctx, rdb); err != nil {
			return err
		}
		probe := redis.NewClient(probeOptions(r.Master.Addr()))
		defer func() { _ = probe.Close() }()
		return r.streams(ctx, probe)
	})
	r.awaitDiscovery()
}

// awaitSync waits until every replica replicates the master.
func (r *Replicated) awaitSync() {
	r.t.Helper()
	for _, s := range r.Replicas {
		_, port, _ := net.SplitHostPort(r.Master.Addr())
		s.until("replica", infoHas("replication", "master_port:"+port))
		s.until("replica", infoHas("replication", "master_link_status:up"))
	}
	r.awaitStream()
}

// awaitStream waits until every replica gets the writes of the master. A replica that counts as
// online may wait for them for a second.
func (r *Replicated) awaitStream() {
	r.t.Helper()
	r.Master.until("replicas", r.streams)
}

// streams writes to the master and requires that all replicas have the write.
func (r *Replicated) streams(ctx context.Context, master *redis.Client) error {
	conn := master.Conn()
	defer func() { _ = conn.Close() }()
	if err := conn.Set(ctx, "redisserver", "in sync", 0).Err(); err != nil {
		return err
	}
	if err := conn.Del(ctx, "redisserver").Err(); err != nil {
		return err
	}
	n, err := conn.Wait(ctx, len(r.Replicas), 500*time.Millisecond).Result()
	if err == nil && int(n) != len(r.Replicas) {
		err = fmt.Errorf("%d replicas have what the master has written", n)
	}
	return err
}

func (r *Replicated) awaitDiscovery() {
	r.t.Helper()
	r.Sentinel.until("sentinel", infoHas("sentinel",
		fmt.Sprintf("status=ok,address=%s,slaves=%d", r.Master.Addr(), len(r.Replicas))))
}

// Add starts one more replica and returns when it is in sync.
func (r *Replicated) Add() *Server {
	r.t.Helper()
	s := start(r.t, replicaOf(r.Master))
	r.Replicas = append(r.Replicas, s)
	r.awaitSync()
	return s
}
