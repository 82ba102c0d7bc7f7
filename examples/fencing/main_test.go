//go:build unix

package main

import (
	"os"
	"strings"
	"testing"
)

// The test binary is also the process that is stopped.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && strings.HasPrefix(os.Args[1], "redis://") {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestFencing(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), nil, strings.NewReader(""), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if !strings.Contains(out.String(), "PASS fencing: the balance is 70") {
		t.Errorf("it said:\n%s", &out)
	}
}

func TestRun_Arguments(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), []string{"-h"}, strings.NewReader(""), &strings.Builder{}); err == nil {
		t.Error("an argument was accepted")
	}
}
