package core_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// namesOn are the names of the connections to a server.
func namesOn(t *testing.T, rdb *redis.Client) (names []string) {
	t.Helper()
	list, err := rdb.ClientList(t.Context()).Result()
	locktest.Must(t, err)
	for field := range strings.FieldsSeq(list) {
		if name, is := strings.CutPrefix(field, "name="); is && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// The connection of a client has its id at the end of its name, behind the name that the caller has given it.
func TestWithNamedConnections_Names(t *testing.T) {
	t.Parallel()
	for own, want := range map[string]string{"": "interlock:", "shop": "shop:"} {
		r := locktest.NewProxied(t)
		locks := r.BehindWith(func(o *redis.Options) { o.ClientName = own }, core.WithNamedConnections())
		if names := namesOn(t, r.Client); !contains(names, want+locks.ID()) {
			t.Errorf("ClientName %q: got %q, want %s", own, names, want+locks.ID())
		}
		r.BehindWith(func(o *redis.Options) { o.ClientName = own })
		for _, name := range namesOn(t, r.Client) {
			if name != own && name != want+locks.ID() {
				t.Errorf("ClientName %q: got %q of a client without the option", own, name)
			}
		}
	}
}

func contains(list []string, want string) bool {
	return strings.Contains("\n"+strings.Join(list, "\n")+"\n", "\n"+want+"\n")
}

// A server without the right, and a proxy that does not know the command, have a connection without a name: it works
// at the first call.
func TestWithNamedConnections_Refused(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(r *locktest.Redis){
		"no right": func(r *locktest.Redis) {
			locktest.Must(t, r.Client.Do(t.Context(), "acl", "setuser", "default", "-client|setname").Err())
		},
		"unknown command": func(r *locktest.Redis) {
			r.Proxy.AnswerError(faultproxy.Command("CLIENT"), "ERR unknown command 'client'")
		},
		"the proxy hangs up": func(r *locktest.Redis) {
			r.Proxy.DropRequest(faultproxy.Containing("setname"))
		},
		"the proxy is silent": func(r *locktest.Redis) {
			r.Proxy.HoldRequest(faultproxy.Containing("setname"))
		},
	} {
		locktest.Parallel(t, name, func(t *testing.T) {
			r := locktest.NewProxied(t)
			refuse(r)
			rdb := redis.NewClient(&redis.Options{Addr: r.Proxy.Addr()})
			t.Cleanup(func() { _ = rdb.Close() })
			locks := locktest.NewClient(t, rdb, core.WithNamedConnections(), core.WithBackendTimeout(15*time.Second))
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.WaitTime(time.Minute))
			locktest.MustRelease(t, hold)
			if names := namesOn(t, r.Client); contains(names, "interlock:"+locks.ID()) {
				t.Errorf("got %q, want no name", names)
			}
		})
	}
}

// A server that is out of order when a connection is named, and after that, names the next connections.
func TestWithNamedConnections_ServerWasDown(t *testing.T) {
	t.Parallel()
	r := locktest.NewProxied(t)
	lost := r.Proxy.DropRequest(faultproxy.Once(faultproxy.Containing("setname")))
	var failed atomic.Int32
	rdb := redis.NewClient(&redis.Options{Addr: r.Proxy.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if lost.Hits() > 0 && failed.Add(1) <= 3 { // on a busy machine there may be two attempts beside the first
			return nil, syscall.ECONNREFUSED
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}})
	t.Cleanup(func() { _ = rdb.Close() })
	locks := locktest.NewClient(t, rdb, core.WithNamedConnections())
	_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.WaitTime(time.Minute))
	if names := namesOn(t, r.Client); failed.Load() == 0 || !contains(names, "interlock:"+locks.ID()) {
		t.Errorf("got %q, want the name of the client", names)
	}
	locktest.MustRelease(t, hold)
}

// In a Cluster every node to which a client has a connection knows it.
func TestWithNamedConnections_InACluster(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	locks := locktest.NewClient(t, cluster.Client(), core.WithNamedConnections())
	for _, key := range []string{"a", "b", "c"} { // of three masters
		locktest.Must(t, locks.Lock(key).Do(t.Context(), func(context.Context) error { return nil }))
		if names := namesOn(t, cluster.Master(key).Client()); !contains(names, "interlock:"+locks.ID()) {
			t.Errorf("%s: got %q", key, names)
		}
	}
}
