package core_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// metered is a recorder of go-redis's own metrics, such as that of redisotel-native: each pool that it sees is a
// label set of every metric.
type metered struct {
	mu     sync.Mutex
	pools  map[string]bool
	closed map[string]int // connections, by reason
}

func (m *metered) pool(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pools[name] = true
}

func (m *metered) counts() (pools, closed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.closed {
		closed += n
	}
	return len(m.pools), closed
}

func (m *metered) RegisterPool(name string, _ redis.Pooler)             { m.pool(name) }
func (m *metered) RegisterPubSubPool(name string, _ redis.PubSubPooler) { m.pool(name) }
func (*metered) UnregisterPool(redis.Pooler)                            {}
func (*metered) UnregisterPubSubPool(redis.PubSubPooler)                {}

func (m *metered) RecordConnectionClosed(_ context.Context, cn redis.ConnInfo, reason string, _ error) {
	if cn != nil {
		m.pool(cn.PoolName())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed[reason]++
}

func (m *metered) RecordConnectionCreateTime(_ context.Context, _ time.Duration, cn redis.ConnInfo) {
	m.pool(cn.PoolName())
}

func (*metered) RecordOperationDuration(context.Context, time.Duration, redis.Cmder, int, error, redis.ConnInfo, int) {
}

func (*metered) RecordPipelineOperationDuration(context.Context, time.Duration, string, int, int, error, redis.ConnInfo, int) {
}

func (*metered) RecordConnectionRelaxedTimeout(context.Context, int, redis.ConnInfo, string, string) {
}
func (*metered) RecordConnectionHandoff(context.Context, redis.ConnInfo, string)           {}
func (*metered) RecordError(context.Context, string, redis.ConnInfo, string, bool, int)    {}
func (*metered) RecordMaintenanceNotification(context.Context, redis.ConnInfo, string)     {}
func (*metered) RecordConnectionWaitTime(context.Context, time.Duration, redis.ConnInfo)   {}
func (*metered) RecordPubSubMessage(context.Context, redis.ConnInfo, string, string, bool) {}
func (*metered) RecordStreamLag(context.Context, time.Duration, redis.ConnInfo, string, string, string) {
}

// However often the connections of locks are made anew, the metrics of go-redis see no other pools than those of the
// caller's client, and those of one more client for OnConnect. Not parallel: the recorder is one for the process.
func TestNew_PoolsSeenByMetrics(t *testing.T) { //nolint:paralleltest // see above
	for name, test := range map[string]struct {
		change func(o *redis.Options)
		more   int
	}{
		"connections":          {change: func(*redis.Options) {}},
		"with ConnMaxLifetime": {change: func(o *redis.Options) { o.ConnMaxLifetime = 100 * time.Millisecond }},
		"with OnConnect": {
			change: func(o *redis.Options) {
				o.OnConnect = func(ctx context.Context, cn *redis.Conn) error { return cn.Ping(ctx).Err() }
			},
			more: 3, // the names of one client for its pool, its connections and its subscriptions
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := &metered{pools: make(map[string]bool), closed: make(map[string]int)}
				b := locktest.Embedded(t)
				redis.SetOTelRecorder(seen)
				defer redis.SetOTelRecorder(nil)
				proxy, rdb := faultproxy.Around(t, b.Client, test.change)
				before, _ := seen.counts()
				locks := locktest.NewClient(t, rdb)
				var made int
				watch := proxy.Watch(faultproxy.Command("ping"))
				for range 50 {
					b.Warm(locks)
					proxy.Cut()
					locktest.Pass(time.Second)
				}
				made = watch.Hits()
				after, closed := seen.counts()
				if made < 50 {
					t.Errorf("%d connections, want 50 or more", made)
				}
				if after > before+test.more {
					t.Errorf("%d pools after %d connections, want the %d of the client and %d more: %q",
						after, made, before, test.more, slices.Sorted(maps.Keys(seen.pools)))
				}
				if test.more == 0 && closed > 0 {
					t.Errorf("%d connections of pools have ended: %v", closed, seen.closed)
				}
			})
		})
	}
}
