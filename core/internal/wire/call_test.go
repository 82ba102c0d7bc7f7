package wire_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/wire"
)

var scriptCommand = faultproxy.Command("evalsha", "eval")

// proxied returns a Redis behind a proxy. The server knows the scripts.
func proxied(t *testing.T, rdb *redis.Client) (*faultproxy.Proxy, *bench) {
	t.Helper()
	proxy, through := faultproxy.Around(t, rdb)
	b := newBench(t, through)
	b.rdb = rdb
	b.acquire("warm", alice)
	reply(b, b.leave(time.Now(), "warm", alice))
	return proxy, b
}

func TestCall_Wait_LostReply(t *testing.T) {
	t.Parallel()
	redisserver.Each(t, func(t *testing.T, rdb *redis.Client) {
		proxy, b := proxied(t, rdb)
		proxy.DropReply(faultproxy.Once(scriptCommand))
		call := b.take(time.Now(), key, alice)
		_, fate, err := call.Wait(context.Background(), soon())
		if err == nil || fate != wire.Unknown || !wire.Transient(err) {
			t.Errorf("got %v, fate %d, want an unknown fate", err, fate)
		}
		b.wantHolders(key, map[string]string{alice: "1"}) // executed, and only once
	})
}

// go-redis executes a script again when its reply is lost. This package must not, because its caller decides
// whether to send the script again.
func TestCall_Wait_NotResentByGoRedis(t *testing.T) {
	t.Parallel()
	redisserver.Each(t, func(t *testing.T, rdb *redis.Client) {
		proxy, b := proxied(t, rdb)
		sent := proxy.Watch(faultproxy.All(scriptCommand, faultproxy.Containing(key)))
		proxy.DropReply(faultproxy.Nth(1, faultproxy.All(scriptCommand, faultproxy.Containing(key))))
		call := b.take(time.Now(), key, alice)
		_, _, err := call.Wait(context.Background(), soon())
		if err == nil || sent.Hits() != 1 {
			t.Errorf("got %v after %d sends, want an error after one", err, sent.Hits())
		}
	})
}

func TestCall_Wait_AgainForALateReply(t *testing.T) {
	t.Parallel()
	redisserver.Each(t, func(t *testing.T, rdb *redis.Client) {
		proxy, b := proxied(t, rdb)
		held := proxy.HoldReply(faultproxy.Once(scriptCommand))
		call := b.take(time.Now(), key, alice)

		_, fate, err := call.Wait(context.Background(), time.Now().Add(20*time.Millisecond))
		if err == nil || fate != wire.Unknown {
			t.Errorf("at the limit: got %v, fate %d, want unknown", err, fate)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, fate, err = call.Wait(ctx, soon()); !errors.Is(err, context.Canceled) || fate != wire.Unknown {
			t.Errorf("cancelled: got %v, fate %d, want Canceled, unknown", err, fate)
		}
		held.Release()
		if got := reply(b, call); got != int64(1) {
			t.Errorf("late reply: got %+v, want a grant", got)
		}
	})
}

func TestCall_Wait_RefusedConnection(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	b := newBench(t, rdb)
	call := b.take(time.Now(), key, alice)
	_, fate, err := call.Wait(context.Background(), soon())
	if err == nil || fate != wire.NotSent || !wire.Transient(err) {
		t.Errorf("got %v, fate %d, want not sent", err, fate)
	}
}

func TestTransient_ErrorReplies(t *testing.T) { //nolint:tparallel // one server, whose state the steps change
	t.Parallel()
	srv := redisserver.Start(t)
	b := newBench(t, srv.Client())
	t.Run("OOM stays", func(t *testing.T) {
		b.rdb.ConfigSet(t.Context(), "maxmemory", "1")
		defer b.rdb.ConfigSet(t.Context(), "maxmemory", "0")
		wantError(t, b, "OOM", false)
		b.wantGone(key)
	})
	t.Run("READONLY passes", func(t *testing.T) {
		b.rdb.ReplicaOf(t.Context(), "127.0.0.1", "1")
		defer b.rdb.ReplicaOf(t.Context(), "no", "one")
		wantError(t, b, "READONLY", true)
	})
	t.Run("NOPERM stays", func(t *testing.T) {
		b.rdb.Do(t.Context(), "acl", "setuser", "reader", "on", "nopass", "~other:*", "+@all")
		wantError(t, newBench(t, b.clientOf("reader")), "NOPERM", false)
	})
}

func wantError(t *testing.T, b *bench, prefix string, transient bool) {
	t.Helper()
	call := b.take(time.Now(), key, alice)
	_, fate, err := call.Wait(context.Background(), soon())
	if err == nil || !strings.Contains(err.Error(), prefix) || fate != wire.Answered || wire.Transient(err) != transient {
		t.Errorf("got %v, fate %d, transient %v, want answered %s, transient %v", err, fate, wire.Transient(err), prefix, transient)
	}
}

func TestNew_UnsupportedClients(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { _ = ring.Close() })
	for name, rdb := range map[string]redis.UniversalClient{
		"ring": ring, "nil": nil, "nil client": (*redis.Client)(nil), "nil cluster": (*redis.ClusterClient)(nil),
		"unknown": struct{ redis.UniversalClient }{},
	} {
		if _, err := wire.New(rdb, wire.Config{}); !errors.Is(err, wire.ErrClient) {
			t.Errorf("%s: got %v, want ErrClient", name, err)
		}
	}
}
