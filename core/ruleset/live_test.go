package ruleset_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
)

func TestOpen_RefusedFile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		path, hash string
		isWanted   func(error) bool
	}{
		"missing": {filepath.Join(t.TempDir(), "locks.yaml"), "", func(err error) bool { return errors.Is(err, fs.ErrNotExist) }},
		"no file": {t.TempDir(), "", func(err error) bool { return strings.Contains(err.Error(), "is not a regular file") }},
		"broken": {fileWith(t, broken), hashOf(broken), func(err error) bool {
			_, ok := errors.AsType[*ruleset.InvalidError](err)
			return ok
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := newReloads()
			l, err := ruleset.Open(tc.path, ruleset.WithReloadObserver(seen.observe))
			if l != nil || err == nil || !tc.isWanted(err) {
				t.Fatalf("got %v, %v", l, err)
			}
			if r := seen.next(t); !errors.Is(r.Err, err) || r.File != tc.path || r.Hash != tc.hash || r.Set != nil {
				t.Errorf("observed %+v", r)
			}
			if l, err := ruleset.Watch(tc.path); l != nil || err == nil {
				t.Errorf("Watch: got %v, %v", l, err)
			}
		})
	}
}

func TestOpen_Observed(t *testing.T) {
	t.Parallel()
	path, seen, before := fileWith(t, keyed("a")), newReloads(), time.Now()
	l, err := ruleset.Open(path, ruleset.WithReloadObserver(seen.observe))
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, l)
	r := seen.next(t)
	if r.File != path || r.Hash != hashOf(keyed("a")) || r.Set != l.Current() || r.Set == nil || r.Err != nil {
		t.Errorf("observed %+v", r)
	}
	if r.Time.Before(before) || r.Time.After(time.Now()) {
		t.Errorf("observed at %v", r.Time)
	}
	wantKey(t, l, "a")
}

func TestLive_Reload_OtherWorkingDirectory(t *testing.T) {
	path := fileWith(t, keyed("a"))
	t.Chdir(filepath.Dir(path))
	l, _ := openLive(t, filepath.Base(path))
	t.Chdir(t.TempDir())
	if err := l.Reload(); err != nil {
		t.Error(err)
	}
}

func TestLive_Reload(t *testing.T) {
	t.Parallel()
	path := fileWith(t, keyed("a"))
	l, seen := openLive(t, path)
	first := l.Current()

	if err := l.Reload(); err != nil {
		t.Fatal(err)
	}
	seen.good(t, keyed("a"))
	if l.Current() == first {
		t.Error("an explicit reload of the same content did nothing")
	}

	rulesettest.Write(t, path, keyed("a", 3))
	if err := l.Reload(); err != nil {
		t.Fatal(err)
	}
	seen.good(t, keyed("a", 3))
	if rule := l.Current().Match(task())[0]; rule.WaitTime != 3*time.Second {
		t.Errorf("got wait %v", rule.WaitTime)
	}
}

func TestLive_Reload_Refused(t *testing.T) {
	t.Parallel()
	path := fileWith(t, keyed("a"))
	l, seen := openLive(t, path)
	first := l.Current()
	for name, tc := range map[string]struct {
		change     func()
		hash, want string
	}{
		"broken":  {func() { rulesettest.Write(t, path, broken) }, hashOf(broken), "kye"},
		"rekeyed": {func() { rulesettest.Write(t, path, keyed("b")) }, hashOf(keyed("b")), "allow_rekey: true"},
		"missing": {func() { remove(t, path) }, "", "no such file"},
	} {
		tc.change()
		err := l.Reload()
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
		if r := seen.next(t); !errors.Is(r.Err, err) || r.Hash != tc.hash || r.Set != first {
			t.Errorf("%s: observed %+v", name, r)
		}
		if l.Current() != first {
			t.Errorf("%s: the set in force was replaced", name)
		}
	}
	rulesettest.Write(t, path, keyed("a"))
	if err := l.Reload(); err != nil {
		t.Error(err)
	}
}

