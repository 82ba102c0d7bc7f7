package acquiring_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// around maps a name in a way that no prefix can express. Tests notice if the mapping is applied twice.
func around(name string) string { return "shop:{" + name + "}:v2" }

// The mapper turns a name into the key. The other keys and the channel of the lock are named after this key.
func TestNameMapper_MakesTheKey(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks(core.WithNameMapper(around))
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.FencedLock("order:42"))
		if hold.Key() != "shop:{order:42}:v2" {
			t.Errorf("key: got %q, want \"shop:{order:42}:v2\"", hold.Key())
		}
		b.WantCount(hold, "1")
		if got := b.Get(t.Context(), locktest.TokenCounterOf("shop:{order:42}:v2")).Val(); got != strconv.FormatInt(hold.Token(), 10) {
			t.Errorf("the counter of tokens: got %q, want the token, %d", got, hold.Token())
		}

		if held, ok := core.Held(ctx, "order:42"); !ok || held != hold {
			t.Errorf("Held by the name: got %v, %t", held, ok)
		}
		if _, ok := core.Held(ctx, hold.Key()); ok {
			t.Error("Held by the key: want none, the mapping would have been applied twice")
		}
		state, err := locks.FencedLock("order:42").State(t.Context())
		if err != nil || state.Holders[hold.Field()] != 1 {
			t.Errorf("State: got %+v, %v", state, err)
		}
		_, inner := locktest.MustAcquire(t, ctx, locks.FencedLock("order:42"))
		b.WantCount(inner, "2")
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, hold)
	})
}

// A client with a prefix and a client with a mapper to the same key use the same lock and wake each other.
func TestNameMapper_SharesALockWithAPrefix(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		mapped := b.Locks(core.WithNameMapper(func(name string) string { return "shop:" + name }))
		prefixed := b.Locks(core.WithPrefix("shop:"))
		_, hold := locktest.MustAcquire(t, t.Context(), mapped.Lock("k"))
		_, _, err := prefixed.Lock("k").Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		done := make(chan error, 1)
		go func() {
			done <- prefixed.Lock("k").Do(context.Background(), func(context.Context) error { return nil }, core.WaitTime(time.Minute))
		}()
		b.AwaitListeners("shop:k", 1)
		locktest.MustRelease(t, hold)
		locktest.WantOK(t, <-done)
	})
}

func TestNameMapper_CalledOncePerAcquisition(t *testing.T) {
	t.Parallel()
	b := locktest.Embedded(t)
	var calls atomic.Int64
	locks := b.Locks(core.WithNameMapper(func(name string) string {
		calls.Add(1)
		return "m:" + name
	}))
	b.Warm(locks)
	calls.Store(0)
	_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
	waited := make(chan error, 1)
	go func() {
		waited <- locks.Lock("k").Do(context.Background(), func(context.Context) error { return nil }, core.WaitTime(time.Minute))
	}()
	locktest.AwaitWaiters(t, locks, 1)
	locktest.Must(t, hold.Refresh(t.Context(), time.Minute))
	locktest.MustRelease(t, hold)
	locktest.Must(t, <-waited)
	locktest.WantSame(t, "two acquisitions, a refresh and two releases: calls", calls.Load(), 2)
}

func TestNameMapper_BadKeysAreInvalid(t *testing.T) {
	t.Parallel()
	locks := locktest.NewClient(t, locktest.Nowhere(t), core.WithMaxKeyLength(100), core.WithNameMapper(func(name string) string {
		switch {
		case strings.HasPrefix(name, "unknown"):
			return ""
		case strings.HasPrefix(name, "long"):
			return strings.Repeat(name, 30)
		}
		return name
	}))
	for name, want := range map[string]string{
		"unknown:1": `an empty key of lock "unknown:1"`, "long:1": "has 180 bytes, the limit is 100", "": "empty lock name",
	} {
		_, _, err := locks.Lock(name).Acquire(t.Context())
		locktest.WantErr(t, err, core.ErrInvalid)
		if !strings.Contains(errorText(err), want) {
			t.Errorf("%q: got %v, want %q", name, err, want)
		}
		if _, held := core.Held(t.Context(), name); held {
			t.Errorf("Held finds a hold of %q", name)
		}
	}
}

// A MultiLock takes its keys in the order of the keys, not of the names. A key to which two names map is taken once.
func TestNameMapper_OrderOfAMultiLock(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		keys := map[string]string{"a": "3", "b": "2", "c": "1", "C": "1", "other": "1"}
		locks := b.Locks(core.WithNameMapper(func(name string) string { return keys[name] }))
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock("a", "b", "c", "C"))
		for _, key := range []string{"1", "2", "3"} {
			if got := b.HVals(t.Context(), key).Val(); len(got) != 1 || got[0] != "1" {
				t.Errorf("%s: got holds %v, want one", key, got)
			}
		}
		if hold.Key() != "1" {
			t.Errorf("the first key: got %q, want 1", hold.Key())
		}
		for name := range keys {
			if _, ok := core.Held(ctx, name); !ok {
				t.Errorf("%q is not held", name)
			}
		}
		locktest.MustRelease(t, hold)
		b.WantGone("1", "2", "3")

		_, hold = locktest.MustAcquire(t, t.Context(), locks.MultiLock("c", "C", "other"))
		b.WantCount(hold, "1")
		locktest.MustRelease(t, hold)
		b.WantGone("1")
	})
}

