package wire_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/interlock-go/interlock/core/redistest"
)

// The queue for a Redis that does not answer is bounded, even after the callers have given up. Calls beyond
// the bound fail, and it is known that they were not sent.
func TestLines_QueueIsBounded(t *testing.T) {
	t.Parallel()
	redisserver.Each(t, func(t *testing.T, rdb *redis.Client) {
		const bound = 20
		proxy, through := faultproxy.Around(t, rdb, func(o *redis.Options) {
			o.AutoPipelineOptions = redis.DefaultAutoPipelineOptions()
			o.AutoPipelineOptions.MaxQueuedCommands = bound
		})
		b := newBench(t, through)
		proxy.BlackHole(true)
		defer proxy.Refuse(true) // so that the test need not wait for it
		for n := range 10 * bound {
			call := b.take(time.Now(), key, alice)
			_, fate, err := call.Wait(context.Background(), time.Now())
			switch {
			case fate == wire.NotSent && errors.Is(err, redis.ErrAutoPipelineQueueFull):
				if n < bound {
					t.Errorf("full after %d calls", n)
				}
				return
			case fate != wire.Unknown:
				t.Fatalf("call %d: got %v, fate %d", n, err, fate)
			}
		}
		t.Errorf("%d calls wait, the bound is %d", 10*bound, bound)
	})
}

// onEmbedded runs a test in a bubble, with an embedded Redis behind a proxy. The server knows the scripts.
func onEmbedded(t *testing.T, body func(t *testing.T, proxy *faultproxy.Proxy, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		proxy, b := proxied(t, redistest.New(t).Client())
		body(t, proxy, b)
	})
}

// The first call on a hanging connection waits and gets its answer if the connection continues. A call behind
// it may be sent again and may get its answer late. Later calls get their answers on another connection.
func TestLines_HangingConnection(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(t *testing.T, proxy *faultproxy.Proxy, b *bench) {
		stuck := proxy.HoldRequest(faultproxy.Once(faultproxy.All(scriptCommand, faultproxy.Containing("stuck"))))
		start := time.Now()
		time.AfterFunc(time.Second, stuck.Release)
		var all sync.WaitGroup
		all.Go(func() {
			b.acquire("stuck", alice)
			if took := time.Since(start); took != time.Second {
				t.Errorf("the first call took until %s", took)
			}
		})
		synctest.Wait()
		behind := b.take(start, "behind", bob)
		all.Go(func() {
			_, fate, err := behind.Wait(t.Context(), soon())
			if took := time.Since(start); fate != wire.Unknown || took < 50*time.Millisecond || took > 100*time.Millisecond {
				t.Errorf("behind it: got %v, fate %d, after %s", err, fate, took)
			}
			if _, _, err := behind.Late(); !wire.Pending(err) {
				t.Errorf("before the answer: got %v", err)
			}
		})
		time.Sleep(100 * time.Millisecond) // virtual time
		b.acquire("other", alice)
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("the later call took until %s", took)
		}
		all.Wait()
		synctest.Wait()
		if got, fate, err := behind.Late(); err != nil || fate != wire.Answered || got != int64(1) {
			t.Errorf("late: got %+v, %v, fate %d", got, err, fate)
		}
	})
}

// Calls that are sent together behind a hanging call are sent again on another connection, like a single
// call.
func TestRedis_Together_HangingConnection(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(t *testing.T, proxy *faultproxy.Proxy, b *bench) {
		stuck := proxy.HoldRequest(faultproxy.Once(faultproxy.All(scriptCommand, faultproxy.Containing("stuck"))))
		defer stuck.Release()
		first := b.take(time.Now(), "stuck", alice)
		var all sync.WaitGroup
		all.Go(func() { _, _, _ = first.Wait(t.Context(), time.Now().Add(5*time.Second)) })
		synctest.Wait()
		start := time.Now()
		one, other := b.take(start, "one", alice), b.take(start, "other", alice)
		calls := []*wire.Call{&one, &other}
		for _, call := range calls {
			call.OnHang(wire.SendsAgain)
		}
		limit := start.Add(5 * time.Second)
		b.Together(t.Context(), limit, calls)
		for _, call := range calls {
			got, fate, err := call.Wait(t.Context(), limit)
			if took := time.Since(start); got != int64(1) || !call.Twice() || took > time.Second {
				t.Errorf("got %v, %v, fate %d, sent twice: %t, after %s", got, err, fate, call.Twice(), took)
			}
		}
		all.Wait()
	})
}

