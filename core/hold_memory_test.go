package core_test

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// A lock that is held, and that nobody else wants, takes no more heap than heldBytes.
// Redis is a process of its own, whose memory does not count.
func TestHold_Memory(t *testing.T) { //nolint:paralleltest // the heap is that of all tests
	const heldBytes, locks = 1000, 10_000
	client := locktest.NewClient(t, redisserver.Start(t).Client(), core.WithWatchdog(time.Hour)) // no renewal meanwhile
	// What was held once leaves behind maps and buffers that stay.
	for _, h := range heldMany(t, client, "before", locks) {
		locktest.MustRelease(t, h)
	}
	before := heapAlloc()
	holds := heldMany(t, client, "held", locks)
	each := float64(heapAlloc()-before) / locks
	runtime.KeepAlive(holds)
	t.Logf("%.0f bytes for each held lock", each)
	if each > heldBytes {
		t.Errorf("%.0f bytes for each held lock, want at most %d", each, heldBytes)
	}
}

// heldMany acquires that many locks, as most callers do: waiting if need be, with the
// watchdog.
func heldMany(t *testing.T, client *core.Client, name string, n int) []*core.Hold {
	t.Helper()
	holds := make([]*core.Hold, n)
	for i := range holds {
		_, holds[i] = locktest.MustAcquire(t, context.Background(), client.Lock(name+strconv.Itoa(i)))
	}
	return holds
}

// heapAlloc is what the heap holds after garbage collection.
func heapAlloc() int64 {
	runtime.GC()
	runtime.GC() // what pools keep over one is gone
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
