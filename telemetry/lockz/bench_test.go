package lockz_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

func benchPage(b *testing.B) *lockz.Page {
	b.Helper()
	p, err := lockz.New()
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkObserve is what an acquisition and its hold spend here: the calls that core makes,
// without core and Redis.
func BenchmarkObserve(b *testing.B) {
	for _, contended := range []bool{false, true} {
		b.Run("contended="+strconv.FormatBool(contended), func(b *testing.B) {
			p := benchPage(b)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					observeOne(b.Context(), p, "shop:order:"+strconv.Itoa(i%1000), contended)
				}
			})
		})
	}
}

func observeOne(ctx context.Context, p *lockz.Page, key string, contended bool) {
	now := time.Now()
	a := core.Acquisition{Key: key, Keys: 1, Kind: core.KindReentrant, Label: "POST /orders/:id/pay", Start: now}
	observed := p.ObserveAcquireStart(ctx, a)
	if contended {
		p.ObserveContention(observed, core.Contention{Acquisition: a, BlockedBy: "5f2c1f0e-6f0a-4b7e-9a7e-0d6f5a1c2b3d:7"})
	}
	p.ObserveAcquireEnd(observed, core.AcquireResult{Acquisition: a, Outcome: core.OutcomeAcquired, Waited: 90 * time.Microsecond, Contended: contended})
	hold := core.HoldInfo{Acquisition: a, Field: "5f2c1f0e-6f0a-4b7e-9a7e-0d6f5a1c2b3d:" + key[11:], Lease: 30 * time.Second, Acquired: now}
	held := p.ObserveHoldStart(ctx, hold)
	p.ObserveHoldEnd(held, core.HoldResult{HoldInfo: hold, Held: 3 * time.Millisecond})
}

// BenchmarkPage is the page, and the JSON of 1,000 rows, with 10,000 waiters that hold a lock
// each.
func BenchmarkPage(b *testing.B) {
	p := benchPage(b)
	for i := range 10_000 {
		n := strconv.Itoa(i)
		a := core.Acquisition{Key: "shop:order:" + n, Keys: 1, Kind: core.KindReentrant, Label: "pay", Start: time.Now()}
		p.ObserveHoldStart(b.Context(), core.HoldInfo{Acquisition: a, Field: "5f2c1f0e-6f0a-4b7e-9a7e-0d6f5a1c2b3d:" + n, Acquired: time.Now()})
		a.Key = "shop:hot"
		ctx := p.ObserveAcquireStart(b.Context(), a)
		p.ObserveContention(ctx, core.Contention{Acquisition: a})
	}
	for _, target := range []string{"/", "/?format=json"} {
		b.Run("GET "+target, func(b *testing.B) {
			for b.Loop() {
				w := httptest.NewRecorder()
				p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
				if w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}

// BenchmarkThroughput compares the turns at one key of 10,000 callers, and the round trips of
// eight callers at keys of their own, with the page as observer and without, in turn: on a
// redis-server, or where there is none on the embedded Redis. Beside others on the machine the
// turns say little; the processor time of a turn says more, in which that of the redis-server is
// not included.
func BenchmarkThroughput(b *testing.B) {
	rdb := benchRedis(b)
	for _, load := range []struct {
		name    string
		callers int
		keys    int
	}{{"10000 waiters", 10_000, 1}, {"no waiter", 8, 8}} {
		b.Run(load.name, func(b *testing.B) {
			plain, observed := benchClient(b, rdb), benchClient(b, rdb, core.WithObserver(benchPage(b)))
			turnsOf(b, plain, load.callers, load.keys)
			var without, with turns
			for b.Loop() { // the machine drifts: each is the first one once
				without.add(turnsOf(b, plain, load.callers, load.keys))
				with.add(turnsOf(b, observed, load.callers, load.keys))
				with.add(turnsOf(b, observed, load.callers, load.keys))
				without.add(turnsOf(b, plain, load.callers, load.keys))
			}
			b.ReportMetric(float64(with.count)/float64(without.count), "turns-ratio")
			b.ReportMetric(with.each()/without.each(), "cpu-ratio")
			b.ReportMetric(without.each(), "cpu-ns/turn")
		})
	}
}

// turns are those of a load, and the processor time that they took.
type turns struct {
	count int64
	cpu   time.Duration
}

func (t *turns) add(other turns) {
	t.count += other.count
	t.cpu += other.cpu
}

func (t *turns) each() float64 { return float64(t.cpu) / float64(t.count) }

// benchRound is how long one load lasts.
const benchRound = 500 * time.Millisecond

// turnsOf counts the turns of one load, from when all callers are there.
func turnsOf(b *testing.B, locks *core.Client, callers, keys int) turns {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var count atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		lock := locks.Lock("bench:" + strconv.Itoa(i%keys))
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, hold, err := lock.Acquire(ctx, core.Label("bench")); err == nil {
					count.Add(1)
					_ = hold.Release(b.Context())
				}
			}
		})
	}
	for locks.Stats().Waiters < callers*99/100 && callers > keys {
		time.Sleep(time.Millisecond) // a look every so often at whether all are there
	}
	before, cpu := count.Load(), processorTime()
	time.Sleep(benchRound) // the load
	load := turns{count.Load() - before, processorTime() - cpu}
	cancel()
	wg.Wait()
	return load
}

func benchClient(b *testing.B, rdb *redis.Client, opts ...core.Option) *core.Client {
	b.Helper()
	locks, err := core.New(rdb, append(opts, core.WithMaxWaiters(100_000), core.WithMaxWaitersPerKey(100_000))...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = locks.Close(context.WithoutCancel(b.Context())) })
	return locks
}

// benchRedis is a redis-server of its own.
func benchRedis(b *testing.B) *redis.Client {
	b.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return redistest.New(b).Client()
	}
	socket := filepath.Join(b.TempDir(), "redis.sock")
	server := exec.Command(program, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no")
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	b.Cleanup(func() {
		_ = rdb.Close()
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	for rdb.Ping(b.Context()).Err() != nil {
		time.Sleep(10 * time.Millisecond) // a look every so often at whether it is up
	}
	return rdb
}
