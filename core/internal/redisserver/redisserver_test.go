package redisserver_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// TestMain discards the log lines of go-redis about the faults that tests cause.
func TestMain(m *testing.M) {
	logging.Disable()
	goleak.VerifyTestMain(m)
}

func TestServer_StopContinue(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	rdb := srv.Client(func(o *redis.Options) {
		o.ReadTimeout, o.MaxRetries = 50*time.Millisecond, -1
	})

	if err := rdb.Ping(t.Context()).Err(); err != nil { // connects, which needs a running server
		t.Fatal(err)
	}

	srv.Stop()
	err := rdb.Incr(t.Context(), "n").Err()
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Incr on a stopped server: got %v, want a timeout", err)
	}

	srv.Continue()
	// Redis executes the abandoned INCR before any command that is sent later on the same machine.
	fresh := srv.Client()
	if err := fresh.Ping(t.Context()).Err(); err != nil {
		t.Fatalf("Ping after Continue: %v", err)
	}
	if got := fresh.Get(t.Context(), "n").Val(); got != "1" {
		t.Errorf("n after Continue: got %q, want 1: a stopped server keeps the commands that it receives", got)
	}
}

func TestServer_KillRestart(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	rdb := srv.Client()
	if err := rdb.Set(t.Context(), "k", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	addr := srv.Addr()

	srv.Kill()
	srv.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := rdb.Ping(ctx).Err(); err == nil {
		t.Error("Ping after Kill: got no error")
	}

	srv.Restart()
	if srv.Addr() != addr {
		t.Errorf("address after Restart: got %s, want %s", srv.Addr(), addr)
	}
	if n, err := rdb.Exists(t.Context(), "k").Result(); err != nil || n != 0 {
		t.Errorf("Exists after Restart: got %d, %v, want 0: the data is gone", n, err)
	}
}

func TestServer_KillRestart_Durable(t *testing.T) {
	t.Parallel()
	srv := redisserver.StartDurable(t)
	if err := srv.Client().Set(t.Context(), "k", 1, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	srv.Kill()
	srv.Restart()
	ttl, err := srv.Client().PTTL(t.Context(), "k").Result()
	if err != nil || ttl <= 0 {
		t.Errorf("PTTL after Restart: got %s, %v, want the key with its TTL", ttl, err)
	}
}

// Another process has taken the port of the server. The cleanup of Start still kills the server.
func TestServer_RestartFails(t *testing.T) {
	t.Parallel()
	redisserver.Start(t) // skips the test without a redis-server
	rec := &recorder{TB: t}
	srv := redisserver.Start(rec)
	srv.Kill()
	other, err := new(net.ListenConfig).Listen(t.Context(), "tcp", srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer func() { _ = other.Close() }()
	running.Go(func() {
		for conn, err := other.Accept(); err == nil; conn, err = other.Accept() {
			_ = conn.Close()
		}
	})

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		srv.Restart()
	}()
	<-ended
	if !strings.HasPrefix(rec.got, "fatal: redisserver: restart") {
		t.Errorf("Restart on a taken port: got %q, want a failed test", rec.got)
	}
	srv.Kill()
}

func TestStart_KillsAStoppedServer(t *testing.T) {
	t.Parallel()
	redisserver.Start(t).Stop()
}

func TestStartCluster(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	rdb := cluster.Client()
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		if err := rdb.Set(t.Context(), key, 1, 0).Err(); err != nil {
			t.Fatalf("Set %s: %v", key, err)
		}
		if n := cluster.Master(key).Client().Exists(t.Context(), key).Val(); n != 1 {
			t.Errorf("%s is not on the node that Master names", key)
		}
	}
}

func TestStartSentinel_Failover(t *testing.T) {
	t.Parallel()
	sentinel := redisserver.StartSentinel(t)
	rdb := sentinel.Client()
	if err := rdb.Set(t.Context(), "k", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Do(t.Context(), "wait", 1, 5000).Err(); err != nil {
		t.Fatal(err)
	}

	sentinel.Master.Kill()
	sentinel.AwaitFailover()
	if got := sentinel.Replica.Client().Get(t.Context(), "k").Val(); got != "1" {
		t.Errorf("k on the new master: got %q, want 1", got)
	}
}

func TestEach(t *testing.T) {
	t.Parallel()
	redisserver.Each(t, func(t *testing.T, rdb *redis.Client) {
		if got := rdb.Eval(t.Context(), "return ARGV[1]", nil, "x").Val(); got != "x" {
			t.Errorf("Eval: got %v, want x", got)
		}
	})
}

func TestStart_MissingBinary(t *testing.T) {
	t.Setenv("PATH", "")
	for _, tc := range []struct{ name, require, want string }{
		{"skips", "", "skip"},
		{"fails when required", "1", "fatal"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv(redisserver.RequireEnv, tc.require)
			rec := &recorder{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				redisserver.Start(rec)
			}()
			<-done
			if !strings.HasPrefix(rec.got, tc.want) {
				t.Errorf("got %q, want %s", rec.got, tc.want)
			}
		})
	}
}
