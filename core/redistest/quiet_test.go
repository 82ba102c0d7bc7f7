package redistest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
)

// lines collects the log lines of go-redis.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Printf(_ context.Context, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprintf(format, args...))
}

// go-redis logs nothing while a server is down: neither for a client alone nor for locks, their
// watchdog and their waiters. The test is not parallel, because the logger is shared by the process.
func TestServer_Down_LogsNothing(t *testing.T) { //nolint:paralleltest // see above
	logged := &lines{}
	redis.SetLogger(logged)
	t.Cleanup(logging.Disable)
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.New(t)
		rdb := srv.Client()
		subscribe(t, rdb, "c")
		locks, err := core.New(rdb)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = locks.Close(t.Context()) })
		_, hold, err := locks.Lock("held").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var waiter sync.WaitGroup
		waiter.Go(func() {
			_, _, err := locks.Lock("held").Acquire(context.Background(), core.WaitTime(time.Minute))
			if err == nil {
				t.Error("the waiter acquired a lock that another client holds")
			}
		})
		synctest.Wait()

		srv.Down()
		for range 60 {
			if err := rdb.Ping(t.Context()).Err(); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("ping: got %v, want refused", err)
			}
			if _, err := rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error { return p.Ping(t.Context()).Err() }); err == nil {
				t.Error("the transaction did not fail")
			}
			if _, _, err := locks.Lock("free").Acquire(t.Context(), core.WaitTime(0)); !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("acquire: got %v, want %v", err, core.ErrUnavailable)
			}
			time.Sleep(time.Second) // virtual time
		}
		waiter.Wait()
		srv.Up()
		_ = hold.Release(t.Context())
	})
	for _, line := range logged.all {
		t.Errorf("go-redis logged: %s", line)
	}
}
