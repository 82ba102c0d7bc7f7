//go:build !linux

package history_test

// workerMain is never called on this system, because worker processes run on Linux only.
func workerMain(string) int { return 2 }
