package main

import (
	"syscall"
	"time"
)

// hold is the work under the lock: waiting for something else, using no CPU.
// [time.Sleep] would make a millisecond out of 0.1 ms whenever the process is idle
// (the poller counts in milliseconds), the system call is exact to about 0.06 ms.
func hold(d time.Duration) {
	if d <= 0 {
		return
	}
	remaining := syscall.NsecToTimespec(d.Nanoseconds())
	for syscall.Nanosleep(&remaining, &remaining) == syscall.EINTR {
	}
}
