package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/redistest"
)

// A server that refuses a command is not reported as unavailable. The message says what the server refuses
// and what to write.
func TestTarget_Refused(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	rdb, ctx := srv.Client(), t.Context()
	cluster, sentinel, replicated := redisserver.StartCluster(t), redisserver.StartSentinel(t), redisserver.StartReplicated(t, 1)
	for _, args := range [][]any{
		{"acl", "setuser", "looks", "on", ">x", "~shop:*", "-@all", "+ping", "+eval", "+evalsha"},
		{"acl", "setuser", "nothing", "on", ">x", "-@all"},
		{"hset", "k", ann, 1},
	} {
		if err := rdb.Do(ctx, args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := replicated.Master.Client().HSet(ctx, "k", ann, 1).Err(); err != nil {
		t.Fatal(err)
	}
	locked := redisserver.Start(t)
	if err := locked.Client().ConfigSet(ctx, "requirepass", "secret").Err(); err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(site.Close)
	secret := httptest.NewUnstartedServer(http.NotFoundHandler())
	secret.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secret.StartTLS()
	t.Cleanup(secret.Close)
	at := func(s interface{ Addr() string }, user string) string { return "redis://" + user + s.Addr() }
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no password":          {[]string{"who", "k", "--redis", at(locked, "")}, "wants a password: write redis://user:password@"},
		"wrong password":       {[]string{"ls", "--redis", at(locked, ":wrong@")}, "refuses the user or the password of the URL"},
		"wrong user":           {[]string{"who", "k", "--redis", at(srv, "stranger:x@")}, "refuses the user or the password of the URL"},
		"no rights":            {[]string{"who", "k", "--redis", at(srv, "nothing:x@")}, "may not do that"},
		"rights of a key":      {[]string{"who", "k", "--redis", at(srv, "looks:x@")}, "may not do that"},
		"rights of a script":   {[]string{"who", "shop:k", "--redis", at(srv, "looks:x@")}, "ACL LOG"},
		"rights of a list":     {[]string{"ls", "shop:", "--redis", at(srv, "looks:x@")}, "under Rights"},
		"database":             {[]string{"who", "k", "--redis", at(srv, "") + "/999"}, "such as /0"},
		"replica":              {[]string{"release", "k", "--yes", "--redis", at(replicated.Replicas[0], "")}, "the URL of its master"},
		"node of a Cluster":    {[]string{"ls", "--redis", "redis://" + cluster.Addrs()[0]}, "write --cluster"},
		"database of Cluster":  {[]string{"ls", "--cluster", "--redis", "redis://" + cluster.Addrs()[0] + "/2"}, "such as /0"},
		"no Cluster":           {[]string{"ls", "--cluster", "--redis", at(srv, "")}, "leave --cluster out"},
		"Sentinel":             {[]string{"wire", "--redis", at(sentinel.Sentinel, "")}, "?master_name="},
		"Sentinel as Cluster":  {[]string{"ls", "--cluster", "--redis", at(sentinel.Sentinel, "")}, "hides commands"},
		"no such master":       {[]string{"ls", "--redis", at(sentinel.Sentinel, "") + "/0?master_name=none"}, "do not know the master"},
		"no Sentinel":          {[]string{"ls", "--redis", at(srv, "") + "/0?master_name=main"}, "not a Sentinel"},
		"web server":           {[]string{"ls", "--redis", "redis://" + site.Listener.Addr().String()}, "not a Redis: it answers \"HTTP/1.1 400"},
		"TLS, and none wanted": {[]string{"ls", "--redis", "redis://" + secret.Listener.Addr().String()}, "write rediss://"},
		"no TLS, and wanted":   {[]string{"ls", "--redis", "rediss://" + site.Listener.Addr().String()}, "write redis://"},
		"certificate":          {[]string{"ls", "--redis", "rediss://" + secret.Listener.Addr().String()}, "SSL_CERT_FILE"},
	} {
		got := interlock(t, "", tt.args...)
		if got.code != exitCannot || !strings.Contains(got.stderr, tt.want) {
			t.Errorf("%s: got %s, want %q", name, got, tt.want)
		}
		if strings.Contains(got.stderr, "unavailable") && !strings.Contains(name, "TLS") {
			t.Errorf("%s: got %s, but the server is available", name, got)
		}
	}
}

// A server that does not answer is unavailable.
func TestTarget_Unavailable(t *testing.T) {
	t.Parallel()
	got := interlock(t, "", "ls", "--redis", "redis://127.0.0.1:1")
	if got.code != exitCannot || !strings.Contains(got.stderr, "redis unavailable") {
		t.Errorf("got %s", got)
	}
}

// Each command finds a lock on any node of a Cluster, and behind a Sentinel.
func TestTarget_Topologies(t *testing.T) {
	t.Parallel()
	cluster, sentinel := redisserver.StartCluster(t), redisserver.StartSentinel(t)
	var name string
	sentinel.Client(func(o *redis.FailoverOptions) { name = o.MasterName })
	for _, tt := range []struct {
		rdb  redis.UniversalClient
		args []string
	}{
		{cluster.Client(), []string{"--cluster", "--redis", "redis://" + cluster.Addrs()[0] + "?addr=" + cluster.Addrs()[1]}},
		{sentinel.Client(), []string{"--redis", "redis://" + sentinel.Sentinel.Addr() + "/0?master_name=" + name}},
	} {
		const many = 50
		for i := range many {
			if err := tt.rdb.HSet(t.Context(), fmt.Sprint("shop:", i), ann, 1).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if got := interlock(t, "", append([]string{"ls", "--json"}, tt.args...)...); strings.Count(got.stdout, "\n") != many {
			t.Errorf("%v: ls: got %s, want %d locks", tt.args, got, many)
		}
		if got := interlock(t, "", append([]string{"who", "shop:7"}, tt.args...)...); got.code != exitFine || !strings.Contains(got.stdout, ann) {
			t.Errorf("%v: who: got %s", tt.args, got)
		}
		if got := interlock(t, "", append([]string{"release", "shop:7", "--yes"}, tt.args...)...); got.code != exitFine || tt.rdb.Exists(t.Context(), "shop:7").Val() != 0 {
			t.Errorf("%v: release: got %s", tt.args, got)
		}
	}
	got := interlock(t, "", "ls", "--redis", "redis://"+cluster.Addrs()[0])
	if got.code != exitCannot || !strings.Contains(got.stderr, "write --cluster") {
		t.Errorf("one node of a Cluster: got %s", got)
	}
}

// A command uses the database at the end of the URL of a Cluster of Valkey 9.
func TestTarget_ClusterDatabase(t *testing.T) {
	t.Parallel()
	cluster := redisserver.NeedValkey(t).StartClusterWith(t, 1, "--cluster-databases", "4")
	url := "redis://" + cluster.Addrs()[0]
	inTwo := cluster.Client(func(o *redis.ClusterOptions) {
		o.OnConnect = func(ctx context.Context, cn *redis.Conn) error { return cn.Select(ctx, 2).Err() }
	})
	if err := inTwo.HSet(t.Context(), "shop:7", ann, 1).Err(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path, want string
		locks      int
	}{{"/2", "", 1}, {"", "", 0}, {"/", "", 0}, {"/0", "", 0}, {"/9", "number of an existing database", 0}, {"/two", "does not understand the URL", 0}} {
		got := interlock(t, "", "ls", "--json", "--cluster", "--redis", url+tt.path)
		if strings.Count(got.stdout, ann) != tt.locks || !strings.Contains(got.stderr, tt.want) {
			t.Errorf("%q: got %s, want %d locks and %q", tt.path, got, tt.locks, tt.want)
		}
	}
	if got := interlock(t, "", "wire", "--cluster", "--redis", url+"/2"); !strings.Contains(got.stdout, "database 2 of a Cluster") {
		t.Errorf("wire: got %s", got)
	}
}

// The URL may come from the environment. This test runs alone, because it changes the environment.
func TestTarget_Environment(t *testing.T) {
	srv, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	srv.Take("k", time.Hour)
	t.Setenv(redisVariable, srv.URL())
	if got := interlock(t, "", "who", "k"); got.code != exitFine {
		t.Errorf("got %s", got)
	}
}
