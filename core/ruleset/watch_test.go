package ruleset_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
)

// quickly is a watch that does not wait long, but longer than a busy machine takes between
// emptying a file and writing it, and does not poll.
func quickly() ruleset.WatchConfig {
	return ruleset.WatchConfig{
		Open: fsnotify.NewWatcher, Settle: 300 * time.Millisecond, Poll: time.Hour,
	}
}

// watched is opened for a watched file.
func watched(t *testing.T, path string, cfg ruleset.WatchConfig) (*ruleset.Live, reloads) {
	t.Helper()
	seen := newReloads()
	l, err := ruleset.WatchWith(path, cfg, ruleset.WithReloadObserver(seen.observe))
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, l)
	seen.next(t)
	return l, seen
}

// way is a way to bring a new content under a path.
type way struct {
	// begin makes the path with its first content below top.
	begin func(t *testing.T, top, text string) (path string)
	// change gives it another one. n counts the changes.
	change func(t *testing.T, path, text string, n int)
	// untold says that nothing happens in the folder of the path: the poll finds it.
	untold bool
}

// plain begins with an ordinary file.
func plain(t *testing.T, top, text string) string {
	t.Helper()
	path := filepath.Join(mkdir(t, filepath.Join(top, "config")), "locks.yaml")
	rulesettest.Write(t, path, text)
	return path
}

// linked begins with a link to a file in another directory.
func linked(t *testing.T, top, text string) string {
	t.Helper()
	path := filepath.Join(mkdir(t, filepath.Join(top, "config")), "locks.yaml")
	rulesettest.Write(t, filepath.Join(mkdir(t, filepath.Join(top, "elsewhere")), "real.yaml"), text)
	rulesettest.Link(t, "../elsewhere/real.yaml", path)
	return path
}

func target(path string) string {
	return filepath.Join(filepath.Dir(path), "..", "elsewhere", "real.yaml")
}

// mapDir makes a directory as Kubernetes does for a ConfigMap.
func mapDir(t *testing.T, top, text string, n int) {
	t.Helper()
	name := "..2024_" + string(rune('a'+n))
	rulesettest.Write(t, filepath.Join(mkdir(t, filepath.Join(top, name)), "locks.yaml"), text)
	rulesettest.Link(t, name, filepath.Join(top, "..data"))
}

// release makes a directory, and the link that says it is the current one.
func release(t *testing.T, top, text string, n int) {
	t.Helper()
	name := "v" + string(rune('a'+n))
	rulesettest.Write(t, filepath.Join(mkdir(t, filepath.Join(top, name)), "locks.yaml"), text)
	rulesettest.Link(t, name, filepath.Join(top, "current"))
}

