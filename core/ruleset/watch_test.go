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
)

// quickly is a watch that does not wait long, and does not poll.
func quickly() ruleset.WatchConfig {
	return ruleset.WatchConfig{
		Open: fsnotify.NewWatcher, Replaced: 10 * time.Millisecond, Written: 100 * time.Millisecond, Poll: time.Hour,
	}
}

// watched is opened for a watched file.
func watched(t *testing.T, path string, cfg ruleset.WatchConfig) (*ruleset.Live, reloads) {
	t.Helper()
	seen := newReloads()
	l, err := ruleset.WatchWith(path, cfg, ruleset.WithReloadObserver(seen))
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
}

// plain begins with an ordinary file.
func plain(t *testing.T, top, text string) string {
	t.Helper()
	path := filepath.Join(mkdir(t, filepath.Join(top, "config")), "locks.yaml")
	write(t, path, text)
	return path
}

// linked begins with a link to a file in another directory.
func linked(t *testing.T, top, text string) string {
	t.Helper()
	path := filepath.Join(mkdir(t, filepath.Join(top, "config")), "locks.yaml")
	write(t, filepath.Join(mkdir(t, filepath.Join(top, "elsewhere")), "real.yaml"), text)
	link(t, "../elsewhere/real.yaml", path)
	return path
}

func target(path string) string {
	return filepath.Join(filepath.Dir(path), "..", "elsewhere", "real.yaml")
}

// mapDir makes a directory as Kubernetes does for a ConfigMap.
func mapDir(t *testing.T, top, text string, n int) {
	t.Helper()
	name := "..2024_" + string(rune('a'+n))
	write(t, filepath.Join(mkdir(t, filepath.Join(top, name)), "locks.yaml"), text)
	link(t, name, filepath.Join(top, "..data"))
}

// release makes a directory, and the link that says it is the current one.
func release(t *testing.T, top, text string, n int) {
	t.Helper()
	name := "v" + string(rune('a'+n))
	write(t, filepath.Join(mkdir(t, filepath.Join(top, name)), "locks.yaml"), text)
	link(t, name, filepath.Join(top, "current"))
}

func ways() map[string]way {
	return map[string]way{
		"rename": {plain, func(t *testing.T, path, text string, _ int) { put(t, path, text) }},
		"write":  {plain, func(t *testing.T, path, text string, _ int) { write(t, path, text) }},
		"editor with a backup": {plain, func(t *testing.T, path, text string, _ int) {
			rename(t, path, path+"~")
			write(t, path, text)
			remove(t, path+"~")
		}},
		"delete and write": {plain, func(t *testing.T, path, text string, _ int) {
			remove(t, path)
			write(t, path, text)
		}},
		"target in another directory, written": {linked, func(t *testing.T, path, text string, _ int) {
			write(t, target(path), text)
		}},
		"target in another directory, renamed": {linked, func(t *testing.T, path, text string, _ int) {
			put(t, target(path), text)
		}},
		"another target": {linked, func(t *testing.T, path, text string, n int) {
			next := filepath.Join(mkdir(t, filepath.Join(path, "..", "..", "next"+string(rune('a'+n)))), "real.yaml")
			write(t, next, text)
			link(t, next, path)
		}},
		"config map": {
			func(t *testing.T, top, text string) string {
				mapDir(t, top, text, 0)
				link(t, "..data/locks.yaml", filepath.Join(top, "locks.yaml"))
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
		},
		"link to the directory": {
			func(t *testing.T, top, text string) string {
				release(t, top, text, 0)
				return filepath.Join(top, "current", "locks.yaml")
			},
			func(t *testing.T, path, text string, n int) { release(t, filepath.Join(path, "..", ".."), text, n) },
		},
		"directory renamed": {plain, func(t *testing.T, path, text string, n int) {
			dir := filepath.Dir(path)
			write(t, filepath.Join(mkdir(t, dir+".new"), "locks.yaml"), text)
			rename(t, dir, dir+string(rune('a'+n)))
			rename(t, dir+".new", dir)
		}},
		"directory deleted": {plain, func(t *testing.T, path, text string, _ int) {
			remove(t, filepath.Dir(path))
			mkdir(t, filepath.Dir(path))
			write(t, path, text)
		}},
	}
}

func TestWatch_SeesEveryWayOfChange(t *testing.T) {
	t.Parallel()
	for name, w := range ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := w.begin(t, t.TempDir(), keyed("a"))
			l, seen := watched(t, path, quickly())
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

func TestWatch_WatchesWhatThePathLeadsThrough(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"write", "another target", "config map"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			w, cfg, opened := ways()[name], quickly(), make(chan *fsnotify.Watcher, 1)
			cfg.Open = openedTo(opened)
			path := w.begin(t, top, keyed("a"))
			l, seen := watched(t, path, cfg)
			for n := 1; n <= 4; n++ {
				w.change(t, path, keyed("a", n), n)
				seen.good(t, keyed("a", n))
			}
			files := <-opened
			got, want := files.WatchList(), ruleset.WatchedDirs(path)
			slices.Sort(got)
			if slices.Sort(want); !slices.Equal(got, want) {
				t.Errorf("got %q watched, want %q", got, want)
			}
			l.Close()
			if err := files.Add(top); !errors.Is(err, fsnotify.ErrClosed) {
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
		Replaced: time.Millisecond, Written: 5 * time.Millisecond, Poll: 5 * time.Millisecond,
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
	put(t, path, keyed("a")) // the same
	quiet()
	if err := l.Reload(); err != nil {
		t.Fatal(err)
	}
	seen.good(t, keyed("a"))
	quiet()
	first := l.Current()
	put(t, path, broken)
	seen.bad(t, "kye")
	quiet()
	remove(t, path)
	seen.bad(t, "no such file")
	quiet()
	if l.Current() != first {
		t.Error("a bad file replaced the set in force")
	}
	put(t, path, keyed("a")) // what is in force: but it is healthy again
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
		"watched":         fsnotify.NewWatcher,
		"no watch is had": func() (*fsnotify.Watcher, error) { return nil, syscall.EMFILE },
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
	put(t, path, keyed("a", 1))
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
	l, err := ruleset.Watch(path, ruleset.WithReloadObserver(seen))
	if err != nil {
		t.Fatal(err)
	}
	seen.next(t)
	put(t, path, keyed("a", 1))
	seen.good(t, keyed("a", 1))
	put(t, path, keyed("a", 2))
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	// TestMain finds the goroutines that Close has left.
}
