package history_test

import (
	"syscall"
	"time"
	"unsafe"
)

// monotonic is the clock that all processes of the machine share, and that does not step. Go has a
// monotonic clock, too, but counts it from the start of each process.
func monotonic() time.Duration {
	const clockMonotonic = 1
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		panic(errno)
	}
	return time.Duration(ts.Nano())
}

// clockSince returns the time since epoch, a reading of monotonic. It reads the clock each time: Go's
// clock and this one cannot be read at one instant, and a process that is kept from running between
// the two readings would be ahead of the others.
func clockSince(epoch time.Duration) func() time.Duration {
	return func() time.Duration { return monotonic() - epoch }
}
