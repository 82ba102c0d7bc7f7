package wire_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// A command that replicas have to acknowledge ends with its limit, and the connection that is being made for it does
// not: the next command takes it. However long it takes to prepare a connection, there are few attempts and one serves.
func TestAcker_ConnectionOutlivesTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		rdb := altered(t, func(o *redis.Options) {
			dial := o.Dialer
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				made.Add(1)
				return dial(ctx, network, addr)
			}
			o.OnConnect = func(context.Context, *redis.Conn) error {
				time.Sleep(2500 * time.Millisecond) // the fault, held open: it is longer than the timeout
				return nil
			}
		})
		r, err := wire.New(rdb, wire.Config{Timeout: time.Second, Replication: wire.Replication{Acks: 1, Timeout: time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{Redis: r, t: t, rdb: rdb}
		defer time.Sleep(3 * time.Second) // in the time of the bubble: OnConnect ends by itself
		defer b.Close()
		acknowledged := func() wire.Fate {
			call := b.look(time.Now(), key)
			call.Acknowledge()
			_, fate, _ := call.Wait(t.Context(), time.Now().Add(time.Second))
			if fate == wire.Unknown {
				time.Sleep(time.Millisecond) // in the time of the bubble: the command ends at the same moment
				_, fate, _ = call.Late()
			}
			return fate
		}
		var fate wire.Fate
		for range 4 {
			if fate = acknowledged(); fate == wire.Unknown {
				t.Error("not known not to have been sent")
			}
			time.Sleep(time.Millisecond) // in the time of the bubble
		}
		if fate != wire.Answered || made.Load() > 5 { // one, and the attempts beside it
			t.Errorf("fate %d, %d connections", fate, made.Load())
		}
	})
}