func TestLive_Reload_KeysInSteps(t *testing.T) {
	t.Parallel()
	path := fileWith(t, keyed("old"))
	l, _ := openLive(t, path)
	for _, step := range []string{
		"rules:\n  - func: task\n    keys: [old, new]\n",
		keyed("new"),
		"allow_rekey: true\n" + keyed("other"),
		keyed("other"),
		"disabled: true\n" + keyed("kill switch"),
		"dry_run: true\n" + keyed("trial"),
		keyed("trial"),
	} {
		rulesettest.Write(t, path, step)
		if err := l.Reload(); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
	wantKey(t, l, "trial")
}

func TestLive_Close(t *testing.T) {
	t.Parallel()
	path := fileWith(t, keyed("a"))
	l, seen := openLive(t, path)
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Reload(); !errors.Is(err, ruleset.ErrClosed) {
		t.Errorf("Reload after Close: got %v", err)
	}
	if len(seen) > 0 {
		t.Errorf("observed %+v after Close", <-seen)
	}
	wantKey(t, l, "a")
}

func TestLive_Close_WaitsForReload(t *testing.T) {
	t.Parallel()
	l, seen := openLive(t, fileWith(t, keyed("a")))
	entered, release := make(chan struct{}), make(chan struct{})
	first := l.Current()
	if _, err := l.Subscribe(func(next *ruleset.Set) (func(), error) {
		if next != first {
			close(entered)
			<-release
		}
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() { l.Reload() })
	<-entered
	time.AfterFunc(30*time.Millisecond, func() { close(release) })
	l.Close()
	if len(seen) != 1 {
		t.Error("Close returned before the reload had ended")
	}
	done.Wait()
}

func panicky(ruleset.Reload) { panic("observer") }

func TestLive_Observe_PanicIsContained(t *testing.T) {
	t.Parallel()
	l, seen := openLive(t, fileWith(t, keyed("a")), ruleset.WithReloadObserver(panicky))
	if err := l.Reload(); err != nil {
		t.Fatal(err)
	}
	seen.good(t, keyed("a"))
}

func TestLive_Reload_Concurrent(t *testing.T) {
	t.Parallel()
	l, seen := openLive(t, fileWith(t, keyed("a")))
	running := 0 // plain variables, for the race detector
	if _, err := l.Subscribe(func(*ruleset.Set) (func(), error) {
		running++
		return func() { running-- }, nil
	}); err != nil {
		t.Fatal(err)
	}
	var reloading sync.WaitGroup
	for range 8 {
		reloading.Go(func() {
			for range 10 {
				if err := l.Reload(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	reloading.Wait()
	if running != 0 || len(seen) != 80 {
		t.Errorf("got %d prepared but not committed, %d observed", running, len(seen))
	}
}

func TestLive_Current_Allocs(t *testing.T) {
	l, _ := openLive(t, fileWith(t, keyed("a")))
	if n := testing.AllocsPerRun(100, func() { l.Current().Match(task()) }); n > 0 {
		t.Errorf("got %v allocations", n)
	}
}

// Observe may be called while a reload is observed and while it is prepared.
func TestLive_Observe_DuringReload(t *testing.T) {
	t.Parallel()
	path := fileWith(t, keyed("a"))
	added, inside := newReloads(), newReloads()
	observeAdded, observeInside := added.observe, inside.observe
	var l *ruleset.Live
	l, seen := openLive(t, path, ruleset.WithReloadObserver(func(r ruleset.Reload) {
		if r.Old != nil {
			l.Observe(&observeAdded)
		}
	}))
	if _, err := l.Subscribe(func(set *ruleset.Set) (func(), error) {
		if l.Current() != set {
			l.Observe(&observeInside)
		}
		return func() {}, nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{keyed("a", 20), keyed("a", 40)} {
		rulesettest.Write(t, path, text)
		done := make(chan error, 1)
		go func() { done <- l.Reload() }()
		select {
		case err := <-done:
			if err == nil {
				break
			}
			t.Fatal(err)
		case <-time.After(time.Minute): // for a test that fails
			t.Fatal("the reload and Observe are in a deadlock")
		}
		seen.good(t, text)
	}
	for _, text := range []string{keyed("a", 20), keyed("a", 40)} {
		added.good(t, text)
	}
	for _, text := range []string{keyed("a"), keyed("a", 20), keyed("a", 40)} {
		inside.good(t, text)
	}
	if len(added)+len(inside) > 0 {
		t.Errorf("%d notifications more than attempts", len(added)+len(inside))
	}
}

// A file that lets calls run unlocked comes into force and is logged as an error, like a refusal.
func TestLive_Log_Unlocked(t *testing.T) { //nolint:paralleltest // see above
	logged := logging(t)

	const pay, ship = "  - {func: pay, key: pay}\n", "  - {func: ship, key: ship}\n"
	for name, test := range map[string]struct {
		first, next string
		want        []string // none: the load is logged as information
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
				wantLine(t, logged, "level=INFO", `msg="lock rules loaded"`, path, "rules=2")
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

// A panic of an observer is logged once.
func TestLive_Observe_PanicIsLoggedOnce(t *testing.T) { //nolint:paralleltest // there is one default logger
	logged, before := &bytes.Buffer{}, slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(logged, nil)))
	defer slog.SetDefault(before)
	l, _ := openLive(t, fileWith(t, keyed("a")), ruleset.WithReloadObserver(panicky))
	if err := l.Reload(); err != nil {
		t.Fatal(err)
	}
	if text := logged.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "ruleset_test.panicky") {
		t.Errorf("logged: %s", text)
	}
}
