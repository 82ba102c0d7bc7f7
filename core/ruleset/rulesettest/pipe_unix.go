//go:build unix

package rulesettest

import (
	"syscall"
	"testing"
)

// Pipe creates a named pipe.
func Pipe(tb testing.TB, path string) {
	tb.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		tb.Fatal(err)
	}
}
