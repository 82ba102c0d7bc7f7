package ruleset_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
)

// reloads collects the attempts to reload that an observer gets.
type reloads chan ruleset.Reload

func newReloads() reloads { return make(reloads, 10_000) }

func (r reloads) observe(reload ruleset.Reload) { r <- reload }

// next waits for the next attempt.
func (r reloads) next(t *testing.T) ruleset.Reload {
	t.Helper()
	timeout := time.NewTimer(5 * time.Minute) // for a test that fails
	defer timeout.Stop()
	select {
	case reload := <-r:
		return reload
	case <-timeout.C:
		t.Fatal("no reload was observed")
		return ruleset.Reload{}
	}
}

// good waits for the next attempt, which must bring the text into force.
func (r reloads) good(t *testing.T, text string) {
	t.Helper()
	reload := r.next(t)
	if reload.Err != nil || reload.Hash != hashOf(text) {
		t.Fatalf("got hash %q, error %v, want hash %q of\n%s", reload.Hash, reload.Err, hashOf(text), text)
	}
}

// bad waits for the next attempt, which must fail with an error that contains want.
func (r reloads) bad(t *testing.T, want string) {
	t.Helper()
	if reload := r.next(t); reload.Err == nil || !strings.Contains(reload.Err.Error(), want) {
		t.Fatalf("got error %v, want one with %q", reload.Err, want)
	}
}

// openLive returns a live set whose first load was observed. It is closed at the end of the test.
func openLive(t *testing.T, path string, opts ...ruleset.Option) (*ruleset.Live, reloads) {
	t.Helper()
	seen := newReloads()
	l, err := ruleset.Open(path, append(opts, ruleset.WithReloadObserver(seen.observe))...)
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, l)
	seen.next(t)
	return l, seen
}

func closeLater(t *testing.T, l *ruleset.Live) {
	t.Helper()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// wantKey checks the key of the rule in force.
func wantKey(t *testing.T, l *ruleset.Live, want string) {
	t.Helper()
	if rules := l.Current().Match(task()); len(rules) != 1 || rules[0].Key != want {
		t.Errorf("got rules %v in force, want one with key %q", rules, want)
	}
}

// lines collects the lines of a log.
type lines chan string

func (l lines) Write(text []byte) (int, error) {
	l <- string(text)
	return len(text), nil
}

// logging redirects the default logger to the returned lines until the test ends.
func logging(t *testing.T) lines {
	t.Helper()
	logged, before := make(lines, 10), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(logged, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return logged
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
