package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/redistest"
)

// endless is an input without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Input that does not end is refused, wherever a command reads any.
func TestRun_InputThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	const zero = "/dev/zero"
	if _, err := os.Stat(zero); err != nil {
		t.Skipf("this system has no file without an end: %v", err)
	}
	for _, args := range [][]string{
		{"check", zero},
		{"check", "-"},
		{"check", "testdata/locks.yaml", "--against", zero},
		{"check", "testdata/locks.yaml", "--routes", zero},
		{"check", "--descriptors", zero},
		{"dump", zero},
		{"key", "testdata/locks.yaml", "POST /cart", "-d", "@" + zero},
		{"key", "testdata/locks.yaml", "POST /cart", "-d", "@-"},
		{"ls", "--redis", "-"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, endless{}, &stdout, &stderr); code == exitFine || !strings.Contains(stderr.String()+stdout.String(), "larger than ") {
			t.Errorf("%q: exit code %d, %.200q, want how much there may be", args, code, stdout.String()+stderr.String())
		}
	}
}

// An answer that does not end is not a yes.
func TestRelease_AnswerThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	srv, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	srv.Take("k", 1<<40)
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"release", "k", "--redis", srv.URL()}, endless{}, &stdout, &stderr); code != exitProblems {
		t.Errorf("exit code %d, %s", code, stdout.String())
	}
}
