package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/examples/dashboards/internal/backend"
)

// The program starts everything, prints what to open, draws the picture on request, and ends without an error.
func TestRun(t *testing.T) {
	requirePrograms(t, "prometheus", "redis-server")
	picture := filepath.Join(t.TempDir(), "picture.svg")
	out, err := os.Create(filepath.Join(t.TempDir(), "out")) // several goroutines write to it at once, like to a terminal
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := run(t.Context(), []string{"-calm", "-for", "8s", "-picture", picture}, out); err != nil {
		t.Fatal(err)
	}
	said := read(t, out.Name())
	for _, want := range []string{"redis://127.0.0.1:", "/debug/locks", "/alerts", "dashboards/dashboard.json", "export REDIS=redis://"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not print %s:\n%s", want, said)
		}
	}
	if svg := read(t, picture); !strings.HasPrefix(svg, "<svg") || !strings.Contains(svg, "Wait and hold, p99") {
		t.Errorf("the picture has no panels: %.200s", svg)
	}
}

// The output about the given Redis contains no password, whether or not the URL is valid.
func TestRun_HidesPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"redis://user:s3cret@127.0.0.1:1/2", "redis://user:s3cret%zz@127.0.0.1:1", "redis://user:s3cret@127.0.0.1:port"} {
		var said string
		switch found, err := backend.Open(t.Context(), url); {
		case err != nil:
			said = err.Error()
		default:
			said = found.URL + found.About
			found.Close()
		}
		if strings.Contains(said, "s3cret") || !strings.Contains(said, "redis://") {
			t.Errorf("%s: it prints %s", url, said)
		}
	}
}
