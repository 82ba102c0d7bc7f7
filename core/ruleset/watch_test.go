package ruleset_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
)

// settle is the time for which a content must stay the same for [ruleset.Watch].
const settle = time.Second

// inBubble runs a parallel subtest in a bubble, where pauses take the same time on a busy machine.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, test)
	})
}

// watchLive is like openLive for a watched file.
func watchLive(t *testing.T, path string) (*ruleset.Live, reloads) {
	t.Helper()
	seen := newReloads()
	l, err := ruleset.Watch(path, ruleset.WithReloadObserver(seen.observe))
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, l)
	seen.next(t)
	return l, seen
}

// way is a way to replace the content of a path.
type way struct {
	// begin creates the path, with its first content, in the folder top.
	begin func(t *testing.T, top, text string) (path string)
	// change replaces the content of the path. n counts the changes.
	change func(t *testing.T, path, text string, n int)
}

// plain creates an ordinary file.
func plain(t *testing.T, top, text string) string {
	t.Helper()
	path := filepath.Join(mkdir(t, filepath.Join(top, "config")), "locks.yaml")
	rulesettest.Write(t, path, text)
	return path
}

// linked creates a link to a file in another directory.
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

// mapDir creates a directory as Kubernetes does for a ConfigMap.
func mapDir(t *testing.T, top, text string, n int) {
	t.Helper()
	name := "..2024_" + string(rune('a'+n))
	rulesettest.Write(t, filepath.Join(mkdir(t, filepath.Join(top, name)), "locks.yaml"), text)
	rulesettest.Link(t, name, filepath.Join(top, "..data"))
}

// release creates a directory and makes the current link point to it.
func release(t *testing.T, top, text string, n int) {
	t.Helper()
	name := "v" + string(rune('a'+n))
	rulesettest.Write(t, filepath.Join(mkdir(t, filepath.Join(top, name)), "locks.yaml"), text)
	rulesettest.Link(t, name, filepath.Join(top, "current"))
}

func ways() map[string]way {
	return map[string]way{
		"rename": {plain, func(t *testing.T, path, text string, _ int) { rulesettest.Replace(t, path, text) }},
		"write":  {plain, func(t *testing.T, path, text string, _ int) { rulesettest.Write(t, path, text) }},
		"editor with a backup": {plain, func(t *testing.T, path, text string, _ int) {
			rename(t, path, path+"~")
			rulesettest.Write(t, path, text)
			remove(t, path+"~")
		}},
		"delete and write": {plain, func(t *testing.T, path, text string, _ int) {
			remove(t, path)
			rulesettest.Write(t, path, text)
		}},
		"target in another directory, written": {linked, func(t *testing.T, path, text string, _ int) {
			rulesettest.Write(t, target(path), text)
		}},
		"target in another directory, renamed": {linked, func(t *testing.T, path, text string, _ int) {
			rulesettest.Replace(t, target(path), text)
		}},
		"another target": {linked, func(t *testing.T, path, text string, n int) {
			next := filepath.Join(mkdir(t, filepath.Join(path, "..", "..", "next"+string(rune('a'+n)))), "real.yaml")
			rulesettest.Write(t, next, text)
			rulesettest.Link(t, next, path)
		}},
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
			rulesettest.Write(t, filepath.Join(mkdir(t, dir+".new"), "locks.yaml"), text)
			rename(t, dir, dir+string(rune('a'+n)))
			rename(t, dir+".new", dir)
		}},
		"directory deleted": {plain, func(t *testing.T, path, text string, _ int) {
			remove(t, filepath.Dir(path))
			mkdir(t, filepath.Dir(path))
			rulesettest.Write(t, path, text)
		}},
	}
}

func TestWatch_WaysOfChange(t *testing.T) {
	t.Parallel()
	for name, w := range ways() {
		inBubble(t, name, func(t *testing.T) {
			path := w.begin(t, t.TempDir(), keyed("a"))
			l, seen := watchLive(t, path)
			for n := 1; n <= 4; n++ {
				text := keyed("a", n)
				w.change(t, path, text, n)
				seen.good(t, text)
				rule := l.Current().Match(task())[0]
				if rule.WaitTime != time.Duration(n)*time.Second || rule.Source("wait_time").String() != path+":4:16" {
					t.Errorf("change %d: got wait %v of %s in force", n, rule.WaitTime, rule.Source("wait_time"))
				}
			}
			w.change(t, path, broken, 5)
			if r := seen.next(t); r.File != path || r.Hash != hashOf(broken) || r.Err == nil || r.Set != r.Old {
				t.Errorf("observed %+v", r)
			}
		})
	}
}

