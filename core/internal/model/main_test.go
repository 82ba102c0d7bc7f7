package model_test

import (
	"log/slog"
	"testing"
)

// TestMain discards the log lines of package core about the faults of recorded runs.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	m.Run()
}
