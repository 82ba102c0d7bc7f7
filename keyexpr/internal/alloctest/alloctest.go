// Package alloctest is for tests that bound what an evaluation allocates.
package alloctest

import "runtime"

// Least calls f five times and returns the fewest bytes that the process allocated during
// a call. The first call, and one that a garbage collection falls into, also pay for what
// is kept in pools: the machine of an expression, those of regular expressions. And other
// goroutines may allocate meanwhile. What f itself allocates, it allocates each time.
func Least(f func()) uint64 {
	least := allocated(f)
	for range 4 {
		least = min(least, allocated(f))
	}
	return least
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
