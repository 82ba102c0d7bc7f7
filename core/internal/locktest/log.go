package locktest

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// DefaultLog records what is written to the default logger, until the test ends. A test with it must not be parallel.
type DefaultLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// RecordDefaultLog replaces the default logger.
func RecordDefaultLog(t *testing.T) *DefaultLog {
	t.Helper()
	l := &DefaultLog{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(l, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return l
}

// Break makes the default logger call handle with each record, until the test ends.
func (l *DefaultLog) Break(handle func()) { slog.SetDefault(slog.New(broken{handle: handle})) }

type broken struct {
	slog.Handler

	handle func()
}

func (broken) Enabled(context.Context, slog.Level) bool { return true }

func (b broken) Handle(context.Context, slog.Record) error {
	b.handle()
	return nil
}

// Write records one line.
func (l *DefaultLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(line)
}

// Lines returns the lines so far.
func (l *DefaultLog) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines()
}

func (l *DefaultLog) lines() []string {
	return strings.FieldsFunc(l.buf.String(), func(r rune) bool { return r == '\n' })
}

// WantLine requires that there is one line, which contains the words, and forgets it.
func (l *DefaultLog) WantLine(t *testing.T, words ...string) {
	t.Helper()
	lines := l.Take()
	if len(lines) != 1 {
		t.Fatalf("logged %d lines, want 1 with %q:\n%s", len(lines), words, strings.Join(lines, "\n"))
	}
	for _, word := range words {
		if !strings.Contains(lines[0], word) {
			t.Errorf("the line lacks %s: %s", word, lines[0])
		}
	}
}

// Take returns the lines since the last call.
func (l *DefaultLog) Take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines()
	l.buf.Reset()
	return lines
}
