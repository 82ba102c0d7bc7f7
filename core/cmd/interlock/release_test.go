package main

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
)

// A reader that came after the holders were shown keeps the lock.
func TestRelease_OfAReaderThatCameLater(t *testing.T) {
	t.Parallel()
	srv, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	rdb := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(srv.URL(), "redis://")})
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
	question := &answerless{then: func() { later = read() }}
	code := run(t.Context(), []string{"release", "k", "--redis", srv.URL()}, strings.NewReader("y\n"), &stdout, question)
	if code != exitFine || !strings.Contains(stdout.String(), "lost by "+seen.Field()) {
		t.Errorf("exit code %d, %q, want that the first reader has lost it", code, stdout.String())
	}
	if err := later.Release(t.Context()); err != nil {
		t.Errorf("the reader that came later: %v", err)
	}
	if err := seen.Release(t.Context()); !errors.Is(err, core.ErrNotHeld) {
		t.Errorf("the reader that was shown: got %v, want ErrNotHeld", err)
	}
}

// answerless does something when the question is there.
type answerless struct {
	text strings.Builder
	then func()
}

func (a *answerless) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "[y/N]") {
		a.then()
	}
	return a.text.Write(p)
}

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
