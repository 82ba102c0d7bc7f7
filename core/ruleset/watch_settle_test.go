package ruleset_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
)

// Of many changes in a row the last is taken, when nothing has changed for long enough.
func TestWatch_TakesTheLastOfManyChanges(t *testing.T) {
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
			path, cfg := fileWith(t, keyed("a")), patient()
			_, seen := watched(t, path, cfg)
			for n := 1; n <= 20; n++ {
				change(t, path, keyed("a", n))
				time.Sleep(cfg.Settle / 2) // the next change comes before this one has settled
			}
			seen.good(t, keyed("a", 20))
			time.Sleep(10 * cfg.Settle) // for what must not come
			if len(seen) > 0 {
				t.Errorf("observed besides: %+v", <-seen)
			}
		})
	}
}

// A change is taken when it has been still for the settle time: no sooner, and after that at
// the next look.
func TestWatch_TakesAChangeOnceItHasSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path, cfg := fileWith(t, keyed("a")), patient()
		_, seen := watched(t, path, cfg)
		for n := 1; n <= 5; n++ {
			changed := time.Now()
			rulesettest.Replace(t, path, keyed("a", n))
			waited := seen.next(t).Time.Sub(changed)
			if latest := cfg.Poll + cfg.Settle + cfg.Settle/10; waited < cfg.Settle || waited > latest {
				t.Errorf("taken %s after the change, want %s to %s", waited, cfg.Settle, latest)
			}
		}
	})
}

// A change that is taken back before it has settled is none.
func TestWatch_ForgetsAChangeThatIsTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path, cfg := fileWith(t, keyed("a")), patient()
		l, seen := watched(t, path, cfg)
		for _, other := range []string{keyed("b"), broken, ""} {
			rulesettest.Write(t, path, other)
			time.Sleep(cfg.Settle / 2) // it is seen, and waited for
			rulesettest.Write(t, path, keyed("a"))
			time.Sleep(10 * cfg.Settle) // for what must not come
		}
		wantKey(t, l, "a")
		if len(seen) > 0 {
			t.Errorf("observed %+v", <-seen)
		}
	})
}

// A file that is gone for long is told once, and so is one that comes back.
func TestWatch_TellsOfAnAbsentFileOnce(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(t testing.TB, path string){
		"the file":   remove,
		"its folder": func(t testing.TB, path string) { t.Helper(); remove(t, filepath.Dir(path)) },
	} {
		inBubble(t, name, func(t *testing.T) {
			top, cfg := t.TempDir(), patient()
			path := plain(t, top, keyed("a"))
			l, seen := watched(t, path, cfg)
			for n := 1; n <= 3; n++ {
				away(t, path)
				time.Sleep(10 * cfg.Settle) // it is looked at many times
				seen.bad(t, "no such file")
				wantKey(t, l, "a")
				mkdir(t, filepath.Dir(path))
				rulesettest.Write(t, path, keyed("a", n))
				time.Sleep(10 * cfg.Settle) // it is looked at many times
				seen.good(t, keyed("a", n))
				if len(seen) > 0 {
					t.Errorf("observed besides: %+v", <-seen)
				}
			}
		})
	}
}

// What somebody has loaded in the meantime is not loaded again.
func TestWatch_FollowsAReloadOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path, cfg := fileWith(t, keyed("a")), patient()
		l, seen := watched(t, path, cfg)
		for n := 1; n <= 5; n++ {
			rulesettest.Write(t, path, keyed("a", n))
			time.Sleep(cfg.Settle / 2) // the watcher has seen it, and waits
			if err := l.Reload(); err != nil {
				t.Fatal(err)
			}
			seen.good(t, keyed("a", n))
			time.Sleep(5 * cfg.Settle) // for what must not come
			if len(seen) > 0 {
				t.Errorf("observed besides: %+v", <-seen)
			}
		}
	})
}

// Who closes does not wait until a file has settled.
func TestWatch_CloseEndsTheWaiting(t *testing.T) {
	t.Parallel()
	path, cfg := fileWith(t, keyed("a")), quickly()
	cfg.Settle = 24 * time.Hour
	looked := make(chan struct{}, 100)
	cfg.Open = func() (*fsnotify.Watcher, error) {
		looked <- struct{}{}
		return fsnotify.NewWatcher()
	}
	l, seen := watched(t, path, cfg)
	<-looked
	rulesettest.Replace(t, path, keyed("a", 1))
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if len(seen) > 0 {
		t.Errorf("observed %+v", <-seen)
	}
}

// Other files of the folder may come and go: nobody is notified, and nothing is missed.
func TestWatch_OtherFilesAreNoChange(t *testing.T) {
	t.Parallel()
	path := fileWith(t, keyed("a"))
	_, seen := watched(t, path, quickly())
	for n := 1; n <= 5; n++ {
		for i := range 50 {
			other := filepath.Join(filepath.Dir(path), fmt.Sprintf("other%d.yaml", i))
			rulesettest.Write(t, other, broken)
			rename(t, other, other+"~")
			remove(t, other+"~")
		}
		rulesettest.Replace(t, path, keyed("a", n))
		seen.good(t, keyed("a", n))
	}
	if len(seen) > 0 {
		t.Errorf("observed besides: %+v", <-seen)
	}
}

// Kubernetes puts a new folder beside the old one and swaps a link to it: that is seen in
// the folder of the file, with nothing to poll.
func TestWatch_SeesAConfigMapWithoutAPoll(t *testing.T) {
	t.Parallel()
	top, cfg := t.TempDir(), quickly()
	cfg.Poll = 24 * time.Hour
	mapDir(t, top, keyed("a"), 0)
	path := filepath.Join(top, "locks.yaml")
	rulesettest.Link(t, filepath.Join("..data", "locks.yaml"), path)
	l, seen := watched(t, path, cfg)
	for n := 1; n <= 10; n++ {
		mapDir(t, top, keyed("a", n), n)
		seen.good(t, keyed("a", n))
		if got := l.Current().Match(task())[0].Source("wait_time").String(); got != path+":4:16" {
			t.Errorf("the value comes from %s, want the path as it was given", got)
		}
	}
}

// Whatever links lead to the file, observers are notified of it by its own path.
func TestWatch_ReportsTheFileAsItWasGiven(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	release(t, top, keyed("a"), 0)
	path, cfg := filepath.Join(top, "current", "locks.yaml"), quickly()
	cfg.Poll = 20 * time.Millisecond
	_, seen := watched(t, path, cfg)
	release(t, top, broken, 1)
	r := seen.next(t)
	if r.File != path || r.Hash != hashOf(broken) || r.Err == nil || r.Set != r.Old {
		t.Errorf("observed %+v", r)
	}
	release(t, top, keyed("a", 1), 2)
	if r := seen.next(t); r.File != path || r.Hash != hashOf(keyed("a", 1)) || r.Err != nil || r.Set == r.Old || r.Old == nil {
		t.Errorf("observed %+v", r)
	}
}
