package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/redis/go-redis/v9"
)

// TestFault_BlackHole_HoldersNeverOverlap swallows everything between a holder and
// Redis at different moments of the renewal. The holder, who asks its context
// before every step, must have made its last step before anybody else has the lock.
func TestFault_BlackHole_HoldersNeverOverlap(t *testing.T) {
	t.Parallel()
	const watchdog = 600 * time.Millisecond
	server := redisserver.Start(t)
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			proxy := faultproxy.New(t, server.Addr())
			rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
			defer rdb.Close()
			cut, err := core.New(rdb, core.WithWatchdog(watchdog), patient)
			if err != nil {
				t.Fatal(err)
			}
			defer cut.Close(t.Context())
			other := newLocks(t, server, patient)
			defer faultClose(t, other)

			lock := fmt.Sprintf("hole:%d", i)
			ctx, hold, err := cut.Lock(lock).Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan time.Time, 1)
			go func() { ended <- lastStep(ctx) }()
			next := make(chan time.Time, 1)
			var waiter sync.WaitGroup
			defer waiter.Wait()
			waiter.Go(func() {
				_, taken, err := other.Lock(lock).Acquire(context.Background(), core.WaitTime(20*time.Second))
				next <- time.Now()
				if err != nil {
					t.Errorf("the other: %v", err)
					return
				}
				if err := taken.Release(context.Background()); err != nil {
					t.Errorf("the other's release: %v", err)
				}
			})
			time.Sleep(time.Duration(i) * watchdog / 20) // the moment of the fault, spread over more than a renewal period
			proxy.BlackHole(true)
			end, start := <-ended, <-next
			if overlap := end.Sub(start); overlap > 0 {
				t.Errorf("the holders overlapped by %s", overlap)
			}
			if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLost) {
				t.Errorf("cause of the context: %v", cause)
			}
			if err := hold.Release(t.Context()); !errors.Is(err, core.ErrLost) {
				t.Errorf("release after the loss: %v", err)
			}
		})
	}
}

// lastStep works under a lock until its context says that it must not any more, and
// gives the time of the last step that was allowed.
func lastStep(ctx context.Context) (last time.Time) {
	for {
		now := time.Now()
		if ctx.Err() != nil {
			return last
		}
		last = now
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Microsecond):
		}
	}
}

// TestFault_BlackHole_SubscriptionIsNoticed swallows everything on the subscription
// connection of a waiter. It must find the free lock by its poll, and have a
// working subscription again after that.
func TestFault_BlackHole_SubscriptionIsNoticed(t *testing.T) {
	t.Parallel()
	server := redisserver.Start(t)
	proxy := faultproxy.New(t, server.Addr())
	rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	defer rdb.Close()
	locks, err := core.New(rdb, patient)
	if err != nil {
		t.Fatal(err)
	}
	defer faultClose(t, locks)
	silent := proxy.HoldReply(faultproxy.Command("SUBSCRIBE")) // never confirmed: nothing comes through
	holder := newLocks(t, server, patient)
	defer faultClose(t, holder)

	handOver := func() time.Duration {
		_, hold, err := holder.Lock("sub").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan time.Time, 1)
		var waiter sync.WaitGroup
		defer waiter.Wait()
		waiter.Go(func() {
			_, h, err := locks.Lock("sub").Acquire(context.Background(), core.WaitTime(20*time.Second))
			got <- time.Now()
			if err != nil {
				t.Errorf("waiter: %v", err)
				return
			}
			if err := h.Release(context.Background()); err != nil {
				t.Errorf("waiter's release: %v", err)
			}
		})
		<-silent.Hit()
		time.Sleep(100 * time.Millisecond) // the waiter sleeps now
		released := time.Now()
		if err := hold.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		return (<-got).Sub(released)
	}
	if d := handOver(); d > 1500*time.Millisecond {
		t.Errorf("without a subscription the waiter needed %s", d)
	}
	// The connection is given up after three missed pongs, and made again.
	silent.Remove()
	proxy.Cut()
	fast := func() bool { return handOver() < 300*time.Millisecond }
	for range 5 {
		if fast() {
			return
		}
	}
	t.Error("the subscription did not come back")
}
