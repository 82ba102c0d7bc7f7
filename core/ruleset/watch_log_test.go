package ruleset_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
)

// lines hands on what is written to it.
type lines chan string

func (l lines) Write(text []byte) (int, error) {
	l <- string(text)
	return len(text), nil
}

// A refusal that no observer hears of is logged. It is not parallel: there is one
// default logger.
func TestWatch_RefusalWithoutObserversIsLogged(t *testing.T) { //nolint:paralleltest // see above
	logged := logging(t)

	path := fileWith(t, keyed("a"))
	l, err := ruleset.WatchFor(path, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, l)
	rulesettest.Replace(t, path, broken)
	wantLine(t, logged, "level=ERROR", "lock rules refused: the old ones stay in force", path, "kye")
	wantKey(t, l, "a")
}

// What mends the refusal is logged likewise, once, whoever has it loaded; what is loaded
// again says no more of it.
func TestWatch_TheEndOfALoggedRefusalIsLogged(t *testing.T) { //nolint:paralleltest // there is one default logger
	logged := logging(t)

	path := fileWith(t, keyed("a"))
	l, err := ruleset.WatchFor(path, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, l)
	for range 2 {
		rulesettest.Replace(t, path, broken)
		wantLine(t, logged, "level=ERROR", "lock rules refused", path)
		if err := l.Reload(); err == nil {
			t.Error("the broken file was taken")
		}
		rulesettest.Replace(t, path, keyed("a"))
		wantLine(t, logged, "level=INFO", `msg="lock rules loaded; the refusal has ended"`, path, "hash=")
		if err := l.Reload(); err != nil {
			t.Fatal(err)
		}
		wantLine(t, logged, "level=INFO", `msg="lock rules loaded"`, path, "hash=")
	}
	if len(logged) > 0 {
		t.Errorf("logged besides: %q", <-logged)
	}
}

// wantLine waits for a line with the given parts.
func wantLine(t *testing.T, logged lines, parts ...string) {
	t.Helper()
	select {
	case line := <-logged:
		for _, want := range parts {
			if !strings.Contains(line, want) {
				t.Errorf("got %q, want it to say %q", line, want)
			}
		}
	case <-time.After(5 * time.Minute): // for a test that fails
		t.Fatalf("nothing was logged, want a line with %q", parts)
	}
}

// So is what runs unlocked from now on: such a file is applied, and as loud as one that is
// refused.
func TestLive_WhatRunsUnlockedIsLogged(t *testing.T) { //nolint:paralleltest // see above
	logged := logging(t)

	const pay, ship = "  - {func: pay, key: pay}\n", "  - {func: ship, key: ship}\n"
	for name, test := range map[string]struct {
		first, next string
		want        []string // none: that it was loaded, as information
	}{
		"the same":    {"rules:\n" + pay + ship, "rules:\n" + ship + pay, nil},
		"removed":     {"rules:\n" + pay + ship, "rules:\n" + pay, []string{`msg="lock rules loaded, and endpoints run unlocked"`, `"[func ship: removed]"`}},
		"kill switch": {"rules:\n" + pay, "disabled: true\nrules:\n" + pay, []string{"whole file", "disabled"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := fileWith(t, test.first)
			l, err := ruleset.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			closeLater(t, l)
			rulesettest.Replace(t, path, test.next)
			if err := l.Reload(); err != nil {
				t.Fatal(err)
			}
			if test.want == nil {
				wantLine(t, logged, "level=INFO", `msg="lock rules loaded"`, path)
				return
			}
			wantLine(t, logged, append(test.want, "level=ERROR", "endpoints run unlocked", path)...)
		})
	}
	t.Run("at the start", func(t *testing.T) {
		l, err := ruleset.Open(fileWith(t, "disabled: true\nrules:\n"+pay))
		if err != nil {
			t.Fatal(err)
		}
		closeLater(t, l)
		if line := <-logged; !strings.Contains(line, "level=ERROR") || !strings.Contains(line, "disabled") {
			t.Errorf("got %q", line)
		}
	})
}

// Where it ends a refusal, too, one line says both.
func TestWatch_WhatRunsUnlockedAfterARefusalIsLoggedOnce(t *testing.T) { //nolint:paralleltest // there is one default logger
	logged := logging(t)

	path := fileWith(t, keyed("a"))
	l, err := ruleset.WatchFor(path, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, l)
	rulesettest.Replace(t, path, broken)
	wantLine(t, logged, "level=ERROR", "lock rules refused", path)
	rulesettest.Replace(t, path, "rules: []\n")
	wantLine(t, logged, "level=ERROR", `msg="lock rules loaded, and endpoints run unlocked; the refusal has ended"`, path, `"[func task: removed]"`)
	if err := l.Reload(); err != nil {
		t.Fatal(err)
	}
	wantLine(t, logged, "level=INFO", `msg="lock rules loaded"`, path)
	if len(logged) > 0 {
		t.Errorf("logged besides: %q", <-logged)
	}
}

// A broken observer of reloads is reported once.
func TestLive_PanicOfAnObserverIsReportedOnce(t *testing.T) { //nolint:paralleltest // the log is everybody's
	logged, before := &bytes.Buffer{}, slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(logged, nil)))
	defer slog.SetDefault(before)
	l, _ := opened(t, fileWith(t, keyed("a")), ruleset.WithReloadObserver(panicky))
	if err := l.Reload(); err != nil {
		t.Fatal(err)
	}
	if text := logged.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "ruleset_test.panicky") {
		t.Errorf("logged: %s", text)
	}
}

// logging has the default logger write to what it returns until the test ends.
func logging(t *testing.T) lines {
	t.Helper()
	logged, before := make(lines, 10), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(logged, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return logged
}
