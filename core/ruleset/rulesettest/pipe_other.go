//go:build !unix

package rulesettest

import "testing"

// Pipe skips the test, because only Unix has named pipes in folders.
func Pipe(tb testing.TB, _ string) {
	tb.Helper()
	tb.Skip("named pipes are files only on Unix")
}
