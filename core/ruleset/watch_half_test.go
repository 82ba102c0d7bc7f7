package ruleset_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
)

// patient is a watch with the times of [ruleset.Watch], for a bubble, where a busy
// machine makes no pause longer. It polls: who waits for the system to tell of a change
// stops the clock of a bubble. It rests in between, so that most changes begin while
// nobody looks.
func patient() ruleset.WatchConfig {
	return ruleset.WatchConfig{
		Open:   func() (*fsnotify.Watcher, error) { return nil, syscall.EMFILE },
		Settle: time.Second, Poll: 280 * time.Millisecond,
	}
}

// inBubble is a parallel subtest in a bubble.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, test)
	})
}

// slowly writes text in place, in parts, with a pause after each.
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
		time.Sleep(pause) // the fault: a writer that is slow
	}
}

// growing is a file in parts, each of which ends a file that is right.
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

func TestWatch_TakesNoHalfOfAFile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		parts int
		pause time.Duration
	}{
		"that grows for longer than one must stay the same": {24, patient().Settle / 16},
		"whose writer stalls":                               {2, patient().Settle / 3},
	} {
		for name2, begin := range map[string]func(t *testing.T, top, text string) string{"file": plain, "target of a link": linked} {
			inBubble(t, name2+" "+name, func(t *testing.T) {
				path := begin(t, t.TempDir(), keyed("a", 1))
				_, seen := watched(t, path, patient())
				parts, text := growing(tc.parts)
				slowly(t, path, tc.pause, parts...)
				seen.good(t, text)
			})
		}
	}
}

// A file that is new where the old one was is written in place as well.
func TestWatch_TakesNoHalfOfANewFile(t *testing.T) {
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
			cfg := patient()
			_, seen := watched(t, path, cfg)
			away(t, path)
			time.Sleep(cfg.Settle / 2) // it is seen that nothing is there
			if name == "a directory" {
				remove(t, path)
			}
			parts, text := growing(2)
			slowly(t, path, cfg.Settle/3, parts...)
			seen.good(t, text)
		})
	}
}

// A file is the one in force also if it was put there with the same content.
func TestWatch_TakesNoHalfOfAFileThatReplacedItsLike(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := fileWith(t, keyed("a", 1))
		cfg := patient()
		_, seen := watched(t, path, cfg)
		for n := range 2 {
			rulesettest.Replace(t, path, keyed("a", n+1))
			if n > 0 {
				seen.good(t, keyed("a", n+1))
			}
			time.Sleep(2 * cfg.Settle) // the file has been seen, and is at rest
			parts, text := growing(n + 1)
			slowly(t, path, cfg.Settle/3, parts...)
			seen.good(t, text)
		}
	})
}

func TestWatch_BriefAbsenceIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := fileWith(t, keyed("a"))
		cfg := patient()
		_, seen := watched(t, path, cfg)
		for n := 1; n <= 4; n++ {
			if remove(t, path); n%2 == 0 {
				rulesettest.Write(t, path, "")
			}
			time.Sleep(cfg.Settle / 2) // how long it is absent, or empty
			rulesettest.Replace(t, path, keyed("a", n))
			seen.good(t, keyed("a", n))
		}
	})
}

func TestWatch_ReloadWaitsForNothing(t *testing.T) {
	t.Parallel()
	path := fileWith(t, keyed("a"))
	cfg := quickly()
	cfg.Settle = time.Hour
	l, seen := watched(t, path, cfg)
	rulesettest.Write(t, path, keyed("a", 1))
	if err := l.Reload(); err != nil {
		t.Fatal(err)
	}
	seen.good(t, keyed("a", 1))
}
