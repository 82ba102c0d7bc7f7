package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// If a process has named its connections, who shows its address: on a single server, on every node of a
// Cluster, and behind a Sentinel.
func TestWho_Addresses(t *testing.T) {
	t.Parallel()
	single, cluster, sentinel := redisserver.Start(t), redisserver.StartCluster(t), redisserver.StartSentinel(t)
	var name string
	behind := sentinel.Client(func(o *redis.FailoverOptions) { name = o.MasterName })
	for _, tt := range []struct {
		rdb  redis.UniversalClient
		args []string
	}{
		{single.Client(), []string{"--redis", "redis://" + single.Addr()}},
		{cluster.Client(), []string{"--cluster", "--redis", "redis://" + cluster.Addrs()[0]}},
		{behind, []string{"--redis", "redis://" + sentinel.Sentinel.Addr() + "/0?master_name=" + name}},
	} {
		named, err := core.New(tt.rdb, core.WithNamedConnections())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = named.Close(t.Context()) })
		for i := range 3 { // keys on several nodes of the Cluster
			key := fmt.Sprint("k", i)
			_, hold, err := named.Lock(key).Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := interlock(t, "", append([]string{"who", key}, tt.args...)...)
			if got.code != exitFine || !strings.Contains(got.stdout, "ADDRESS") || !strings.Contains(got.stdout, "127.0.0.1:") {
				t.Errorf("%v: got %s, want the address", tt.args, got)
			}
			var lock jsonLock
			if err := json.Unmarshal([]byte(interlock(t, "", append([]string{"who", key, "--json"}, tt.args...)...).stdout), &lock); err != nil {
				t.Fatal(err)
			}
			if len(lock.Holders) != 1 || len(lock.Holders[0].Addresses) != 1 || !strings.HasPrefix(lock.Holders[0].Addresses[0], "127.0.0.1:") {
				t.Errorf("%v: got %+v, want one address", tt.args, lock.Holders)
			}
			if err := hold.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// Without the right to CLIENT LIST, who shows no addresses, and a message names the missing right.
func TestWho_AddressesRefused(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	if err := srv.Client().HSet(t.Context(), "k", ann, 1).Err(); err != nil {
		t.Fatal(err)
	}
	if err := srv.Client().Do(t.Context(), "acl", "setuser", "looks", "on", ">x", "~*", "+@all", "-client|list").Err(); err != nil {
		t.Fatal(err)
	}
	got := interlock(t, "", "who", "k", "--redis", "redis://looks:x@"+srv.Addr())
	if got.code != exitFine || !strings.Contains(got.stdout, ann) || !strings.Contains(got.stderr, "+client|list") {
		t.Errorf("got %s", got)
	}
}