func TestWatch_EveryContentOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := fileWith(t, keyed("a"))
		l, seen := watchLive(t, path)
		quiet := func() {
			t.Helper()
			if time.Sleep(10 * settle); len(seen) > 0 { // virtual time: nothing must be observed
				t.Fatalf("observed %+v without a change", <-seen)
			}
		}
		quiet()
		rulesettest.Replace(t, path, keyed("a")) // the same content
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
		rulesettest.Replace(t, path, keyed("a")) // the content in force, so that the file is valid again
		seen.good(t, keyed("a"))
		quiet()
	})
}

func TestWatch_Close(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := fileWith(t, keyed("a"))
		l, seen := watchLive(t, path)
		rulesettest.Replace(t, path, keyed("a", 1))
		seen.good(t, keyed("a", 1))
		rulesettest.Replace(t, path, keyed("a", 2))
		time.Sleep(settle / 2) // virtual time: the watcher has read the file, and waits
		for range 2 {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		if len(seen) > 0 {
			t.Errorf("observed %+v", <-seen)
		}
		// The bubble reports goroutines that Close did not end.
	})
}

// After many changes in a row, the last content comes into force when it has not changed for the settle time.
func TestWatch_LastOfManyChanges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t testing.TB, path, text string){
		"renamed": rulesettest.Replace,
		"written": rulesettest.Write,
		"absent in between": func(t testing.TB, path, text string) {
			t.Helper()
			remove(t, path)
			rulesettest.Replace(t, path, text)
		},
		"broken in between": func(t testing.TB, path, text string) {
			t.Helper()
			rulesettest.Write(t, path, broken)
			rulesettest.Write(t, path, text)
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			path := fileWith(t, keyed("a"))
			_, seen := watchLive(t, path)
			for n := 1; n <= 20; n++ {
				change(t, path, keyed("a", n))
				time.Sleep(settle * 2 / 5) // virtual time: the next change comes before this one settles
			}
			seen.good(t, keyed("a", 20))
			time.Sleep(10 * settle) // virtual time: nothing must be observed
			if len(seen) > 0 {
				t.Errorf("also observed: %+v", <-seen)
			}
		})
	}
}

// A change comes into force at the first read after it has stayed for the settle time.
func TestWatch_SettleTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := fileWith(t, keyed("a"))
		_, seen := watchLive(t, path)
		for n := 1; n <= 5; n++ {
			time.Sleep(time.Duration(n) * settle / 10) // virtual time: at several moments between two reads
			changed := time.Now()
			rulesettest.Replace(t, path, keyed("a", n))
			waited := seen.next(t).Time.Sub(changed)
			if latest := settle * 3 / 2; waited < settle || waited > latest {
				t.Errorf("taken %s after the change, want %s to %s", waited, settle, latest)
			}
		}
	})
}

// A change that is reverted before it settles is not observed.
func TestWatch_RevertedChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := fileWith(t, keyed("a"))
		l, seen := watchLive(t, path)
		for _, other := range []string{keyed("b"), broken, ""} {
			rulesettest.Write(t, path, other)
			time.Sleep(settle / 2) // virtual time: the watcher has read the file, and waits
			rulesettest.Write(t, path, keyed("a"))
			time.Sleep(10 * settle) // virtual time: nothing must be observed
		}
		wantKey(t, l, "a")
		if len(seen) > 0 {
			t.Errorf("observed %+v", <-seen)
		}
	})
}

// Watch reports a file that stays missing once, and its return once.
func TestWatch_AbsentFile(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(t testing.TB, path string){
		"the file":   remove,
		"its folder": func(t testing.TB, path string) { t.Helper(); remove(t, filepath.Dir(path)) },
	} {
		inBubble(t, name, func(t *testing.T) {
			top := t.TempDir()
			path := plain(t, top, keyed("a"))
			l, seen := watchLive(t, path)
			for n := 1; n <= 3; n++ {
				away(t, path)
				time.Sleep(10 * settle) // virtual time: the file is read many times
				seen.bad(t, "no such file")
				wantKey(t, l, "a")
				mkdir(t, filepath.Dir(path))
				rulesettest.Write(t, path, keyed("a", n))
				time.Sleep(10 * settle) // virtual time: the file is read many times
				seen.good(t, keyed("a", n))
				if len(seen) > 0 {
					t.Errorf("also observed: %+v", <-seen)
				}
			}
		})
	}
}

// Watch does not load a content that Reload has loaded before.
func TestWatch_AfterReload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := fileWith(t, keyed("a"))
		l, seen := watchLive(t, path)
		for n := 1; n <= 5; n++ {
			rulesettest.Write(t, path, keyed("a", n))
			time.Sleep(settle / 2) // virtual time: the watcher has read the file, and waits
			if err := l.Reload(); err != nil {
				t.Fatal(err)
			}
			seen.good(t, keyed("a", n))
			time.Sleep(5 * settle) // virtual time: nothing must be observed
			if len(seen) > 0 {
				t.Errorf("also observed: %+v", <-seen)
			}
		}
	})
}

