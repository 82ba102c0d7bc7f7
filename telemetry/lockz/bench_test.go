package lockz_test

import (
	"context"
	"math"
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
			o := benchPage(b).Observer()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					observeOne(b.Context(), o, "shop:order:"+strconv.Itoa(i%1000), contended)
				}
			})
		})
	}
}

func observeOne(ctx context.Context, o *core.Observer, key string, contended bool) {
	now := time.Now()
	a := core.Acquisition{Key: key, Keys: 1, Kind: core.KindReentrant, Label: "POST /orders/:id/pay", Start: now}
	observed := o.AcquireStart(ctx, a)
	if contended {
		o.Contention(observed, core.Contention{Acquisition: a, BlockedBy: "5f2c1f0e-6f0a-4b7e-9a7e-0d6f5a1c2b3d:7"})
	}
	o.AcquireEnd(observed, core.AcquireResult{Acquisition: a, Outcome: core.OutcomeAcquired, Waited: 90 * time.Microsecond, Contended: contended})
	hold := core.HoldInfo{Acquisition: a, Field: "5f2c1f0e-6f0a-4b7e-9a7e-0d6f5a1c2b3d:" + key[11:], Lease: 30 * time.Second, Acquired: now}
	held := o.HoldStart(ctx, hold)
	o.HoldEnd(held, core.HoldResult{HoldInfo: hold, Held: 3 * time.Millisecond})
}

// BenchmarkPage is the page, and the JSON of 1,000 rows, with 10,000 waiters that hold a lock
// each.
func BenchmarkPage(b *testing.B) {
	p := benchPage(b)
	o := p.Observer()
	for i := range 10_000 {
		n := strconv.Itoa(i)
		a := core.Acquisition{Key: "shop:order:" + n, Keys: 1, Kind: core.KindReentrant, Label: "pay", Start: time.Now()}
		o.HoldStart(b.Context(), core.HoldInfo{Acquisition: a, Field: "5f2c1f0e-6f0a-4b7e-9a7e-0d6f5a1c2b3d:" + n, Acquired: time.Now()})
		a.Key = "shop:hot"
		ctx := o.AcquireStart(b.Context(), a)
		o.Contention(ctx, core.Contention{Acquisition: a})
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

// benchLoad is so many callers at so many keys, each of whom works for a while with the lock.
type benchLoad struct {
	name    string
	callers int
	keys    int
	work    time.Duration
}

// BenchmarkThroughput compares the turns at one key of 10,000 callers, and the round trips of
// eight callers at keys of their own, with the page as observer and without, in turn: on a
// redis-server, or where there is none on the embedded Redis. Nobody does anything with the lock,
// so that nothing hides what a turn costs; but in one load everybody works for 1 ms, as handlers
// do. turns-ratio is the mean of the rounds, std-error its standard error: with the page compared to itself it is several percent
// after a few rounds. Beside others on the machine the turns say little; the processor time of a
// turn says more, in which that of the redis-server is not included.
func BenchmarkThroughput(b *testing.B) {
	rdb := benchRedis(b)
	for _, load := range []benchLoad{{"10000 waiters", 10_000, 1, 0}, {"10000 waiters that work", 10_000, 1, time.Millisecond}, {"no waiter", 8, 8, 0}} {
		b.Run(load.name, func(b *testing.B) {
			var without, with turns
			var ratios []float64
			for b.Loop() {
				plain, observed := benchRoundOf(b, rdb, len(ratios), load)
				without.add(plain)
				with.add(observed)
				ratios = append(ratios, float64(observed.count)/float64(plain.count))
			}
			mean, deviation := spread(ratios)
			b.ReportMetric(mean, "turns-ratio")
			b.ReportMetric(deviation/math.Sqrt(float64(len(ratios))), "std-error")
			b.ReportMetric(with.each()/without.each(), "cpu-ratio")
			b.ReportMetric(without.each(), "cpu-ns/turn")
		})
	}
}

// benchRoundOf is one round with clients of its own, since two clients of one process are never
// quite alike, and the machine drifts: within a round each is the first one once, and every other
// round begins with the other one.
func benchRoundOf(b *testing.B, rdb *redis.Client, round int, load benchLoad) (without, with turns) {
	b.Helper()
	plain, closePlain := benchClient(b, rdb)
	defer closePlain()
	observed, closeObserved := benchClient(b, rdb, core.WithObserver(benchPage(b).Observer()))
	defer closeObserved()
	for _, second := range []bool{false, true, true, false} {
		if second == (round%2 == 0) {
			with.add(turnsOf(b, observed, load))
		} else {
			without.add(turnsOf(b, plain, load))
		}
	}
	return without, with
}

// spread is the mean of some numbers and their standard deviation.
func spread(list []float64) (mean, deviation float64) {
	for _, v := range list {
		mean += v / float64(len(list))
	}
	for _, v := range list {
		deviation += (v - mean) * (v - mean) / float64(max(len(list)-1, 1))
	}
	return mean, math.Sqrt(deviation)
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

// A load lasts for benchRound, and benchWarmUp before that is not counted: the first turn of every
// caller costs more than those that follow, and 10,000 of them are not over when all of them wait.
const (
	benchWarmUp = 300 * time.Millisecond
	benchRound  = 700 * time.Millisecond
)

// turnsOf counts the turns of one load, from when all callers are there.
func turnsOf(b *testing.B, locks *core.Client, load benchLoad) turns {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var count atomic.Int64
	var wg sync.WaitGroup
	for i := range load.callers {
		lock := locks.Lock("bench:" + strconv.Itoa(i%load.keys))
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, hold, err := lock.Acquire(ctx, core.Label("bench")); err == nil {
					count.Add(1)
					if load.work > 0 {
						time.Sleep(load.work) // under the lock
					}
					_ = hold.Release(b.Context())
				}
			}
		})
	}
	for locks.Stats().Waiters < load.callers*99/100 && load.callers > load.keys {
		time.Sleep(time.Millisecond) // a look every so often at whether all are there
	}
	time.Sleep(benchWarmUp) // the load begins
	before, cpu := count.Load(), processorTime()
	time.Sleep(benchRound) // the load
	counted := turns{count.Load() - before, processorTime() - cpu}
	cancel()
	wg.Wait()
	return counted
}

func benchClient(b *testing.B, rdb *redis.Client, opts ...core.Option) (locks *core.Client, stop func()) {
	b.Helper()
	locks, err := core.New(rdb, append(opts, core.WithMaxWaiters(100_000), core.WithMaxWaitersPerKey(100_000))...)
	if err != nil {
		b.Fatal(err)
	}
	return locks, func() { _ = locks.Close(b.Context()) }
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
