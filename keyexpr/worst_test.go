//go:build unix

package keyexpr_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
)

// BenchmarkWorstAccepted measures the most expensive accepted values, per MiB of the request. The limits are
// 10 ms of CPU time, including the garbage collector, and 4 MiB of memory.
func BenchmarkWorstAccepted(b *testing.B) {
	for _, size := range []int{34_000, 1 << 20} {
		for i := range hostileCases {
			h := &hostileCases[i]
			b.Run(fmt.Sprintf("%s/%d", h.name, size), func(b *testing.B) { h.benchmark(b, size) })
		}
	}
}

func (h *hostileCase) benchmark(b *testing.B, size int) {
	b.Helper()
	c := h.condition(b)
	env, refused := worstAccepted(b, h, c, size)
	runtime.GC()
	cpu, allocated, n := cpuTime(b), totalAlloc(), 0
	for b.Loop() {
		keep(c.Eval(env))
		n++
	}
	each := float64(cpuTime(b)-cpu) / float64(n)
	b.ReportMetric(each/1e6, "ms")
	b.ReportMetric(float64(totalAlloc()-allocated)/float64(n)/(1<<20), "MiB")
	b.ReportMetric(0, "ns/op")
	if refused {
		b.ReportMetric(1, "more-is-refused")
	}
}

func keep(bool, error) {}

// totalAlloc returns the number of bytes that the process has allocated.
func totalAlloc() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// cpuTime returns the CPU time of the process in nanoseconds.
func cpuTime(tb testing.TB) int64 {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
