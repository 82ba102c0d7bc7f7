package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
)

// journal is the log of all instances. It prints records and keeps the causes that handlers log
// when they stop, for the checks of a step.
type journal struct {
	slog.Handler

	mu     sync.Mutex
	causes []error
}

func newJournal(w io.Writer) *journal {
	return &journal{Handler: slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: withoutTime})}
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// Handle keeps the cause in a record, if there is one, and prints it.
func (j *journal) Handle(ctx context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && a.Key == "cause" {
			j.keep(err)
		}
		return true
	})
	return j.Handler.Handle(ctx, r)
}

func (j *journal) keep(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.causes = append(j.causes, err)
}

// take reports whether a cause that matches target was logged since the last call.
func (j *journal) take(target error) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	found := errors.Is(errors.Join(j.causes...), target)
	j.causes = nil
	return found
}
