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
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// TestFault_Loading has a server load its data, as it does after a restart, for longer
// than the backend timeout of a client: that is no lock that is taken, and it passes.
// A caller who does not wait, or not so long, fails; one that does sees it pass.
func TestFault_Loading(t *testing.T) {
	t.Parallel()
	const timeout = 200 * time.Millisecond
	rdb := redisserver.Start(t).Client()
	locks := locksOn(t, rdb, core.WithBackendTimeout(timeout))
	warm(t, locks)
	waits := locksOn(t, rdb, core.WithBackendTimeout(2*time.Second)) // a server that loads is slow
	load(t, rdb, 5*time.Second)
	got := acquiring(t.Context(), waits.Lock("other"), core.WaitTime(time.Minute))
	for _, wait := range []time.Duration{0, 2 * timeout} {
		start := time.Now()
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(wait))
		wantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
		if err == nil || !strings.Contains(err.Error(), "LOADING") {
			t.Errorf("wait %s: %v does not name the cause", wait, err)
		}
		wantAtMost(t, "knowing it", time.Since(start), max(wait, timeout))
	}
	eventually(t, "loaded", func() bool { return rdb.ReplicaOf(t.Context(), "no", "one").Err() == nil })
	o := <-got
	must(t, o.err)
	released(t, o.hold)
	eventually(t, "an acquire after that", func() bool {
		return locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }) == nil
	})
}

// load has a server load the data of another one, slowly, and returns when it does.
func load(t *testing.T, rdb *redis.Client, takes time.Duration) {
	t.Helper()
	const keys = 100
	source := redisserver.Start(t)
	must(t, source.Client().ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err())
	must(t, source.Client().ConfigSet(t.Context(), "rdbcompression", "no").Err())
	_, err := source.Client().Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for range keys {
			p.Do(t.Context(), "set", rand.Text(), strings.Repeat("x", 4096))
		}
		return nil
	})
	must(t, err)
	must(t, rdb.ConfigSet(t.Context(), "loading-process-events-interval-bytes", "1024").Err()) // so that it answers meanwhile
	must(t, rdb.ConfigSet(t.Context(), "key-load-delay", fmt.Sprint((takes/keys).Microseconds())).Err())
	host, port, err := net.SplitHostPort(source.Addr())
	must(t, err)
	must(t, rdb.ReplicaOf(t.Context(), host, port).Err())
	eventually(t, "loading", func() bool { return redis.IsLoadingError(rdb.Ping(t.Context()).Err()) })
}
