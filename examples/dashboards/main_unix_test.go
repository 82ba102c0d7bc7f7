//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// argsOf is the environment variable with which this test binary runs as the program.
const argsOf = "INTERLOCK_DASHBOARDS_ARGS"

func TestMain(m *testing.M) {
	if args, ok := os.LookupEnv(argsOf); ok {
		os.Args = append(os.Args[:1], strings.Split(args, "\n")...)
		os.Exit(exitCode())
	}
	os.Exit(m.Run())
}

// A terminal sends Ctrl-C to the program and its child processes. They end in order: the picture is drawn
// while Prometheus still answers, and no pod loses its Redis.
func TestRun_CtrlC(t *testing.T) {
	requirePrograms(t, "prometheus", "redis-server")
	picture, said := filepath.Join(t.TempDir(), "picture.svg"), filepath.Join(t.TempDir(), "said")
	out, err := os.Create(said)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // ends the child processes, too, if the test fails
	cmd.Env = append(os.Environ(), argsOf+"=-calm\n-picture\n"+picture)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for !strings.Contains(read(t, said), "Ctrl-C ends it") {
		select {
		case err := <-ended:
			t.Fatalf("%v\n%s", err, read(t, said))
		case <-time.After(50 * time.Millisecond): // before the next poll
		}
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("%v\n%s", err, read(t, said))
	}
	if svg := read(t, picture); !strings.HasPrefix(svg, "<svg") {
		t.Errorf("the picture is %.200q", svg)
	}
	if log := read(t, said); strings.Contains(log, "connection refused") {
		t.Errorf("Redis ended before the pods:\n%s", log)
	}
}
