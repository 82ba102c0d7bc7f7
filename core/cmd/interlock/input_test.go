package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/redistest"
)

// Ctrl-C ends the program while it waits for the answer to its question, and nothing is freed.
func TestRelease_InterruptedAtTheQuestion(t *testing.T) {
	t.Parallel()
	srv, err := redistest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	holder := srv.Take("k", time.Hour)
	ctx, interrupt := context.WithCancel(t.Context())
	stdin, never := io.Pipe()
	defer never.Close()
	stdout, question := &strings.Builder{}, &answerless{then: interrupt}
	if code := run(ctx, []string{"release", "k", "--redis", srv.URL()}, stdin, stdout, question); code != exitProblems {
		t.Errorf("exit code %d, want %d", code, exitProblems)
	}
	if !strings.Contains(stdout.String(), "nothing was done") || !strings.Contains(question.text.String(), holder) {
		t.Errorf("got %q and %q, want the holder, and that nothing was done", stdout, question.text.String())
	}
}

// A program that reads its URL from the standard input ends with Ctrl-C.
func TestLs_InterruptedBeforeTheURL(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	stdin, never := io.Pipe()
	defer never.Close()
	if code := run(ctx, []string{"ls", "--redis", "-"}, stdin, io.Discard, io.Discard); code != exitCannot {
		t.Errorf("exit code %d, want %d", code, exitCannot)
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