// An operation whose last call was on a hanging connection can find a node silent. Calls that wait for a
// hanging connection then end like all other calls.
func TestLines_SilenceAfterAHang(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(t *testing.T, proxy *faultproxy.Proxy, b *bench) {
		b.acquire(key, alice)
		stuck := proxy.HoldRequest(faultproxy.Once(scriptCommand))
		defer stuck.Release()
		call := b.look(time.Now(), key)
		_, _, hang := call.Wait(t.Context(), soon())
		if hang == nil {
			t.Fatal("the call got an answer on a connection that hangs")
		}
		proxy.BlackHole(true)
		time.Sleep(time.Millisecond) // virtual time, so that nothing else finds the silence at the same moment
		time.AfterFunc(30*time.Second, func() { b.RecordTimeout(key, hang) })
		for _, what := range []wire.OnHang{wire.WaitsOn, wire.WaitsOn, wire.SendsAgain} { // the first one waits when the silence begins
			call := b.look(time.Now(), key)
			call.OnHang(what)
			_, fate, err := call.Wait(t.Context(), time.Now().Add(time.Minute))
			if !errors.Is(err, wire.ErrSilent) || fate == wire.Answered || call.Twice() {
				t.Errorf("got %v, fate %d, sent twice: %t", err, fate, call.Twice())
			}
		}
	})
}

// A call on a hanging connection ends with its limit.
func TestCall_Wait_HangEndsWithTheLimit(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(t *testing.T, proxy *faultproxy.Proxy, b *bench) {
		stuck := proxy.HoldRequest(faultproxy.Once(scriptCommand))
		defer stuck.Release()
		start := time.Now()
		call := b.take(start, key, alice)
		_, fate, err := call.Wait(t.Context(), start.Add(5*time.Second))
		if took := time.Since(start); fate != wire.Unknown || took != 5*time.Second {
			t.Errorf("got %v, fate %d, after %s", err, fate, took)
		}
	})
}

// The calls on a dead connection may be sent again within the timeout, here 30 s.
func TestLines_DeadConnection(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(t *testing.T, proxy *faultproxy.Proxy, b *bench) {
		dead := proxy.HoldRequest(faultproxy.Once(scriptCommand))
		defer dead.Release()
		start := time.Now()
		call := b.take(start, key, alice)
		_, fate, err := call.Wait(t.Context(), soon())
		if took := time.Since(start); fate != wire.Unknown || took < 7*time.Second || took > 8*time.Second {
			t.Errorf("got %v, fate %d, after %s", err, fate, took)
		}
		b.acquire(key, bob)
		if took := time.Since(start); took > 8*time.Second {
			t.Errorf("sent again: took until %s", took)
		}
		time.Sleep(30*time.Second - time.Since(start) + time.Second) // virtual time
		if _, fate, err := call.Late(); fate != wire.Unknown || wire.Pending(err) {
			t.Errorf("after the timeout: got %v, fate %d", err, fate)
		}
	})
}

// A call whose segment is lost still gets its answer, and so does a call behind it.
func TestLines_SlowReply(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(_ *testing.T, proxy *faultproxy.Proxy, b *bench) {
		for range 10 { // more than are kept for late answers
			proxy.DelayReply(faultproxy.Once(scriptCommand), 250*time.Millisecond)
			b.acquire(key, alice)
		}
	})
}

// The next call is answered, however many connections have hung one after the other.
func TestLines_ManyHang(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(t *testing.T, proxy *faultproxy.Proxy, b *bench) {
		held := proxy.HoldRequest(faultproxy.All(scriptCommand, faultproxy.Containing("stuck")))
		var all sync.WaitGroup
		for n := range 12 { // more than are kept for late answers
			all.Go(func() {
				call := b.take(time.Now(), "stuck", fmt.Sprint(n))
				if _, fate, _ := call.Wait(t.Context(), soon()); fate != wire.Unknown {
					t.Errorf("stuck call %d: fate %d", n, fate)
				}
			})
			time.Sleep(100 * time.Millisecond) // virtual time
			start := time.Now()
			b.acquire(fmt.Sprint("other", n), alice)
			if took := time.Since(start); took > 0 {
				t.Errorf("the call after %d stuck ones took %s", n+1, took)
			}
		}
		all.Wait()
		held.Release()
	})
}

