package history_test

import (
	"syscall"
	"time"
	"unsafe"
)

// monotonic reads the monotonic clock that all processes of the machine share. The monotonic clock of Go
// counts from the start of each process.
func monotonic() time.Duration {
	const clockMonotonic = 1
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		panic(errno)
	}
	return time.Duration(ts.Nano())
}

// clockSince returns a clock that counts from epoch, a reading of monotonic. It reads the system clock at
// every call. A conversion from Go's clock would need readings of both clocks at one instant: if the process
// is suspended between the two readings, its time is wrong.
func clockSince(epoch time.Duration) func() time.Duration {
	return func() time.Duration { return monotonic() - epoch }
}
