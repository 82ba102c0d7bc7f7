package main

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/redisserver"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	url := "redis://" + srv.Addr()
	got := interlock(t, url+"\n", "doctor", "--redis", "-", "--prefix", "shop:", "--kinds", "reentrant,fenced")
	if got.code != exitFine || !strings.Contains(got.stdout, "works   fenced: release\n") || strings.Contains(got.stdout, "FAILS") || got.stderr != "" {
		t.Errorf("a server: got %s", got)
	}
	if err := srv.Client().ConfigSet(t.Context(), "maxmemory-policy", "volatile-lru").Err(); err != nil {
		t.Fatal(err)
	}
	got = interlock(t, "", "doctor", "--redis", url)
	if got.code != exitProblems || !strings.Contains(got.stdout, "-> CONFIG SET maxmemory-policy noeviction") {
		t.Errorf("an evicting server: got %s", got)
	}
	got = interlock(t, "", "doctor", "--redis", url, "--kinds", "fairy")
	if got.code != exitCannot || !strings.Contains(got.stderr, "write one of reentrant, fenced") {
		t.Errorf("an unknown kind: got %s", got)
	}
	got = interlock(t, "", "doctor", "--redis", "redis://shop:secret@127.0.0.1:1")
	if got.code != exitProblems || !strings.Contains(got.stdout, "FAILS   answer") || strings.Contains(got.stdout, "secret") {
		t.Errorf("no server: got %s", got)
	}
}

func TestWire_SingleServer(t *testing.T) {
	t.Parallel()
	want := result{exitFine, `This client uses database 2 of a single server, classic channels and the prefix "shop:". ` +
		"Redisson needs database 2, a configuration that is not useClusterServers and a nameMapper that puts \"shop:\" in front of every name.\n", ""}
	url := "redis://" + redisserver.Start(t).Addr() + "/2"
	if got := interlock(t, "", "wire", "--redis", url, "--prefix", "shop:"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := interlock(t, url+"\n", "wire", "--redis", "-", "--prefix", "shop:"); got != want {
		t.Errorf("from the standard input: got %s, want %s", got, want)
	}
}

func TestWire_Sentinel(t *testing.T) {
	t.Parallel()
	s := redisserver.StartSentinel(t)
	var name string
	s.Client(func(o *redis.FailoverOptions) { name = o.MasterName })
	got := interlock(t, "", "wire", "--redis", "redis://"+s.Sentinel.Addr()+"/0?master_name="+name)
	if got.code != exitFine || !strings.Contains(got.stdout, "database 0 of a Sentinel") {
		t.Errorf("got %s", got)
	}
}

func TestWire_Cluster(t *testing.T) {
	t.Parallel()
	c := redisserver.StartCluster(t)
	url := "redis://" + c.Addrs()[0]
	for mode, want := range map[string]string{
		"auto": "shardedSubscriptionMode AUTO (the default) or ON", "sharded": "shardedSubscriptionMode AUTO (the default) or ON",
		"classic": "shardedSubscriptionMode OFF",
	} {
		if got := interlock(t, "", "wire", "--redis", url, "--cluster", "--pubsub", mode); got.code != exitFine || !strings.Contains(got.stdout, want) {
			t.Errorf("%s: got %s", mode, got)
		}
	}
	sub := c.Masters[2].Client().Subscribe(t.Context(), "redisson_lock__channel:{k}")
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := interlock(t, "", "wire", "--redis", url, "--cluster")
	if got.code != exitProblems || !strings.Contains(got.stdout, "\nwarning: another program waits for locks by SUBSCRIBE") || got.stderr != "" {
		t.Errorf("got %s", got)
	}
	if err := sub.Close(); err != nil {
		t.Error(err)
	}
}

func TestWire_Unavailable(t *testing.T) {
	t.Parallel()
	got := interlock(t, "", "wire", "--redis", "redis://shop:secret@127.0.0.1:1")
	if got.code != exitCannot || got.stdout != "" || !strings.Contains(got.stderr, "redis unavailable") || strings.Contains(got.stderr, "secret") {
		t.Errorf("got %s", got)
	}
}
