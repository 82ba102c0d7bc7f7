package core_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// Each function of a broken observer is reported once, and nothing of what it said.
func TestObservers_PanicIsReportedOnce(t *testing.T) { //nolint:paralleltest // the log is everybody's
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		defer slog.SetDefault(before)
		locks := b.Locks(core.WithObserver(panicking{}.observer()))
		for range 3 {
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			locktest.MustRelease(t, hold)
		}
		text := log.String()
		if strings.Count(text, "\n") != 2 || strings.Count(text, "core_test.panicking.observeHoldStart") != 1 ||
			strings.Count(text, "core_test.panicking.observeHoldEnd") != 1 || strings.Contains(text, "broken") {
			t.Errorf("logged: %s", text)
		}
	})
}
