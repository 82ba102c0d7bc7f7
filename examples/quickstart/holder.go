package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core"
)

// A holder is a separate process of this program that acquires a lock and keeps it until
// it is killed. It gets its parameters from the environment, where fewer users can see a
// password in the URL than among the arguments.
const (
	envURL    = "QUICKSTART_HOLDER_REDIS"
	envPrefix = "QUICKSTART_HOLDER_PREFIX"
	envLock   = "QUICKSTART_HOLDER_LOCK"
)

type heldLock struct{ url, prefix, name string }

// holderFromEnv reports whether this process is a holder.
func holderFromEnv() (heldLock, bool) {
	l := heldLock{url: os.Getenv(envURL), prefix: os.Getenv(envPrefix), name: os.Getenv(envLock)}
	return l, l.name != ""
}

// holdUntilKilled is the main function of the holder. It acquires the lock, prints its client id,
// and keeps the lock until it is killed or its parent exits.
func holdUntilKilled(l heldLock) (exitCode int) {
	locks, err := core.Open(l.url, core.WithPrefix(l.prefix), core.WithWatchdog(watchdogLease))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	err = locks.Lock(l.name).Do(context.Background(), func(context.Context) error {
		fmt.Println(locks.ID())
		_, err := io.Copy(io.Discard, os.Stdin) // returns when the parent exits
		return err
	}, core.WaitTime(10*time.Second))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// holder is the parent's view of the process.
type holder struct {
	cmd   *exec.Cmd
	stdin io.Closer
	id    string // the id of its lock client
}

// startHolder starts a holder and returns when it has the lock.
func startHolder(ctx context.Context, l heldLock) (*holder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), envURL+"="+l.url, envPrefix+"="+l.prefix, envLock+"="+l.name)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	h := &holder{cmd: cmd, stdin: stdin}
	if h.id, err = bufio.NewReader(stdout).ReadString('\n'); err != nil {
		h.kill()
		return nil, fmt.Errorf("the holder did not get the lock: %w", err)
	}
	h.id = strings.TrimSpace(h.id)
	return h, nil
}

// kill kills the process without a chance to clean up and waits until it exits.
func (h *holder) kill() {
	_ = h.cmd.Process.Kill() // SIGKILL; TerminateProcess on Windows
	_ = h.cmd.Wait()
	_ = h.stdin.Close()
}
