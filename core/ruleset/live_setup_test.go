package ruleset_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// task is the endpoint of the rule in the files of these tests.
func task() ruleset.Endpoint { return ruleset.Func("task") }

// keyed is a file whose rule has the key. Its wait makes another content of the same
// key.
func keyed(key string, seconds ...int) string {
	text := fmt.Sprintf("rules:\n  - func: task\n    key: %q\n", key)
	for _, s := range seconds {
		text += fmt.Sprintf("    wait_time: %ds\n", s)
	}
	return text
}

const broken = "rules:\n  - func: task\n    kye: a\n"

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:12]
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// fileWith is a new file.
func fileWith(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "locks.yaml")
	rulesettest.Write(t, path, text)
	return path
}

// reloads collects what an observer is told.
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

// opened is a live set, closed at the end of the test, whose first load has been
// observed.
func opened(t *testing.T, path string, opts ...ruleset.Option) (*ruleset.Live, reloads) {
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
