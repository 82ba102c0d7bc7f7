package faultproxy_test

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/redistest"
)

func TestAround_InBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		direct := redistest.New(t).Client(func(o *redis.Options) { o.MaxRetries = -1 })
		proxy, rdb := faultproxy.Around(t, direct, func(o *redis.Options) { o.ReadTimeout = 3 * time.Second })

		proxy.DelayRequest(faultproxy.Once(faultproxy.Command("append")), 5*time.Second)
		start := time.Now()
		err := rdb.Append(t.Context(), "n", "late").Err()
		if got := time.Since(start); !errors.Is(err, os.ErrDeadlineExceeded) || got != 3*time.Second {
			t.Errorf("delayed: got %v after %s, want a timeout after 3s", err, got)
		}
		if err := rdb.Append(t.Context(), "n", "early").Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*time.Second + time.Millisecond) // virtual time
		synctest.Wait()
		if got := direct.Get(t.Context(), "n").Val(); got != "earlylate" {
			t.Errorf("got %q, want earlylate", got)
		}

		proxy.BlackHole(true)
		start = time.Now()
		if err := rdb.Ping(t.Context()).Err(); err == nil || time.Since(start) != 3*time.Second {
			t.Errorf("black hole: got %v after %s, want a timeout after 3s", err, time.Since(start))
		}
		proxy.BlackHole(false)
		if err := rdb.Ping(t.Context()).Err(); err != nil {
			t.Errorf("after the hole: %v", err)
		}
	})
}

func TestAround_OnBoth(t *testing.T) {
	t.Parallel()
	redisserver.Each(t, func(t *testing.T, direct *redis.Client) {
		proxy, rdb := faultproxy.Around(t, direct)
		proxy.DropReply(faultproxy.Once(faultproxy.Command("incr")))
		if got, err := rdb.Incr(t.Context(), "n").Result(); got != 2 {
			t.Errorf("a retried Incr: got %d, %v, want 2", got, err)
		}
	})
}
