package aspect_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/interlock-go/interlock/core/aspect"
)

func TestObservers_PanicIsReportedOnce(t *testing.T) { //nolint:paralleltest // the log is everybody's
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		defer slog.SetDefault(before)
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.locks, aspect.WithObserver(broken{})), pay())
		for range 3 {
			want(t, "verdict", p.Run(t.Context(), &call{in: order{ID: "42"}}).Verdict, aspect.VerdictRan)
		}
		text := log.String()
		if strings.Count(text, "\n") != 1 || !strings.Contains(text, "observer=aspect_test.broken") || strings.Contains(text, "decision\"") {
			t.Errorf("logged: %s", text)
		}
	})
}
