//go:build !linux

package main

import "time"

// hold is the work under the lock. On this system its shortest duration is about 1 ms.
func hold(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}
