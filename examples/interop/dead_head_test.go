package interop_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/interop"
)

// waitingSide holds the waiters of one side for a fair lock behind a dead head. wait starts to wait and calls got
// each time that a waiter gets the lock, which is then released.
type waitingSide struct {
	name string
	wait func(b *testing.B, addr, key string, waiters int, got func())
}

// BenchmarkBehindDeadHead counts the commands that 32 waiters of a process send while the head of the queue, in
// another process, is dead: first while the lock is held, then until the first waiter has it. Each part takes at
// most 5 s.
func BenchmarkBehindDeadHead(b *testing.B) {
	const waiters, lasts = 32, 5 * time.Second
	classPath := interop.Build(b, usualVersion)
	for _, side := range []waitingSide{{"Go", waitInGo}, {"Redisson", waitInJava(classPath)}} {
		b.Run(side.name, func(b *testing.B) {
			srv := redisserver.Start(b)
			rdb, key := srv.Client(), "dead"
			for b.Loop() {
				must(b, rdb.FlushAll(b.Context()).Err())
				must(b, rdb.HSet(b.Context(), key, "holder", 1).Err())
				must(b, rdb.RPush(b.Context(), fairQueue(key), deadWaiter).Err())
				deadline := time.Now().Add(5 * time.Minute).UnixMilli()
				must(b, rdb.ZAdd(b.Context(), fairTimeouts(key), redis.Z{Score: float64(deadline), Member: deadWaiter}).Err())
				var got atomic.Int64
				side.wait(b, srv.Addr(), key, waiters, func() { got.Add(1) })
				for rdb.LLen(b.Context(), fairQueue(key)).Val() < waiters+1 {
					time.Sleep(10 * time.Millisecond) // before the next poll
				}
				time.Sleep(time.Second) // so that all have subscribed

				before := countScripts(b, rdb)
				time.Sleep(lasts) // the measurement
				b.ReportMetric((countScripts(b, rdb)-before)/lasts.Seconds(), "commands/s:held")

				before, freed := countScripts(b, rdb), time.Now()
				must(b, rdb.Del(b.Context(), key).Err())
				for got.Load() == 0 && time.Since(freed) < lasts {
					time.Sleep(time.Millisecond) // before the next poll
				}
				b.ReportMetric((countScripts(b, rdb)-before)/time.Since(freed).Seconds(), "commands/s:free")
				b.ReportMetric(time.Since(freed).Seconds(), "s:stall")
				b.ReportMetric(0, "ns/op") // the benchmark reports no time
			}
		})
	}
}

// deadWaiter leaves a waiting thread of Redisson whose process exited.
const deadWaiter = "00000000-0000-0000-0000-000000000000:1"

// countScripts returns the number of scripts that clients have sent so far.
func countScripts(tb testing.TB, rdb *redis.Client) (calls float64) {
	tb.Helper()
	stats, err := rdb.Info(tb.Context(), "commandstats").Result()
	must(tb, err)
	for line := range strings.Lines(stats) {
		if strings.HasPrefix(line, "cmdstat_eval") {
			var n float64
			_, numbers, _ := strings.Cut(line, ":")
			_, err := fmt.Sscanf(numbers, "calls=%g,", &n)
			must(tb, err)
			calls += n
		}
	}
	return calls
}

func waitInGo(b *testing.B, addr, key string, waiters int, got func()) {
	b.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	locks, err := core.New(rdb)
	must(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			_ = locks.FairLock(key).Do(ctx, func(context.Context) error { got(); return nil })
		})
	}
	b.Cleanup(func() {
		cancel()
		all.Wait()
		_ = locks.Close(context.WithoutCancel(ctx))
		_ = rdb.Close()
	})
}

func waitInJava(classPath string) func(b *testing.B, addr, key string, waiters int, got func()) {
	return func(b *testing.B, addr, key string, waiters int, got func()) {
		b.Helper()
		jvm := interop.StartFastJVM(b, classPath)
		client := jvm.Open(b, interop.Config{Mode: single, Addrs: []string{addr}, Usual: true})
		for range waiters {
			lock := client.Thread(b).Lock(interop.Fair, key)
			call := lock.Lock()
			go func() { // it ends with the process
				<-call.Done()
				if call.Answer().Err == nil {
					got()
					lock.Unlock()
				}
			}()
		}
	}
}
