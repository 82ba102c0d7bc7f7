package core_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// BenchmarkLocks lists 20,000 locks among 100,000 keys. It reports how much memory the process gets for the list, and
// how many commands took Redis over 1 ms. Redis also counts the time in which it waits for a processor. For comparison,
// BenchmarkLocks reports how many of as many scripts of constant cost took over 1 ms. On a quiet machine both numbers
// are 0.
func BenchmarkLocks(b *testing.B) {
	srv := redisserver.Start(b)
	rdb := srv.Client()
	fillForList(b, rdb)
	locks, err := core.New(rdb)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = locks.Close(b.Context()) })
	slow := func(run func()) float64 {
		rdb.ConfigSet(b.Context(), "slowlog-log-slower-than", "1000")
		rdb.ConfigSet(b.Context(), "slowlog-max-len", "100000")
		rdb.Do(b.Context(), "slowlog", "reset")
		run()
		n, err := rdb.Do(b.Context(), "slowlog", "len").Int()
		if err != nil {
			b.Fatal(err)
		}
		return float64(n)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found, looked := 0, int64(0)
	ours := slow(func() {
		for b.Loop() {
			found, looked = listAll(b, locks)
		}
	})
	runtime.ReadMemStats(&after)
	same := slow(func() { doTheSame(b, rdb, b.N*100_000) })
	if found < 20_000 || looked < 100_000 {
		b.Errorf("found %d locks in %d keys", found, looked)
	}
	b.ReportMetric(float64(b.Elapsed()/time.Millisecond)/float64(b.N), "ms/list")
	b.ReportMetric(float64(after.Sys-before.Sys)/(1<<20), "MB")
	b.ReportMetric(ours/float64(b.N), "slow/list")
	b.ReportMetric(same/float64(b.N), "slow-same/list")
}

// listAll reads all pages.
func listAll(b *testing.B, locks *core.Client) (found int, looked int64) {
	b.Helper()
	for q := (core.LockQuery{}); ; {
		page, err := locks.Locks(b.Context(), q)
		if err != nil {
			b.Fatal(err)
		}
		found, looked = found+len(page.Locks), looked+page.Looked
		if q.Cursor = page.Cursor; q.Cursor == "" {
			return found, looked
		}
	}
}

// fillForList writes locks of several kinds, and other keys.
func fillForList(b *testing.B, rdb *redis.Client) {
	b.Helper()
	for i := 0; i < 100_000; i += 500 {
		pipe := rdb.Pipeline()
		for n := i; n < i+500; n++ {
			key, holder := fmt.Sprint("k", n), fmt.Sprintf("0e6b1a52-1a3c-4d65-9c53-8d4c8a0b7f11:%d", n)
			switch n % 20 {
			case 0, 1:
				pipe.HSet(b.Context(), key, holder, 1)
			case 2:
				pipe.HSet(b.Context(), key, "mode", "read", holder, 1, locktest.Stranger, 2)
			case 3:
				pipe.HSet(b.Context(), key, holder, 1)
				pipe.RPush(b.Context(), "redisson_lock_queue:{"+key+"}", holder, locktest.Stranger)
			case 4, 5, 6, 7, 8, 9:
				pipe.HSet(b.Context(), key, "name", "Ada", "age", 36)
			default:
				pipe.Set(b.Context(), key, "text", 0)
			}
		}
		if _, err := pipe.Exec(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// doTheSame makes Redis execute n scripts that take about 15 µs.
func doTheSame(b *testing.B, rdb *redis.Client, n int) {
	b.Helper()
	for range n / 100 {
		pipe := rdb.Pipeline()
		for range 100 {
			pipe.Eval(b.Context(), "for _ = 1, 40 do redis.call('exists', KEYS[1]) end return 1", []string{"k1"})
		}
		if _, err := pipe.Exec(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
