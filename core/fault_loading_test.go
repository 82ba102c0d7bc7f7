package core_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// TestFault_Loading has a server load its data, as it does after a restart, for longer
// than the backend timeout of a client: that is no lock that is taken, and it passes.
// A caller who does not wait, or not so long, fails; one that does sees it pass.
func TestFault_Loading(t *testing.T) {
	t.Parallel()
	const timeout = 200 * time.Millisecond
	rdb := redisserver.Start(t).Client()
	locks := locktest.NewClient(t, rdb, core.WithBackendTimeout(timeout))
	locktest.Warm(t, locks)
	waits := locktest.NewClient(t, rdb, core.WithBackendTimeout(2*time.Second)) // a server that loads is slow
	load(t, rdb, 5*time.Second)
	got := locktest.GoAcquire(t.Context(), waits.Lock("other"), core.WaitTime(time.Minute))
	for _, wait := range []time.Duration{0, 2 * timeout} {
		start := time.Now()
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(wait))
		locktest.WantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
		if err == nil || !strings.Contains(err.Error(), "LOADING") {
			t.Errorf("wait %s: %v does not name the cause", wait, err)
		}
		locktest.WantAtMost(t, "knowing it", time.Since(start), max(wait, timeout))
	}
	locktest.Eventually(t, "loaded", func() bool { return rdb.ReplicaOf(t.Context(), "no", "one").Err() == nil })
	o := <-got
	locktest.Must(t, o.Err)
	locktest.MustRelease(t, o.Hold)
	locktest.Eventually(t, "an acquire after that", func() bool {
		return locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }) == nil
	})
}

// load has a server load the data of another one, slowly, and returns when it does.
func load(t *testing.T, rdb *redis.Client, takes time.Duration) {
	t.Helper()
	const keys = 100
	source := redisserver.Start(t)
	locktest.Must(t, source.Client().ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err())
	locktest.Must(t, source.Client().ConfigSet(t.Context(), "rdbcompression", "no").Err())
	_, err := source.Client().Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for range keys {
			p.Do(t.Context(), "set", rand.Text(), strings.Repeat("x", 4096))
		}
		return nil
	})
	locktest.Must(t, err)
	locktest.Must(t, rdb.ConfigSet(t.Context(), "loading-process-events-interval-bytes", "1024").Err()) // so that it answers meanwhile
	locktest.Must(t, rdb.ConfigSet(t.Context(), "key-load-delay", fmt.Sprint((takes/keys).Microseconds())).Err())
	host, port, err := net.SplitHostPort(source.Addr())
	locktest.Must(t, err)
	locktest.Must(t, rdb.ReplicaOf(t.Context(), host, port).Err())
	locktest.Eventually(t, "loading", func() bool { return redis.IsLoadingError(rdb.Ping(t.Context()).Err()) })
}
