package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// What waits for a Redis that does not answer is bounded, also when its callers have
// gone: beyond that calls fail, and are known not to have been sent.
func TestCall_QueueOfASilentRedisIsBounded(t *testing.T) {
	t.Parallel()
	redisserver.Each(t, func(t *testing.T, rdb *redis.Client) {
		const bound = 20
		proxy, through := faultproxy.Around(t, rdb, func(o *redis.Options) {
			o.AutoPipelineOptions = redis.DefaultAutoPipelineOptions()
			o.AutoPipelineOptions.MaxQueuedCommands = bound
		})
		b := newBench(t, through)
		proxy.BlackHole(true)
		defer proxy.Refuse(true) // so that nobody waits for it at the end
		for n := range 10 * bound {
			call := b.Acquire(time.Now(), claim(key, alice), time.Minute)
			_, fate, err := call.Wait(context.Background(), time.Now())
			switch {
			case fate == redisstore.NotSent && errors.Is(err, redis.ErrAutoPipelineQueueFull):
				if n < bound {
					t.Errorf("full after %d calls", n)
				}
				return
			case fate != redisstore.Unknown:
				t.Fatalf("call %d: got %v, fate %d", n, err, fate)
			}
		}
		t.Errorf("%d calls wait, the bound is %d", 10*bound, bound)
	})
}
