package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/redistest"
)

// asked is a call of a command that asks a Redis, $REDIS, whose result is in a golden file.
type asked struct {
	golded

	stdin string
}

var asks = []asked{
	{golded{"ls", []string{"ls", "shop:", "--redis", "$REDIS"}}, ""},
	{golded{"ls_counts", []string{"ls", "shop:", "--redis", "$REDIS", "--counts"}}, ""},
	{golded{"ls_json", []string{"ls", "shop:f", "--redis", "-", "--json"}}, "$REDIS"},
	{golded{"ls_none", []string{"ls", "nothing:", "--redis", "$REDIS"}}, ""},
	{golded{"ls_hostile", []string{"ls", "bad:", "--redis", "$REDIS"}}, ""},
	{golded{"who_hostile", []string{"who", "bad:field", "--redis", "$REDIS"}}, ""},
	{golded{"ls_no_redis", []string{"ls"}}, ""},
	{golded{"ls_arguments", []string{"ls", "a", "b"}}, ""},
	{golded{"ls_down", []string{"ls", "--redis", "redis://shop:secret@127.0.0.1:1"}}, ""},

	{golded{"who", []string{"who", "shop:plain", "--redis", "$REDIS"}}, ""},
	{golded{"who_fair", []string{"who", "shop:fair", "--redis", "$REDIS"}}, ""},
	{golded{"who_fenced", []string{"who", "shop:fenced", "--redis", "$REDIS"}}, ""},
	{golded{"who_read", []string{"who", "shop:read", "--redis", "$REDIS"}}, ""},
	{golded{"who_permits", []string{"who", "shop:permits", "--redis", "$REDIS"}}, ""},
	{golded{"who_count", []string{"who", "shop:count", "--redis", "$REDIS"}}, ""},
	{golded{"who_json", []string{"who", "shop:write", "--redis", "$REDIS", "--json"}}, ""},
	{golded{"who_nobody", []string{"who", "shop:gone", "--redis", "$REDIS"}}, ""},
	{golded{"who_no_lock", []string{"who", "shop:text", "--redis", "$REDIS"}}, ""},
	{golded{"who_no_key", []string{"who", "--redis", "$REDIS"}}, ""},

	{golded{"release_yes", []string{"release", "go:plain", "--redis", "$REDIS", "--yes"}}, ""},
	{golded{"release_agreed", []string{"release", "go:read", "--redis", "$REDIS"}}, "y\n"},
	{golded{"release_json", []string{"release", "go:write", "--redis", "$REDIS", "--yes", "--json"}}, ""},
	{golded{"release_refused", []string{"release", "shop:plain", "--redis", "$REDIS"}}, "n\n"},
	{golded{"release_unanswered", []string{"release", "shop:plain", "--redis", "$REDIS"}}, ""},
	{golded{"release_other_holder", []string{"release", "shop:plain", "--redis", "$REDIS", "--yes", "--holder", bob}}, ""},
	{golded{"release_one_holder", []string{"release", "go:readers", "--redis", "$REDIS", "--holder", ann}}, "y\n"},
	{golded{"release_empty_holder", []string{"release", "shop:plain", "--redis", "$REDIS", "--yes", "--holder", ""}}, ""},
	{golded{"release_cart", []string{"release", "cart:43", "--redis", "$REDIS", "--yes"}}, ""},
	{golded{"release_cart_holder", []string{"release", "cart:43", "--redis", "$REDIS", "--yes", "--holder", "sku:7"}}, ""},
	{golded{"ls_cart", []string{"ls", "cart:", "--redis", "$REDIS"}}, ""},
	{golded{"who_cart", []string{"who", "cart:43", "--redis", "$REDIS"}}, ""},
	{golded{"release_nobody", []string{"release", "shop:gone", "--redis", "$REDIS"}}, ""},
	{golded{"release_no_lock", []string{"release", "shop:text", "--redis", "$REDIS"}}, ""},
	{golded{"release_count", []string{"release", "shop:count", "--redis", "$REDIS", "--yes"}}, ""},
	{golded{"release_two_inputs", []string{"release", "shop:plain", "--redis", "-"}}, "$REDIS"},
}

// holders of locks in the test's Redis.
const (
	ann = "71b96ce8-2746-4f0e-8c1a-0d6a1f9f5d11:57"
	bob = "0e6b1a52-1a3c-4d65-9c53-8d4c8a0b7f11:58"
)