// slowly writes the parts of a text to the file, with a pause after each part.
func slowly(t *testing.T, path string, pause time.Duration, parts ...string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, part := range parts {
		if _, err := f.WriteString(part); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pause) // virtual time: a slow writer
	}
}

// growing returns a file in parts. The file is valid after each part.
func growing(n int) (parts []string, text string) {
	parts = []string{keyed("a")}
	for i := range n {
		parts = append(parts, fmt.Sprintf("  - func: task%d\n    key: a\n", i))
	}
	for _, part := range parts {
		text += part
	}
	return parts, text
}

func TestWatch_GrowingFile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		parts int
		pause time.Duration
	}{
		"that grows for longer than one must stay the same": {24, settle / 16},
		"whose writer stalls":                               {2, settle / 3},
	} {
		for name2, begin := range map[string]func(t *testing.T, top, text string) string{"file": plain, "target of a link": linked} {
			inBubble(t, name2+" "+name, func(t *testing.T) {
				path := begin(t, t.TempDir(), keyed("a", 1))
				_, seen := watchLive(t, path)
				parts, text := growing(tc.parts)
				slowly(t, path, tc.pause, parts...)
				seen.good(t, text)
			})
		}
	}
}

// A new file replaces the old one and is then written slowly.
func TestWatch_GrowingNewFile(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(t *testing.T, path string){
		"deleted":     func(t *testing.T, path string) { remove(t, path) },
		"renamed":     func(t *testing.T, path string) { rename(t, path, path+"~") },
		"emptied":     func(t *testing.T, path string) { rulesettest.Write(t, path, "") },
		"put empty":   func(t *testing.T, path string) { rulesettest.Replace(t, path, "") },
		"a directory": func(t *testing.T, path string) { remove(t, path); mkdir(t, path) },
	} {
		inBubble(t, name, func(t *testing.T) {
			path := fileWith(t, keyed("a", 1))
			_, seen := watchLive(t, path)
			away(t, path)
			time.Sleep(settle / 2) // virtual time: the watcher has read the path without the file
			if name == "a directory" {
				remove(t, path)
			}
			parts, text := growing(2)
			slowly(t, path, settle/3, parts...)
			seen.good(t, text)
		})
	}
}

// A file is replaced by the same content and is then written slowly.
func TestWatch_GrowingSameFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := fileWith(t, keyed("a", 1))
		_, seen := watchLive(t, path)
		for n := range 2 {
			rulesettest.Replace(t, path, keyed("a", n+1))
			if n > 0 {
				seen.good(t, keyed("a", n+1))
			}
			time.Sleep(2 * settle) // virtual time: the file has settled
			parts, text := growing(n + 1)
			slowly(t, path, settle/3, parts...)
			seen.good(t, text)
		}
	})
}

func TestWatch_BriefAbsence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := fileWith(t, keyed("a"))
		_, seen := watchLive(t, path)
		for n := 1; n <= 4; n++ {
			if remove(t, path); n%2 == 0 {
				rulesettest.Write(t, path, "")
			}
			time.Sleep(settle / 2) // virtual time: the file is missing or empty
			rulesettest.Replace(t, path, keyed("a", n))
			seen.good(t, keyed("a", n))
		}
	})
}

// A refusal is logged if Watch has no observer. The test is not parallel, because there is one default
// logger.
func TestWatch_Log_Refusal(t *testing.T) { //nolint:paralleltest // see above
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

// The end of a refusal is logged once, whether Watch or Reload loads the file. Later loads do not log it
// again.
func TestWatch_Log_EndOfRefusal(t *testing.T) { //nolint:paralleltest // there is one default logger
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
			t.Error("the broken file came into force")
		}
		rulesettest.Replace(t, path, keyed("a"))
		wantLine(t, logged, "level=INFO", `msg="lock rules loaded; the refusal has ended"`, path, "hash=")
		if err := l.Reload(); err != nil {
			t.Fatal(err)
		}
		wantLine(t, logged, "level=INFO", `msg="lock rules loaded"`, path, "hash=")
	}
	if len(logged) > 0 {
		t.Errorf("also logged: %q", <-logged)
	}
}

// One line logs both the end of a refusal and the calls that run unlocked.
func TestWatch_Log_UnlockedAfterRefusal(t *testing.T) { //nolint:paralleltest // there is one default logger
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
		t.Errorf("also logged: %q", <-logged)
	}
}
