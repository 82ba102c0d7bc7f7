package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/redistest"
)

// A reader that arrived after the holders were shown keeps the lock.
func TestRelease_LaterReader(t *testing.T) {
	t.Parallel()
	srv, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	url := srv.URL() + "?read_timeout=5m" // the machine may be busy
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	locks, err := core.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(context.WithoutCancel(t.Context())) })
	read := func() *core.Hold {
		_, hold, err := locks.ReadLock("k").Acquire(t.Context())
		if err != nil {
			t.Error(err)
		}
		return hold
	}
	seen := read()
	var later *core.Hold
	var stdout strings.Builder
	question := &interruptedQuestion{then: func() { later = read() }}
	code := commands().run(t.Context(), []string{"release", "k", "--redis", url}, strings.NewReader("y\n"), &stdout, question)
	if code != exitFine || !strings.Contains(stdout.String(), "lost by "+seen.Field()) {
		t.Errorf("exit code %d, %q, want that only the first reader has lost the lock", code, stdout.String())
	}
	if err := later.Release(t.Context()); err != nil {
		t.Errorf("the later reader: %v", err)
	}
	if err := seen.Release(t.Context()); !errors.Is(err, core.ErrNotHeld) {
		t.Errorf("the reader that was shown: got %v, want ErrNotHeld", err)
	}
}

// interruptedQuestion is an output that calls then when the program prints its question.
type interruptedQuestion struct {
	text strings.Builder
	then func()
}

func (a *interruptedQuestion) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "[y/N]") {
		a.then()
	}
	return a.text.Write(p)
}

// If the result cannot be written, the exit code and an error message report that.
func TestRelease_BrokenOutput(t *testing.T) {
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
		code := commands().run(t.Context(), []string{"release", "k", "--redis", srv.URL(), "--yes", "--json=" + strconv.FormatBool(as == "json")}, strings.NewReader(""), end, &stderr)
		if code != exitCannot || !strings.Contains(stderr.String(), io.ErrClosedPipe.Error()) {
			t.Errorf("%s: exit code %d and %q, want %d and why", as, code, stderr.String(), exitCannot)
		}
	}
}

// A waiter gets the lock as soon as an operator releases it.
func TestRelease_NotifiesWaiters(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	locks, err := core.New(srv.Client())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(context.WithoutCancel(t.Context())) })
	if err := srv.Client().HSet(t.Context(), "k", ann, 1).Err(); err != nil { // without an end, so that only a message wakes the waiter
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		got <- locks.Lock("k").Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(time.Minute))
	}()
	for locks.Stats().Waiters == 0 {
		time.Sleep(time.Millisecond) // until the waiter waits
	}
	if r := interlock(t, "", "release", "k", "--yes", "--redis", "redis://"+srv.Addr()); r.code != exitFine {
		t.Error(r)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// An endless answer does not count as a yes.
func TestRelease_EndlessAnswer(t *testing.T) {
	t.Parallel()
	srv, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	srv.Take("k", 1<<40)
	var stdout, stderr bytes.Buffer
	if code := commands().run(t.Context(), []string{"release", "k", "--redis", srv.URL()}, endless{}, &stdout, &stderr); code != exitProblems {
		t.Errorf("exit code %d, %s", code, stdout.String())
	}
}
