package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/examples/dashboards/internal/backend"
)

// The commands in the runbooks that free a lock with redis-cli alone free the lock. They wake a waiter before
// its next attempt. For a fair lock this waiter is the head of the queue.
func TestRunbooks_FreeALock(t *testing.T) {
	requirePrograms(t, "redis-server", "redis-cli")
	server, err := backend.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for i, kind := range []struct {
		heading string // of the commands
		lock    func(*core.Client, string) core.Lock
	}{
		{"Kinds `reentrant`", (*core.Client).Lock},
		{"Kind `fair`", (*core.Client).FairLock},
		{"Kinds `read`", (*core.Client).WriteLock},
	} {
		t.Run(kind.heading, func(t *testing.T) {
			holder, waiter := newLocks(t, server), newLocks(t, server)
			key := fmt.Sprintf("runbook:%d", i)
			_, hold, err := kind.lock(holder, key).Acquire(t.Context(), core.LeaseTime(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			got := make(chan error, 1)
			go func() {
				_, next, err := kind.lock(waiter, key).Acquire(t.Context(), core.WaitTime(30*time.Second))
				if err == nil {
					err = next.Release(t.Context())
				}
				got <- err
			}()
			for !listens(t, server, key) {
				time.Sleep(10 * time.Millisecond) // until the waiter listens to the channel
			}
			said := strings.Fields(script(t, server.URL, key, commands(t, kind.heading)))
			if len(said) == 0 || said[len(said)-1] == "0" {
				t.Errorf("no waiter got a message that the lock is free: %q", said)
			}
			if err := <-got; err != nil {
				t.Errorf("the waiter did not get the lock: %v", err)
			}
			if err := hold.Release(t.Context()); err == nil {
				t.Error("the holder released a lock that was freed by force")
			}
		})
	}
}

func newLocks(t *testing.T, server *backend.Redis) *core.Client {
	t.Helper()
	rdb := server.Client()
	locks, err := core.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
		defer cancel()
		_ = locks.Close(ctx)
		_ = rdb.Close()
	})
	return locks
}

// The commands in the runbooks for interlock and redis-cli find a held lock and print the hash of its key.
// After a yes, interlock release releases the lock.
func TestRunbooks_LookAtLocks(t *testing.T) {
	requirePrograms(t, "redis-server", "redis-cli", "sha256sum")
	server, err := backend.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	const key = "example-shop:stock:teapot"
	_, hold, err := newLocks(t, server).Lock(key).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	program(t)
	if said := script(t, server.URL, key, commands(t, "## From a rule to the key")); strings.Count(said, key) != 2 {
		t.Errorf("want the key from each of two commands: %q", said)
	}
	if said := script(t, server.URL, key, commands(t, "compute the hash of a key")); strings.Count(said, core.KeyHash(key)+"\n") != 2 {
		t.Errorf("want the hash of the key from each of two commands: %q", said)
	}
	said := script(t, server.URL, key, commands(t, "## From a key to the holder"))
	if holder := regexp.MustCompile(`[0-9a-f-]{36}:\d+`).FindAllString(said, -1); len(holder) < 2 {
		t.Errorf("want the holder from each of two commands: %q", said)
	}
	said = script(t, server.URL, key, "yes | "+commands(t, "## Free a lock by force"))
	if hold.Release(t.Context()) == nil {
		t.Errorf("the holder released a lock that was freed by force: %q", said)
	}
}

// program builds the command interlock and adds its folder to PATH.
func program(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "github.com/interlock-go/interlock/core/cmd/interlock").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// listens reports whether a client waits for a message about the key.
func listens(t *testing.T, server *backend.Redis, key string) bool {
	t.Helper()
	rdb := server.Client()
	defer rdb.Close()
	channels, err := rdb.PubSubChannels(t.Context(), "*"+key+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return len(channels) > 0
}

// commands returns the first shell block after a text in the runbooks.
func commands(t *testing.T, after string) string {
	t.Helper()
	_, rest, ok := strings.Cut(read(t, "RUNBOOKS.md"), after)
	block := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(rest)
	if !ok || block == nil {
		t.Fatalf("no commands after %q", after)
	}
	return block[1]
}

// script runs commands and returns their output.
func script(t *testing.T, redis, key, text string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-e")
	cmd.Stdin = strings.NewReader(text)
	cmd.Env = append(os.Environ(), "REDIS="+redis, "KEY="+key)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