func TestNew_BadNameMappersAreErrors(t *testing.T) {
	t.Parallel()
	prefixed := func(n int) core.Option {
		return core.WithNameMapper(func(name string) string { return strings.Repeat("p", n) + name })
	}
	for _, tt := range []struct {
		name string
		opts []core.Option
		want string // in the error; "" for none
	}{
		{"nil", []core.Option{core.WithNameMapper(nil)}, "WithNameMapper(nil)"},
		{"beside a prefix", []core.Option{core.WithPrefix("shop:"), core.WithNameMapper(around)}, "write the prefix into the mapper"},
		{"in front of a prefix", []core.Option{core.WithNameMapper(around), core.WithPrefix("shop:")}, `WithPrefix("shop:") and WithNameMapper`},
		{"an empty prefix is none", []core.Option{core.WithPrefix(""), core.WithNameMapper(around)}, ""},
		{"keys too long", []core.Option{prefixed(961)}, "a key of 1025 bytes of a name of 64, the limit is 1024: write WithMaxKeyLength(1025)"},
		{"room", []core.Option{prefixed(960)}, ""},
		{"short keys", []core.Option{core.WithMaxKeyLength(20), core.WithNameMapper(around)}, ""},
		{"names that it does not know", []core.Option{core.WithNameMapper(func(string) string { return "" })}, ""},
	} {
		locks, err := core.New(locktest.Nowhere(t), tt.opts...)
		if err == nil {
			locktest.Must(t, locks.Close(t.Context()))
		}
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: got %v", tt.name, err)
		case tt.want != "" && (!errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestClient_MaxNameLengthWithAMapper(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		mapper func(string) string
		want   int
	}{
		"text around":  {around, 200 - len(around(""))},
		"twice":        {func(name string) string { return name + name }, 100},
		"a short hash": {core.KeyHash, 200},
		"no key":       {func(string) string { return "" }, 200},
	} {
		locks := locktest.NewClient(t, locktest.Nowhere(t), core.WithNameMapper(tt.mapper), core.WithMaxKeyLength(200))
		if got := locks.ForAdapters().MaxNameLength(); got != tt.want {
			t.Errorf("%s: got %d, want %d", what, got, tt.want)
		}
		if locks.ForAdapters().MaxKeyLength() != 200 || locks.Prefix() != "" {
			t.Errorf("%s: MaxKeyLength %d, Prefix %q", what, locks.ForAdapters().MaxKeyLength(), locks.Prefix())
		}
	}
}

// In a Cluster the key decides, not the name.
func TestNameMapper_BracesInACluster(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { _ = rdb.Close() })
	locks := locktest.NewClient(t, rdb, core.WithNameMapper(around), core.WithBackendTimeout(10*time.Millisecond))
	_, err := locks.Lock("a}b{").State(t.Context())
	locktest.WantOnly(t, err, core.ErrUnavailable, core.ErrInvalid) // no server listens
	odd := locktest.NewClient(t, rdb, core.WithNameMapper(func(name string) string { return "}" + name }), core.WithBackendTimeout(10*time.Millisecond))
	_, err = odd.Lock("{t}").State(t.Context())
	locktest.WantErr(t, err, core.ErrInvalid)
}

// Redisson always puts the key of a latch into braces in the name of its channel.
func TestNameMapper_LatchInACluster(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { _ = rdb.Close() })
	locks := locktest.NewClient(t, rdb, core.WithNameMapper(func(name string) string { return "{" + name + "}" }), core.WithBackendTimeout(10*time.Millisecond))
	_, err := locks.CountDownLatch("done").Count(t.Context())
	locktest.WantErr(t, err, core.ErrInvalid)
}

// A prefix that leaves no room for names, or room for short names only, is an error of New.
func TestNew_PrefixLeavesRoomForNames(t *testing.T) {
	t.Parallel()
	long := func(n int) core.Option { return core.WithPrefix(strings.Repeat("p", n)) }
	tests := []struct {
		name string
		opts []core.Option
		want string // in the error; "" for none
	}{
		{"as long as a key", []core.Option{long(core.DefaultMaxKeyLength)}, "a prefix of at most 960 bytes, or WithMaxKeyLength(1088)"},
		{"longer than a key", []core.Option{long(5000)}, "a prefix of at most 960 bytes, or WithMaxKeyLength(5064)"},
		{"room for a few bytes", []core.Option{long(961)}, "at most 960 bytes"},
		{"room", []core.Option{long(960)}, ""},
		{"options in another order", []core.Option{core.WithMaxKeyLength(100), core.WithPrefix("shop:orders:of:the:month:of:may:2026:")}, "at most 36 bytes"},
		{"keys too short for any prefix", []core.Option{core.WithPrefix("p:"), core.WithMaxKeyLength(40)}, "write WithMaxKeyLength(66) or more"},
		{"short keys without a prefix", []core.Option{core.WithMaxKeyLength(20)}, ""},
	}
	for _, tt := range tests {
		locks, err := core.New(locktest.Nowhere(t), tt.opts...)
		if err == nil {
			if closing := locks.Close(t.Context()); closing != nil {
				t.Error(closing)
			}
		}
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: got %v", tt.name, err)
		case tt.want != "" && (!errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "WithPrefix(")):
			t.Errorf("%s: got %v", tt.name, err)
		case len(errorText(err)) > 300:
			t.Errorf("%s: the error has %d bytes", tt.name, len(err.Error()))
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestClient_MaxNameLength(t *testing.T) {
	t.Parallel()
	locks := locktest.NewClient(t, locktest.Nowhere(t), core.WithPrefix("shop:"), core.WithMaxKeyLength(200))
	locktest.WantSame(t, "the longest name", locks.ForAdapters().MaxNameLength(), 195)
}
