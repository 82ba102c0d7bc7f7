//go:build !linux

package main

import "time"

// hold simulates the work under the lock. On this system it takes at least about 1 ms.
func hold(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}
