//go:build !linux

package history_test

// workerMain is not reached here: processes run on Linux only.
func workerMain(string) int { return 2 }
