package wire_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/interlock-go/interlock/core/redistest"
)

// Close ends all goroutines and every call, whatever the state of the connection that the call waits for.
func TestRedis_Close_InEveryState(t *testing.T) {
	t.Parallel()
	stuck := faultproxy.All(scriptCommand, faultproxy.Containing("stuck"))
	for name, prepare := range map[string]func(proxy *faultproxy.Proxy, b *bench){
		"connecting": func(proxy *faultproxy.Proxy, _ *bench) {
			proxy.HoldRequest(faultproxy.Command("client"))
			proxy.Cut()
			synctest.Wait()
		},
		"open":       func(proxy *faultproxy.Proxy, _ *bench) { proxy.HoldReply(stuck) },
		"black hole": func(proxy *faultproxy.Proxy, _ *bench) { proxy.BlackHole(true) },
		"second connecting": func(proxy *faultproxy.Proxy, b *bench) {
			b.acquire(key, alice)
			proxy.HoldRequest(stuck)
			proxy.HoldRequest(faultproxy.Command("client"))
		},
		"leaving": func(proxy *faultproxy.Proxy, b *bench) {
			b.acquire(key, alice)
			proxy.HoldRequest(stuck)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEmbedded(t, func(t *testing.T, proxy *faultproxy.Proxy, b *bench) {
				prepare(proxy, b)
				var all sync.WaitGroup
				for range 5 {
					all.Go(func() {
						call := b.take(time.Now(), "stuck", alice)
						if _, fate, err := call.Wait(context.Background(), soon()); fate == wire.Answered {
							t.Errorf("got %v, fate %d", err, fate)
						}
					})
				}
				time.Sleep(200 * time.Millisecond) // virtual time
				start := time.Now()
				b.Close()
				all.Wait()
				if took := time.Since(start); took > 0 {
					t.Errorf("took %s", took)
				}
				call := b.take(time.Now(), "later", alice)
				if _, fate, err := call.Wait(context.Background(), soon()); fate != wire.NotSent || !errors.Is(err, redis.ErrClosed) {
					t.Errorf("later: got %v, fate %d", err, fate)
				}
			})
		})
	}
}

// However many callers call at once, each gets either an answer or the error that the queue is full.
func TestLines_QueueIsFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const bound, callers = 1500, 2000
		proxy, through := faultproxy.Around(t, redistest.New(t).Client(), func(o *redis.Options) {
			o.AutoPipelineOptions = redis.DefaultAutoPipelineOptions()
			o.AutoPipelineOptions.MaxQueuedCommands = bound
		})
		b := storeOf(t, through)
		defer b.Close()
		b.acquire(key, alice)
		reply(b, b.look(time.Now(), key)) // the script is known
		held := proxy.HoldRequest(faultproxy.Once(scriptCommand))
		time.AfterFunc(30*time.Millisecond, held.Release)
		var answered, full atomic.Int64
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				call := b.look(time.Now(), key)
				switch got, fate, err := call.Wait(context.Background(), soon()); {
				case err == nil && reflect.DeepEqual(got, []any{alice}):
					answered.Add(1)
				case fate == wire.NotSent && errors.Is(err, redis.ErrAutoPipelineQueueFull):
					full.Add(1)
				default:
					t.Errorf("got %+v, %v, fate %d", got, err, fate)
				}
			})
		}
		all.Wait()
		if answered.Load() != bound || full.Load() != callers-bound {
			t.Errorf("%d answered, %d refused", answered.Load(), full.Load())
		}
		b.acquire("next", alice)
	})
}
