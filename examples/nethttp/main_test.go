package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/redistest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // reloads, warnings and failures are part of the tests
	goleak.VerifyTestMain(m)
}

func TestRun_EveryRouter(t *testing.T) {
	t.Parallel()
	for _, router := range []string{"mux", "chi", "echo"} {
		t.Run(router, func(t *testing.T) {
			t.Parallel()
			server := redistest.New(t)
			for _, args := range [][]string{nil, {"-redis", server.URL()}} {
				var out strings.Builder
				if err := run(t.Context(), append(args, "-router", router), &out); err != nil {
					t.Errorf("%v\n%s", err, &out)
				}
			}
		})
	}
}

func TestRun_Refuses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "locks.yaml")
	if err := os.WriteFile(file, []byte("rules:\n  - http: POST /order/{id}/pay\n    key: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		`did you mean "POST /orders/{id}/pay"?`: {"-rules", file},
		"want mux, chi or echo":                 {"-router", "gorilla"},
		"write redis://":                        {"-redis", "localhost"},
	} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", args, err)
		}
	}
}

// With -serve the program serves until it is interrupted.
func TestRun_Serves(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	done := make(chan error)
	go func() {
		err := run(ctx, []string{"-serve"}, write)
		_ = write.Close()
		done <- err
	}()
	var curl [64]byte
	if _, err := io.ReadFull(read, curl[:]); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, read) }()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
