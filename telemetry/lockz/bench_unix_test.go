//go:build unix

package lockz_test

import (
	"syscall"
	"time"
)

// processorTime is that of this process so far.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