// fill puts locks of every kind into a Redis, in Redisson's layout. Their leases have no end, or one that
// is shown to the minute.
func fill(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	_, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		ctx := t.Context()
		for _, key := range []string{"shop:plain", "go:plain"} {
			p.HSet(ctx, key, ann, 2)
			p.PExpire(ctx, key, 100*time.Hour)
		}
		p.HSet(ctx, "shop:fair", ann, 1)
		p.RPush(ctx, "redisson_lock_queue:{shop:fair}", bob, "6c84fb90-12c4-11e1-840d-7b25c5ee775a:3")
		p.RPush(ctx, "redisson_lock_queue:{shop:free}", bob)
		p.HSet(ctx, "shop:fenced", ann, 1)
		p.Set(ctx, "redisson_lock_token:{shop:fenced}", 1754000000000123, 0)
		for _, key := range []string{"shop:read", "go:read", "go:readers"} {
			p.HSet(ctx, key, "mode", "read", ann, 1, bob, 1)
			p.Set(ctx, "{"+key+"}:"+ann+":rwlock_timeout:1", 1, 0)
			p.Set(ctx, "{"+key+"}:"+bob+":rwlock_timeout:1", 1, 99*time.Hour)
		}
		p.HSet(ctx, "shop:write", "mode", "write", ann+":write", 1)
		p.HSet(ctx, "go:write", "mode", "write", ann+":write", 1)
		p.Set(ctx, "shop:permits", 4, 0)
		p.ZAdd(ctx, "{shop:permits}:timeout", redis.Z{Score: 922337203685477, Member: "0123456789abcdef"})
		p.Set(ctx, "shop:count", 5, 0)
		p.Set(ctx, "shop:text", "Ada", 0)
		p.HSet(ctx, "cart:43", "sku:7", 2)
		for _, key := range []string{"\x1b[31mred", "two\nlines", "<b>", strings.Repeat("long", 2500), `"`, "\u202ertl", "e\u0301", "\u00a0"} {
			p.HSet(ctx, "bad:"+key, ann, 1)
		}
		p.HSet(ctx, "bad:field", ann, 1)
		p.RPush(ctx, "redisson_lock_queue:{bad:field}", "\x1b[2J:1")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The commands that ask a Redis say this of the locks there.
func TestRun_GoldenOfARedis(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	rdb := srv.Client()
	fill(t, rdb)
	url := strings.NewReplacer("$REDIS", "redis://"+srv.Addr())
	for _, c := range asks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var args []string
			for _, arg := range c.args {
				args = append(args, url.Replace(arg))
			}
			golden.Assert(t, interlock(t, url.Replace(c.stdin), args...).String(), "golden/"+c.name+".txt")
		})
	}
	t.Cleanup(func() { // when all have run
		ctx := context.WithoutCancel(t.Context())
		for key, want := range map[string]int64{"go:plain": 0, "go:read": 0, "go:write": 0, "go:readers": 1, "cart:43": 1, "shop:plain": 1, "shop:text": 1, "shop:count": 1} {
			if got := rdb.Exists(ctx, key).Val(); got != want {
				t.Errorf("%s: got %d keys, want %d", key, got, want)
			}
		}
	})
}

// JSON has every key as it is, however long, and one that is no text as its bytes.
func TestLs_JSONIsExact(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	fill(t, srv.Client())
	if err := srv.Client().HSet(t.Context(), "bad:\xff", ann, 1).Err(); err != nil {
		t.Fatal(err)
	}
	got := interlock(t, "", "ls", "bad:", "--json", "--redis", "redis://"+srv.Addr())
	want := map[string]bool{}
	for _, key := range srv.Client().Keys(t.Context(), "bad:*").Val() {
		want[key] = true
	}
	for line := range strings.Lines(got.stdout) {
		var lock jsonLock
		if err := json.Unmarshal([]byte(line), &lock); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if lock.Bytes != nil {
			lock.Key = string(lock.Bytes)
		}
		if !want[lock.Key] {
			t.Errorf("%q is none of the keys, or is there twice", lock.Key)
		}
		delete(want, lock.Key)
	}
	if len(want) > 0 || got.code != exitFine {
		t.Errorf("missing: %d; %s", len(want), got.stderr)
	}
}

// Each command finds a lock in a Cluster and behind a Sentinel, and one of another node.
func TestFleet_Topologies(t *testing.T) {
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

// The Redis may come from the environment. This test runs alone, as it changes that.
func TestFleet_RedisFromTheEnvironment(t *testing.T) {
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

// Somebody who waits for a lock has it as soon as it was released by an operator.
func TestRelease_NotifiesWaiters(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	locks, err := core.New(srv.Client())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(context.WithoutCancel(t.Context())) })
	if err := srv.Client().HSet(t.Context(), "k", ann, 1).Err(); err != nil { // without an end: only a message helps
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		got <- locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(time.Minute))
	}()
	for locks.Stats().Waiters == 0 {
		time.Sleep(time.Millisecond) // looks again
	}
	if r := interlock(t, "", "release", "k", "--yes", "--redis", "redis://"+srv.Addr()); r.code != exitFine {
		t.Error(r)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// A terminal is told how far the list is, and the line is cleared in the end; a file is told nothing.
func TestProgress(t *testing.T) {
	t.Parallel()
	screen := &terminal{}
	p := newProgress(screen)
	p.told = p.told.Add(-time.Hour)
	p.add(1000, 5000)
	p.add(1000, 5000) // too early
	p.clear()
	if got, want := screen.String(), "\r\x1b[K1000 of 5000 keys\r\x1b[K"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if newProgress(file).to != nil || newProgress(&bytes.Buffer{}).to != nil {
		t.Error("what is no terminal is told the progress")
	}
}

// terminal says of itself that it is one.
type terminal struct{ bytes.Buffer }

func (*terminal) Stat() (os.FileInfo, error) { return terminalInfo{}, nil }

type terminalInfo struct{ os.FileInfo }

func (terminalInfo) Mode() os.FileMode { return os.ModeCharDevice }
