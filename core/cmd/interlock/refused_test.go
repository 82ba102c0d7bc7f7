package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// A server that is there and refuses is not called unavailable: the command says what is refused, and what to write.
func TestRun_Refused(t *testing.T) {
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
		"wrong user":           {[]string{"who", "k", "--redis", at(srv, "nobody:x@")}, "refuses the user or the password of the URL"},
		"no rights":            {[]string{"who", "k", "--redis", at(srv, "nothing:x@")}, "may not do that"},
		"rights of a key":      {[]string{"who", "k", "--redis", at(srv, "looks:x@")}, "may not do that"},
		"rights of a script":   {[]string{"who", "shop:k", "--redis", at(srv, "looks:x@")}, "ACL LOG"},
		"rights of a list":     {[]string{"ls", "shop:", "--redis", at(srv, "looks:x@")}, "under Rights"},
		"database":             {[]string{"who", "k", "--redis", at(srv, "") + "/999"}, "such as /0"},
		"replica":              {[]string{"release", "k", "--yes", "--redis", at(replicated.Replicas[0], "")}, "the URL of its master"},
		"node of a Cluster":    {[]string{"ls", "--redis", "redis://" + cluster.Addrs()[0]}, "write --cluster"},
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
			t.Errorf("%s: got %s, but the server is there", name, got)
		}
	}
}

// What does not answer is unavailable.
func TestRun_NotRefused(t *testing.T) {
	t.Parallel()
	got := interlock(t, "", "ls", "--redis", "redis://127.0.0.1:1")
	if got.code != exitCannot || !strings.Contains(got.stderr, "redis unavailable") {
		t.Errorf("got %s", got)
	}
}
