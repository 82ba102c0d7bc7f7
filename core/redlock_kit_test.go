package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/redistest"
)

// island is one of several independent servers, and a proxy before it.
type island struct {
	*bed

	srv   *redistest.Server
	proxy *faultproxy.Proxy
	rdb   *redis.Client // through the proxy
}

// onIslands runs a test of time on n embedded servers.
func onIslands(t *testing.T, n int, body func(t *testing.T, servers []*island)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		endsWithinADay(t)
		body(t, islands(t, n))
	})
}

func islands(t *testing.T, n int) []*island {
	t.Helper()
	servers := make([]*island, n)
	for i := range servers {
		srv := redistest.New(t)
		s := &island{bed: &bed{t: t, Client: srv.Client(), connect: srv.Client}, srv: srv}
		s.proxy, s.rdb = faultproxy.Around(t, s.Client)
		servers[i] = s
	}
	return servers
}

// process makes one client for each server, as a process would have them.
func process(t *testing.T, servers []*island, opts ...core.Option) []*core.Client {
	t.Helper()
	clients := make([]*core.Client, len(servers))
	for i, s := range servers {
		clients[i] = locksOn(t, s.rdb, opts...)
	}
	return clients
}

// held is on how many servers the lock is there.
func held(servers []*island, key string) (n int) {
	for _, s := range servers {
		n += int(s.Exists(context.Background(), key).Val())
	}
	return n
}

func wantHeldOn(t *testing.T, servers []*island, key string, want int) {
	t.Helper()
	if got := held(servers, key); got != want {
		t.Errorf("%s is on %d servers, want %d", key, got, want)
	}
}

// wantNowhere wants no server to have the lock within a second.
func wantNowhere(t *testing.T, servers []*island, key string) {
	t.Helper()
	for range 100 {
		if held(servers, key) == 0 {
			return
		}
		pass(10 * time.Millisecond)
	}
	t.Errorf("%s is still on %d servers", key, held(servers, key))
}

// down takes servers away.
func down(servers ...*island) {
	for _, s := range servers {
		s.srv.Down()
	}
}