// If no other connection can be made, it is not known whether Redis would answer. So the call waits.
func TestLines_NoOtherConnection(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(t *testing.T, proxy *faultproxy.Proxy, b *bench) {
		proxy.HoldRequest(faultproxy.Command("client"))
		proxy.DelayReply(faultproxy.Once(scriptCommand), 3*time.Second)
		start := time.Now()
		b.acquire(key, alice)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// A lone call reads its reply and can still be interrupted.
func TestPipeline_LoneCallIsInterrupted(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(t *testing.T, proxy *faultproxy.Proxy, b *bench) {
		for range 20 { // enough calls to count as a lone caller
			reply(b, b.look(time.Now(), key))
		}
		proxy.HoldRequest(faultproxy.Command("client"))
		held := proxy.HoldReply(faultproxy.Once(scriptCommand))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		start := time.Now()
		call := b.take(start, key, alice)
		_, fate, err := call.Wait(ctx, soon())
		if took := time.Since(start); !errors.Is(err, context.Canceled) || fate != wire.Unknown || took > 20*time.Millisecond {
			t.Errorf("got %v, fate %d, after %s", err, fate, took)
		}
		held.Release()
		if got := reply(b, call); got != int64(1) {
			t.Errorf("late reply: got %+v", got)
		}
	})
}

// A connection that ends while there are no calls is not used for the next call.
func TestPipeline_EndedWhileIdle(t *testing.T) {
	t.Parallel()
	onEmbedded(t, func(t *testing.T, proxy *faultproxy.Proxy, b *bench) {
		for n := range 20 {
			reply(b, b.look(time.Now(), key))
			if n%5 == 0 {
				time.Sleep(time.Second) // virtual time
			}
			if n%7 == 0 {
				time.Sleep(50 * time.Millisecond) // virtual time
				proxy.Cut()
				synctest.Wait()
			}
		}
	})
}

// A distant Redis does not count as hanging, even if it was near before. A call takes one round trip.
func TestLines_DistantRedis(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		latency, through := faultproxy.Far(t, redistest.New(t).Client(), 0)
		s, err := wire.New(through, wire.Config{Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{Redis: s, t: t, rdb: through}
		defer s.Close()
		b.acquire(key, alice)
		for _, trip := range []time.Duration{0, 900 * time.Millisecond, 30 * time.Millisecond, 600 * time.Millisecond} {
			latency.Set(trip)
			for range 5 {
				start := time.Now()
				reply(b, b.look(start, key))
				if took := time.Since(start); took > trip+time.Millisecond {
					t.Errorf("round trip %s: took %s", trip, took)
				}
			}
		}
	})
}

// Many callers call, a few or all of them at the same time. Each gets its own answer.
func TestPipeline_EveryCallerGetsItsAnswer(t *testing.T) {
	t.Parallel()
	redisserver.Each(t, func(t *testing.T, rdb *redis.Client) {
		b := newBench(t, rdb)
		b.acquire(key, alice) // the script is known
		for _, callers := range []int{1, 3, 20, 200} {
			var all sync.WaitGroup
			for i := range callers {
				all.Go(func() {
					mine := fmt.Sprintf("%d:%d", callers, i)
					for range 20 {
						acquire := b.take(time.Now(), mine, mine)
						granted, _, err := acquire.Wait(context.Background(), soon())
						if err != nil || granted != int64(1) {
							t.Errorf("acquire: %+v, %v", granted, err)
						}
						state := b.look(time.Now(), mine)
						snap, _, err := state.Wait(context.Background(), soon())
						if err != nil || !reflect.DeepEqual(snap, []any{mine}) {
							t.Errorf("state: %+v, %v", snap, err)
						}
						release := b.leave(time.Now(), mine, mine)
						released, _, err := release.Wait(context.Background(), soon())
						if err != nil || released != int64(1) {
							t.Errorf("release: %+v, %v", released, err)
						}
					}
				})
			}
			all.Wait()
		}
	})
}
