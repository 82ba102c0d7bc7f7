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

func TestRun_EveryAnswer(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	for _, args := range [][]string{nil, {"-redis", server.URL()}} {
		var out strings.Builder
		if err := run(t.Context(), append(args, "-rules", "locks.yaml"), &out); err != nil {
			t.Errorf("%v\n%s", err, &out)
		}
	}
}

func TestRun_Refuses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "locks.yaml")
	if err := os.WriteFile(file, []byte("rules:\n  - grpc: /connectshop.v1.Orders/Pya\n    key: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		`did you mean "/connectshop.v1.Orders/Pay"?`: {"-rules", file},
		"write redis://": {"-redis", "localhost"},
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
		err := run(ctx, []string{"-serve", "-rules", "locks.yaml"}, write)
		_ = write.Close()
		done <- err
	}()
	if _, err := io.ReadFull(read, make([]byte, len("try"))); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, read) }()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
