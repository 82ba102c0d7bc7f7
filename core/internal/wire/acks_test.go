package wire_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/interlock-go/interlock/core/redistest"
)

// A command that replicas have to acknowledge ends with its time limit, but the attempt to connect continues,
// and the next command uses its connection. So a connection that takes long to prepare needs only a few
// attempts.
func TestAcker_ConnectionOutlivesTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		rdb := embeddedClient(t, func(o *redis.Options) {
			dial := o.Dialer
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				made.Add(1)
				return dial(ctx, network, addr)
			}
			o.OnConnect = func(context.Context, *redis.Conn) error {
				time.Sleep(2500 * time.Millisecond) // longer than the timeout
				return nil
			}
		})
		r, err := wire.New(rdb, wire.Config{Timeout: time.Second, Replication: wire.Replication{Acks: 1, Timeout: time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{Redis: r, t: t, rdb: rdb}
		defer time.Sleep(3 * time.Second) // virtual time, in which OnConnect ends by itself
		defer b.Close()
		acknowledged := func() wire.Fate {
			call := b.look(time.Now(), key)
			call.Acknowledge()
			_, fate, _ := call.Wait(t.Context(), time.Now().Add(time.Second))
			if fate == wire.Unknown {
				time.Sleep(time.Millisecond) // virtual time, because the command ends at the same moment
				_, fate, _ = call.Late()
			}
			return fate
		}
		var fate wire.Fate
		for range 4 {
			if fate = acknowledged(); fate == wire.Unknown {
				t.Error("the fate is unknown, want not sent")
			}
			time.Sleep(time.Millisecond) // virtual time
		}
		if fate != wire.Answered || made.Load() > 5 { // one for the commands, and a few further attempts
			t.Errorf("fate %d, %d connections", fate, made.Load())
		}
	})
}

// Calls that are sent together are acknowledged together. If the node of the first call is not known, no call
// is sent, and none counts as acknowledged.
func TestRedis_Together_UnknownNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		rdb := redistest.New(t).Client()
		if err := rdb.Do(t.Context(), "script", "load", taking.Source).Err(); err != nil {
			t.Fatal(err)
		}
		dial := func(ctx context.Context) (net.Conn, error) { return rdb.Options().Dialer(ctx, "", "") }
		cluster := newBoard(t, map[string]dialNode{"10.0.0.1:6379": dial}, func(o *redis.ClusterOptions) {
			slots := o.ClusterSlots
			o.ClusterSlots = func(ctx context.Context) ([]redis.ClusterSlot, error) {
				if asked.Add(1) <= 2 {
					return nil, errors.New("unknown")
				}
				return slots(ctx)
			}
		})
		cluster.give("10.0.0.1:6379")
		r, err := wire.New(cluster.client, wire.Config{Timeout: time.Second, Replication: wire.Replication{Acks: 1, Timeout: time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{Redis: r, t: t}
		defer b.Close()
		var values [3]wire.Call
		calls := make([]*wire.Call, len(values))
		for i, key := range []string{"first", "second", "third"} {
			values[i] = b.take(time.Now(), key, alice)
			calls[i] = &values[i]
			calls[i].Acknowledge()
		}
		b.Together(t.Context(), soon(), calls)
		for i, call := range calls {
			if got, _, err := call.Wait(t.Context(), soon()); err == nil && call.Shortfall() == nil {
				t.Errorf("call %d: got %v, acknowledged without a replica", i, got)
			}
		}
	})
}
