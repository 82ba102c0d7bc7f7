package wire_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key   = "order:42"
	alice = "71b96ce8-2746-4f0e-8c1a-0d6a1f9f5d11:1"
	bob   = "71b96ce8-2746-4f0e-8c1a-0d6a1f9f5d11:2"
)

// bench is a Redis, and a separate client of it.
type bench struct {
	*wire.Redis

	t   *testing.T
	rdb *redis.Client
}

func newBench(t *testing.T, rdb *redis.Client) *bench {
	t.Helper()
	r, err := wire.New(rdb, wire.Config{Timeout: 30 * time.Second, Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return &bench{Redis: r, t: t, rdb: rdb}
}

// soon returns a deadline that no test reaches.
func soon() time.Time { return time.Now().Add(20 * time.Second) }

// The scripts of the tests. A hash has one field: the first owner.
var (
	taking  = wire.NewScript("if redis.call('HLEN', KEYS[1]) > redis.call('HEXISTS', KEYS[1], ARGV[1]) then return 0 end redis.call('HSET', KEYS[1], ARGV[1], '1') return 1")
	looking = wire.NewScript("return redis.call('HKEYS', KEYS[1])")
	leaving = wire.NewScript("return redis.call('HDEL', KEYS[1], ARGV[1])")
)

// take prepares an attempt. The answer is 1 for the first owner, even if it attempts again.
func (b *bench) take(now time.Time, key, owner string) wire.Call {
	return b.Call(now, taking, key, 1, key, owner)
}

// look prepares a query for the owner.
func (b *bench) look(now time.Time, key string) wire.Call { return b.Call(now, looking, key, 1, key) }

// leave prepares the removal of an owner. The answer is 1 if it was the owner.
func (b *bench) leave(now time.Time, key, owner string) wire.Call {
	return b.Call(now, leaving, key, 1, key, owner)
}

// reply waits for an answer.
func reply(b *bench, c wire.Call) any {
	b.t.Helper()
	c.OnHang(wire.WaitsOn)
	v, fate, err := c.Wait(context.Background(), soon())
	if err != nil || fate != wire.Answered {
		b.t.Fatalf("call: %v (fate %d)", err, fate)
	}
	return v
}

// acquire takes key and fails the test if another owner has it.
func (b *bench) acquire(key, owner string) {
	b.t.Helper()
	if got := reply(b, b.take(time.Now(), key, owner)); got != int64(1) {
		b.t.Fatalf("take %s for %s: got %v", key, owner, got)
	}
}

// wantHolders requires the content of the hash.
func (b *bench) wantHolders(key string, want map[string]string) {
	b.t.Helper()
	if got := b.rdb.HGetAll(context.Background(), key).Val(); !maps.Equal(got, want) {
		b.t.Errorf("HGETALL %s: got %v, want %v", key, got, want)
	}
}

func (b *bench) wantGone(key string) {
	b.t.Helper()
	if b.rdb.Exists(context.Background(), key).Val() != 0 {
		b.t.Errorf("%s is still there", key)
	}
}

// clientOf connects as an ACL user without a password.
func (b *bench) clientOf(user string) *redis.Client {
	b.t.Helper()
	o := *b.rdb.Options()
	o.Username, o.Password = user, "any"
	rdb := redis.NewClient(&o)
	b.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