func ways() map[string]way {
	return map[string]way{
		"rename": {plain, func(t *testing.T, path, text string, _ int) { rulesettest.Replace(t, path, text) }, false},
		"write":  {plain, func(t *testing.T, path, text string, _ int) { rulesettest.Write(t, path, text) }, false},
		"editor with a backup": {plain, func(t *testing.T, path, text string, _ int) {
			rename(t, path, path+"~")
			rulesettest.Write(t, path, text)
			remove(t, path+"~")
		}, false},
		"delete and write": {plain, func(t *testing.T, path, text string, _ int) {
			remove(t, path)
			rulesettest.Write(t, path, text)
		}, false},
		"target in another directory, written": {linked, func(t *testing.T, path, text string, _ int) {
			rulesettest.Write(t, target(path), text)
		}, true},
		"target in another directory, renamed": {linked, func(t *testing.T, path, text string, _ int) {
			rulesettest.Replace(t, target(path), text)
		}, true},
		"another target": {linked, func(t *testing.T, path, text string, n int) {
			next := filepath.Join(mkdir(t, filepath.Join(path, "..", "..", "next"+string(rune('a'+n)))), "real.yaml")
			rulesettest.Write(t, next, text)
			rulesettest.Link(t, next, path)
		}, false},
		"config map": {
			func(t *testing.T, top, text string) string {
				mapDir(t, top, text, 0)
				rulesettest.Link(t, "..data/locks.yaml", filepath.Join(top, "locks.yaml"))
				return filepath.Join(top, "locks.yaml")
			},
			func(t *testing.T, path, text string, n int) {
				old, err := filepath.EvalSymlinks(path)
				if err != nil {
					t.Fatal(err)
				}
				mapDir(t, filepath.Dir(path), text, n)
				remove(t, filepath.Dir(old))
			},
			false,
		},
		"link to the directory": {
			func(t *testing.T, top, text string) string {
				release(t, top, text, 0)
				return filepath.Join(top, "current", "locks.yaml")
			},
			func(t *testing.T, path, text string, n int) { release(t, filepath.Join(path, "..", ".."), text, n) },
			true,
		},
		"directory renamed": {plain, func(t *testing.T, path, text string, n int) {
			dir := filepath.Dir(path)
			rulesettest.Write(t, filepath.Join(mkdir(t, dir+".new"), "locks.yaml"), text)
			rename(t, dir, dir+string(rune('a'+n)))
			rename(t, dir+".new", dir)
		}, true},
		"directory deleted": {plain, func(t *testing.T, path, text string, _ int) {
			remove(t, filepath.Dir(path))
			mkdir(t, filepath.Dir(path))
			rulesettest.Write(t, path, text)
		}, true},
	}
}

func TestWatch_SeesEveryWayOfChange(t *testing.T) {
	t.Parallel()
	for name, w := range ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, cfg := w.begin(t, t.TempDir(), keyed("a")), quickly()
			if w.untold {
				cfg.Poll = 20 * time.Millisecond
			}
			l, seen := watched(t, path, cfg)
			for n := 1; n <= 4; n++ {
				text := keyed("a", n)
				w.change(t, path, text, n)
				seen.good(t, text)
				if got := l.Current().Match(task())[0].WaitTime; got != time.Duration(n)*time.Second {
					t.Errorf("change %d: got wait %v in force", n, got)
				}
			}
		})
	}
}

func TestWatch_WatchesTheFolderUntilClosed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"write", "another target", "config map"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, cfg, opened := ways()[name], quickly(), make(chan *fsnotify.Watcher, 1)
			cfg.Open = openedTo(opened)
			path := w.begin(t, t.TempDir(), keyed("a"))
			l, seen := watched(t, path, cfg)
			for n := 1; n <= 4; n++ {
				w.change(t, path, keyed("a", n), n)
				seen.good(t, keyed("a", n))
			}
			files := <-opened
			if got := files.WatchList(); !slices.Equal(got, []string{filepath.Dir(path)}) {
				t.Errorf("got %q watched, want the folder of %s", got, path)
			}
			l.Close()
			if err := files.Add(t.TempDir()); !errors.Is(err, fsnotify.ErrClosed) {
				t.Errorf("Close did not wait for the end of the watching: got %v", err)
			}
		})
	}
}

// openedTo opens a watcher and passes it on.
func openedTo(opened chan<- *fsnotify.Watcher) func() (*fsnotify.Watcher, error) {
	return func() (*fsnotify.Watcher, error) {
		files, err := fsnotify.NewWatcher()
		opened <- files
		return files, err
	}
}

// looks is a watch that polls only, and tells whenever it looks.
func looks() (ruleset.WatchConfig, func()) {
	looked := make(chan struct{})
	cfg := ruleset.WatchConfig{
		Open: func() (*fsnotify.Watcher, error) {
			select {
			case looked <- struct{}{}:
			default:
			}
			return nil, syscall.EMFILE
		},
		Settle: 5 * time.Millisecond, Poll: 5 * time.Millisecond,
	}
	return cfg, func() {
		for range 30 { // more than one round has
			<-looked
		}
	}
}

