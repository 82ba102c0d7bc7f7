package redisserver_test

import (
	"runtime"
	"testing"
)

// recorder is a testing.TB that records how a helper ended the test.
type recorder struct {
	testing.TB

	got string
}

func (r *recorder) Skipf(format string, _ ...any) {
	r.got = "skip: " + format
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, _ ...any) {
	r.got = "fatal: " + format
	runtime.Goexit()
}
