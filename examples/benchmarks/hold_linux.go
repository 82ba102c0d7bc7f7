package main

import (
	"syscall"
	"time"
)

// hold simulates the work under the lock: it waits without using the CPU. In an idle process [time.Sleep]
// would turn 0.1 ms into a millisecond, because the poller counts in milliseconds. The system call is exact
// to about 0.06 ms.
func hold(d time.Duration) {
	if d <= 0 {
		return
	}
	remaining := syscall.NsecToTimespec(d.Nanoseconds())
	for syscall.Nanosleep(&remaining, &remaining) == syscall.EINTR {
	}
}
