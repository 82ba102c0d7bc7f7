//go:build unix

package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/redistest"
)

// childProgram returns a command that runs this program. The process ends with the test, or after some
// minutes if it hangs.
func childProgram(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	// If a script started the test with &, the test ignores the interrupt, and its child would inherit that.
	// If the test catches the signal, the child does not inherit it.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt)
	t.Cleanup(func() { signal.Stop(caught) })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	child := exec.CommandContext(ctx, os.Args[0], args...)
	child.Env = append(os.Environ(), asProgram+"=1")
	return child
}

// Ctrl-C at the question frees no lock.
func TestRelease_Interrupt(t *testing.T) {
	t.Parallel()
	srv, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	srv.Take("k", time.Hour)
	child := childProgram(t, "release", "k", "--redis", srv.URL())
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stderr, err := child.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if question, err := bufio.NewReader(stderr).ReadString('['); err != nil || !strings.Contains(question, "Take the lock from") {
		t.Errorf("got %q and %v, want the question", question, err)
	}
	if err := child.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err = child.Wait()
	if status, ok := child.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v, want the interrupt", err)
	}
	if held := srv.Client().Exists(t.Context(), "k").Val(); held != 1 {
		t.Error("the lock is free")
	}
}
