package kinds_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/thorough"
)

// The number of permits is exact at all times and at the end, although clients die with permits, and replies and
// connections are lost.
func TestPermitSemaphore_Conservation(t *testing.T) {
	t.Parallel()
	acquisitions := 10_000
	if testing.Short() {
		acquisitions = 1000
	}
	conserve(t, locktest.Real(t), 1, 8, acquisitions, 5)
}

// The number of permits is exact in many short runs in a bubble. These runs cut no subscription, because go-redis
// subscribes again under a mutex, which stops the time of a bubble.
func TestPermitSemaphore_ConservationProperty(t *testing.T) {
	t.Parallel()
	for seed := range uint64(thorough.Or(8, 2)) {
		locktest.Parallel(t, fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { conserve(t, locktest.Embedded(t), seed, 4, 150, 4) })
		})
	}
}

// workload is a semaphore with leases, a semaphore without, and clients that fail.
type workload struct {
	locktest.Permits

	kinds   int          // of faults
	players int64        // at a time
	left    atomic.Int64 // acquisitions
	wg      sync.WaitGroup
	over    chan struct{}
	crashes atomic.Int64
	faults  atomic.Int64
	failed  atomic.Int64
	leased  atomic.Int64 // permits with a lease that were acquired and released
	plain   atomic.Int64 // acquisitions of permits without leases
}

const (
	totalPermits = 6
	totalPlain   = 7
	crashLease   = 400 * time.Millisecond
)

func conserve(t *testing.T, b *locktest.Redis, seed uint64, processes, acquisitions, kinds int) {
	t.Helper()
	e := &workload{Permits: locktest.PermitsOf(b), over: make(chan struct{}), kinds: kinds, players: int64(processes)}
	e.left.Store(int64(acquisitions))
	locktest.Must(t, b.Set(t.Context(), "plain", totalPlain, 0).Err())
	var players sync.WaitGroup
	for i := range uint64(processes) {
		random := rand.New(rand.NewPCG(seed, i))
		players.Go(func() { e.player(random) })
	}
	e.wg.Go(e.watch)
	players.Wait()
	close(e.over)
	e.wg.Wait()
	e.wantBack(b.Locks())
	t.Logf("%d acquisitions (%d with and %d without a lease were released), %d crashes, %d faults, %d operations that failed, %d operations remembered",
		acquisitions, e.leased.Load(), e.plain.Load(), e.crashes.Load(), e.faults.Load(), e.failed.Load(), b.ZCard(t.Context(), "{plain}:interlock_ops").Val())
}

// watch checks that the number of permits is right at all times.
func (e *workload) watch() {
	for {
		reply, err := e.Eval(context.Background(), `return {redis.call('GET', KEYS[1]) or '', redis.call('ZCARD', KEYS[2])}`, []string{"pool", locktest.PermitLeases}).Slice()
		if err != nil {
			e.T.Error(err)
			return
		}
		var free int
		if _, err := fmt.Sscan(fmt.Sprint(reply[0]), &free); err == nil && (free < 0 || free+int(reply[1].(int64)) != totalPermits) {
			e.T.Errorf("%d free and %v out, want %d in all", free, reply[1], totalPermits)
			return
		}
		select {
		case <-e.over:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// wantBack checks that all permits are free when all leases have expired.
func (e *workload) wantBack(locks *core.Client) {
	e.T.Helper()
	pool, plain := locks.Semaphore("pool", 0), locks.PlainSemaphore("plain")
	locktest.Eventually(e.T, "all permits are free", func() bool {
		free, err := pool.Available(context.Background())
		locktest.Must(e.T, err)
		out, err := pool.Acquired(context.Background())
		locktest.Must(e.T, err)
		left, err := plain.Available(context.Background())
		locktest.Must(e.T, err)
		return free == totalPermits && out == 0 && left == totalPlain
	})
}

// player runs one process after the other.
func (e *workload) player(random *rand.Rand) {
	proxy, rdb := faultproxy.Around(e.T, e.Client)
	steady, err := core.New(rdb, locktest.Patient) // permits without leases stay taken after the death of a process
	if err != nil {
		e.T.Error(err)
		return
	}
	defer func() {
		if err := steady.Close(context.Background()); err != nil {
			e.T.Error(err)
		}
	}()
	for e.left.Load() > 0 {
		locks, err := core.New(rdb, core.WithWatchdog(crashLease), locktest.Patient)
		if err != nil {
			e.T.Error(err)
			return
		}
		var callers sync.WaitGroup
		for range 3 {
			own := rand.New(rand.NewPCG(random.Uint64(), 1))
			callers.Go(func() { e.caller(locks, steady, proxy, own) })
		}
		lives := e.left.Load() - e.players*(12+random.Int64N(100)) // the number of deaths does not depend on the number of players
		for e.left.Load() > max(lives, 0) {
			time.Sleep(2 * time.Millisecond) // a poll, in real time or in the time of the bubble
		}
		if e.left.Load() > 0 {
			e.crashes.Add(1)
			<-locktest.GoClose(locks)
		}
		callers.Wait()
		<-locktest.GoClose(locks)
	}
}

func (e *workload) fault(proxy *faultproxy.Proxy, random *rand.Rand) {
	e.faults.Add(1)
	switch match := faultproxy.Once(locktest.Scripts); random.IntN(e.kinds) {
	case 4:
		proxy.Cut()
	case 0:
		proxy.DropRequest(match)
	default:
		proxy.DropReply(match)
	}
}

// caller acquires a permit with a lease and some without in turn.
func (e *workload) caller(locks, steady *core.Client, proxy *faultproxy.Proxy, random *rand.Rand) {
	for e.left.Add(-1) >= 0 {
		ctx, cancel := context.Background(), func() {}
		if random.IntN(10) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(3000))*time.Microsecond)
		}
		if random.IntN(20) == 0 {
			e.fault(proxy, random)
		}
		var err error
		count := &e.leased
		if random.IntN(2) == 0 {
			err = useLeased(ctx, locks, random)
		} else {
			count = &e.plain
			err = usePlain(ctx, steady, 1+random.IntN(3))
		}
		cancel()
		switch {
		case errors.Is(err, core.ErrClosed):
			return
		case err != nil:
			e.failed.Add(1)
		default:
			count.Add(1)
		}
	}
}

func useLeased(ctx context.Context, locks *core.Client, random *rand.Rand) error {
	_, hold, err := locks.Semaphore("pool", totalPermits).Acquire(ctx, core.WaitTime(20*time.Second))
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(random.IntN(500)) * time.Microsecond) // the work
	return hold.Release(context.Background())
}

func usePlain(ctx context.Context, locks *core.Client, n int) error {
	if err := locks.PlainSemaphore("plain").Acquire(ctx, n, core.WaitTime(20*time.Second)); err != nil {
		return err
	}
	return locks.PlainSemaphore("plain").Release(context.Background(), n)
}
