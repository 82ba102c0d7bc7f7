package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// If an ACL forbids a key, Redis refuses the whole question about it and other keys. The client still clears up the
// other keys.
func TestReaper_ForbiddenKeyStopsNoOther(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	locktest.Must(t, b.Do(t.Context(), "acl", "setuser", "app", "on", ">pw", "~ok*", "&*", "+@all").Err())
	opts := *b.Client.Options()
	opts.Username, opts.Password = "app", "pw"
	rdb := redis.NewClient(&opts)
	t.Cleanup(func() { _ = rdb.Close() })
	locks := locktest.NewClient(t, rdb)
	for _, key := range []string{"forbidden", "ok1", "ok2"} {
		field := core.Abandon(locks, key)
		locktest.Must(t, b.HSet(t.Context(), key, field, 1).Err())
		locktest.Must(t, b.Expire(t.Context(), key, time.Hour).Err())
	}
	locktest.Eventually(t, "the other keys to be cleared up", func() bool { return b.Exists(t.Context(), "ok1", "ok2").Val() == 0 })
	if b.Exists(t.Context(), "forbidden").Val() == 0 {
		t.Error("the forbidden key is gone")
	}
}

// Several keys that are taken one by one share that second.
func TestBehindGhost_OfSeveralKeys(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		core.PutKeysApart(locks)
		stays := locktest.KeepGhosts(t, proxy, "a")
		locktest.KeepGhosts(t, proxy, "b")
		locktest.LeaveGhost(t, locks, proxy, "a")
		locktest.LeaveGhost(t, locks, proxy, "b")
		time.AfterFunc(200*time.Millisecond, stays.Remove)
		time.AfterFunc(700*time.Millisecond, func() { b.Del(context.Background(), "a") }) // if it still exists
		start := time.Now()
		_, _, err := locks.MultiLock("a", "b").Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.WantSoon(t, "refused after %s", start, time.Second)
	})
}
