package main

import (
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/redistest"
)

// Who cannot be told what became of the lock learns at least that.
func TestRelease_CannotBeWritten(t *testing.T) {
	t.Parallel()
	srv, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	for _, as := range []string{"text", "json"} {
		srv.Take("k", time.Hour)
		stdout, end := io.Pipe()
		stdout.Close()
		var stderr strings.Builder
		code := run(t.Context(), []string{"release", "k", "--redis", srv.URL(), "--yes", "--json=" + strconv.FormatBool(as == "json")}, strings.NewReader(""), end, &stderr)
		if code != exitCannot || !strings.Contains(stderr.String(), io.ErrClosedPipe.Error()) {
			t.Errorf("%s: exit code %d and %q, want %d and why", as, code, stderr.String(), exitCannot)
		}
	}
}
