package redisstore_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key   = "order:42"
	alice = "71b96ce8-2746-4f0e-8c1a-0d6a1f9f5d11:1"
	bob   = "71b96ce8-2746-4f0e-8c1a-0d6a1f9f5d11:2"
)

// bench is a Store with a separate client of its Redis.
type bench struct {
	*redisstore.Store

	t   *testing.T
	rdb *redis.Client
}

// each runs a test on the embedded Redis and on a real one.
func each(t *testing.T, body func(t *testing.T, b *bench)) {
	t.Helper()
	redisserver.Each(t, func(t *testing.T, rdb *redis.Client) { body(t, newBench(t, rdb)) })
}

func newBench(t *testing.T, rdb *redis.Client) *bench {
	t.Helper()
	s, err := redisstore.New(rdb, redisstore.Config{Config: wire.Config{Timeout: 30 * time.Second, Owner: "test"}, RenewTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &bench{Store: s, t: t, rdb: rdb}
}

// soon returns a deadline that no test reaches.
func soon() time.Time { return time.Now().Add(20 * time.Second) }

// kinds are the kinds of lock; most tests use the reentrant one.
var kinds = redisstore.NewKinds()

// claim returns a claim on a reentrant lock.
func claim(key, field string) redisstore.Claim {
	return redisstore.Claim{Kind: kinds.Reentrant, Key: key, Field: field}
}

// reply waits for an answer.
func reply[T any](b *bench, c redisstore.Call[T]) T {
	b.t.Helper()
	v, fate, err := c.Wait(context.Background(), soon())
	if err != nil || fate != wire.Answered {
		b.t.Fatalf("call: %v (fate %d)", err, fate)
	}
	return v
}

// acquire takes key and fails the test if it is refused.
func (b *bench) acquire(key, field string, lease time.Duration) {
	b.t.Helper()
	if got := reply(b, b.Acquire(time.Now(), claim(key, field), redisstore.Terms{Lease: lease})); got.Refusal != nil {
		b.t.Fatalf("acquire %s for %s: refused by %+v", key, field, got.Refusal)
	}
}

// wantHolders compares the content of the lock's hash.
func (b *bench) wantHolders(key string, want map[string]string) {
	b.t.Helper()
	if got := b.rdb.HGetAll(context.Background(), key).Val(); !maps.Equal(got, want) {
		b.t.Errorf("HGETALL %s: got %v, want %v", key, got, want)
	}
}

// wantTTL requires a TTL that is at most the lease and almost as long.
func (b *bench) wantTTL(key string, lease time.Duration) {
	b.t.Helper()
	if got := b.rdb.PTTL(context.Background(), key).Val(); got > lease || got < lease-10*time.Second || got <= 0 {
		b.t.Errorf("PTTL %s: got %s, want about %s", key, got, lease)
	}
}

func (b *bench) wantGone(key string) {
	b.t.Helper()
	if b.rdb.Exists(context.Background(), key).Val() != 0 {
		b.t.Errorf("%s still exists", key)
	}
}