func TestWatch_TellsOfEveryContentOnce(t *testing.T) {
	t.Parallel()
	path := fileWith(t, keyed("a"))
	cfg, afterLooking := looks()
	l, seen := watched(t, path, cfg)
	quiet := func() {
		t.Helper()
		if afterLooking(); len(seen) > 0 {
			t.Fatalf("observed %+v without a change", <-seen)
		}
	}
	quiet()
	rulesettest.Replace(t, path, keyed("a")) // the same
	quiet()
	if err := l.Reload(); err != nil {
		t.Fatal(err)
	}
	seen.good(t, keyed("a"))
	quiet()
	first := l.Current()
	rulesettest.Replace(t, path, broken)
	seen.bad(t, "kye")
	quiet()
	remove(t, path)
	seen.bad(t, "no such file")
	quiet()
	if l.Current() != first {
		t.Error("a bad file replaced the set in force")
	}
	rulesettest.Replace(t, path, keyed("a")) // what is in force: but it is healthy again
	seen.good(t, keyed("a"))
	quiet()
}

// untold changes the file by another name, in a directory that is not watched: a
// change that nobody tells of. The file is not emptied before: a look in between would
// find it so. No text is shorter than the one that it replaces.
func untold(t *testing.T, path string) (write func(text string)) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "same.yaml")
	if err := os.Link(path, other); err != nil {
		t.Fatal(err)
	}
	return func(text string) {
		t.Helper()
		f, err := os.OpenFile(other, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString(text)
		f.Close()
	}
}

func TestWatch_PollFindsWhatNobodyTells(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func() (*fsnotify.Watcher, error){
		"watched":           fsnotify.NewWatcher,
		"there is no watch": func() (*fsnotify.Watcher, error) { return nil, syscall.EMFILE },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := fileWith(t, keyed("a"))
			change := untold(t, path)
			cfg := quickly()
			cfg.Open, cfg.Poll = open, 20*time.Millisecond
			_, seen := watched(t, path, cfg)
			for n := 1; n <= 3; n++ {
				change(keyed("a", n))
				seen.good(t, keyed("a", n))
			}
		})
	}
}

func TestWatch_TriesAgainWhereNoWatchWasHad(t *testing.T) {
	t.Parallel()
	path := fileWith(t, keyed("a"))
	tried := make(chan struct{}, 1000)
	cfg := quickly()
	cfg.Poll = 20 * time.Millisecond
	failures := 3
	cfg.Open = func() (*fsnotify.Watcher, error) {
		if tried <- struct{}{}; len(tried) <= failures {
			return nil, syscall.EMFILE
		}
		return fsnotify.NewWatcher()
	}
	_, seen := watched(t, path, cfg)
	rulesettest.Replace(t, path, keyed("a", 1))
	seen.good(t, keyed("a", 1))
	for range failures + 1 {
		<-tried
	}
}

func TestWatch_LooksAfterALostEvent(t *testing.T) {
	t.Parallel()
	path := fileWith(t, keyed("a"))
	change := untold(t, path)
	opened := make(chan *fsnotify.Watcher, 1)
	cfg := quickly()
	cfg.Open = openedTo(opened)
	_, seen := watched(t, path, cfg)
	files := <-opened
	for n := 1; n <= 3; n++ {
		change(keyed("a", n))
		files.Errors <- fsnotify.ErrEventOverflow
		seen.good(t, keyed("a", n))
	}
}

func TestWatch_CloseEndsIt(t *testing.T) {
	t.Parallel()
	path := fileWith(t, keyed("a"))
	seen := newReloads()
	l, err := ruleset.Watch(path, ruleset.WithReloadObserver(seen.observe))
	if err != nil {
		t.Fatal(err)
	}
	seen.next(t)
	rulesettest.Replace(t, path, keyed("a", 1))
	seen.good(t, keyed("a", 1))
	rulesettest.Replace(t, path, keyed("a", 2))
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	// TestMain finds the goroutines that Close has left.
}
