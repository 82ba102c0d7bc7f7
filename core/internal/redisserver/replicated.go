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
	Master   *Server   // the last known master
	Replicas []*Server // the other servers
	Sentinel *Server   // the Redis Sentinel that watches Master; nil if there is none

	t testing.TB
}

// StartReplicated starts a master with n replicas. It returns when the replicas are in sync.
func StartReplicated(tb testing.TB, n int) *Replicated {
	tb.Helper()
	r := &Replicated{t: tb, Master: start(tb, masterArgs)}
	for range n {
		r.Replicas = append(r.Replicas, start(tb, replicaOf(r.Master)))
	}
	r.awaitSync()
	return r
}

// StartWatched is like [StartReplicated], but also starts one Redis Sentinel. The Redis Sentinel starts a failover by
// itself (quorum 1) when the master has been silent for 500 ms.
func StartWatched(tb testing.TB, n int) *Replicated {
	tb.Helper()
	r := StartReplicated(tb, n)
	r.Sentinel = start(tb, sentinelOf(tb, r.Master, 500*time.Millisecond))
	r.awaitDiscovery()
	return r
}

// Client returns a new client of the master that the Redis Sentinel names. It needs a server of [StartWatched].
func (r *Replicated) Client(opts ...func(*redis.FailoverOptions)) *redis.Client {
	r.t.Helper()
	return failoverClient(r.t, r.Sentinel, opts)
}

// AwaitPromotion returns when the Redis Sentinel has promoted a replica to master. It updates r. Kill r.Master before.
func (r *Replicated) AwaitPromotion() {
	r.t.Helper()
	before := r.Master
	r.Sentinel.await("sentinel", func(ctx context.Context, rdb *redis.Client) error {
		if err := r.resolve(ctx, rdb); err != nil {
			return err
		}
		if r.Master == before {
			return errors.New("the master is still " + before.Addr())
		}
		return nil
	})
	r.Master.await("promotion", infoHas("replication", "role:master"))
}

// resolve asks the Redis Sentinel for the master and updates r.
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

// Rejoin starts the former master old as a replica. It returns when all replicas are in sync. On a busy machine, the Redis
// Sentinel may promote another server in that time; Rejoin then updates r.
func (r *Replicated) Rejoin(old *Server) {
	r.t.Helper()
	old.args = replicaOf(r.Master)
	old.Restart()
	r.Sentinel.await("sentinel", func(ctx context.Context, rdb *redis.Client) error {
		if err := r.resolve(ctx, rdb); err != nil {
			return err
		}
		probe := redis.NewClient(probeOptions(r.Master.Addr()))
		defer func() { _ = probe.Close() }()
		return r.checkStream(ctx, probe)
	})
	r.awaitDiscovery()
}

// awaitSync returns when every replica replicates the master.
func (r *Replicated) awaitSync() {
	r.t.Helper()
	for _, s := range r.Replicas {
		_, port, _ := net.SplitHostPort(r.Master.Addr())
		s.await("replica", infoHas("replication", "master_port:"+port))
		s.await("replica", infoHas("replication", "master_link_status:up"))
	}
	r.awaitStream()
}

// awaitStream returns when every replica gets the writes of the master. A replica that the master reports as online may get
// them only a second later.
func (r *Replicated) awaitStream() {
	r.t.Helper()
	r.Master.await("replicas", r.checkStream)
}

// checkStream writes to the master and returns an error unless all replicas get the write.
func (r *Replicated) checkStream(ctx context.Context, master *redis.Client) error {
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
		err = fmt.Errorf("%d replicas have the write", n)
	}
	return err
}

func (r *Replicated) awaitDiscovery() {
	r.t.Helper()
	r.Sentinel.await("sentinel", infoHas("sentinel",
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
