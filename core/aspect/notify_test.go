package aspect_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

func TestObservers_PanicIsReportedOnce(t *testing.T) { //nolint:paralleltest // the log is everybody's
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		defer slog.SetDefault(before)
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.observed(t, brokenRules())), pay())
		for range 3 {
			want(t, "verdict", p.Run(t.Context(), &call{in: order{ID: "42"}}).Verdict, aspect.VerdictRan)
		}
		text := log.String()
		if strings.Count(text, "\n") != 2 || strings.Count(text, ".brokenRules.") != 2 || strings.Contains(text, "decision\"") {
			t.Errorf("logged: %s", text)
		}
	})
}

// Without an observer of warnings the log has them, in one line each.
func TestWarnings_AreLoggedWithoutAnObserver(t *testing.T) { //nolint:paralleltest // the log is everybody's
	for name, tt := range map[string]struct {
		observers []*core.Observer
		want      int
	}{
		"no observer":      {nil, 1},
		"another observer": {[]*core.Observer{broken()}, 1},
		"an observer":      {[]*core.Observer{{Rules: &aspect.Observer{Warning: func(*ruleset.Problem) {}}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			before := slog.Default()
			slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
			defer slog.SetDefault(before)
			mustAspect(t, newBench(t, core.WithObserver(tt.observers...)).locks).Warn(&ruleset.Problem{Field: "key", Message: "odd"})
			text := log.String()
			if n := strings.Count(text, "\n"); n != tt.want || n > 0 && (!strings.Contains(text, "level=WARN") || !strings.Contains(text, "odd")) {
				t.Errorf("logged: %q", text)
			}
		})
	}
}
