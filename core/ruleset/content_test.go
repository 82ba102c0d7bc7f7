package ruleset_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
)

// A file that is not a rule file is refused with a reason, and the rules in force stay. The next valid file
// comes into force.
func TestLive_Reload_NotARuleFile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		put  func(t *testing.T, path string)
		want string
	}{
		"a folder":          {func(t *testing.T, path string) { t.Helper(); mkdir(t, path) }, "is not a regular file"},
		"a pipe":            {func(t *testing.T, path string) { t.Helper(); rulesettest.Pipe(t, path) }, "is not a regular file"},
		"a link to nothing": {func(t *testing.T, path string) { t.Helper(); rulesettest.Link(t, "nothing.yaml", path) }, "no such file"},
		"a link to itself":  {func(t *testing.T, path string) { t.Helper(); rulesettest.Link(t, filepath.Base(path), path) }, "too many levels of symbolic links"},
		"nothing in it":     {func(t *testing.T, path string) { t.Helper(); rulesettest.Write(t, path, "") }, `the file says nothing: write "rules:"`},
		"only comments":     {func(t *testing.T, path string) { t.Helper(); rulesettest.Write(t, path, "# rules\n") }, "the file says nothing"},
		"no rules":          {func(t *testing.T, path string) { t.Helper(); rulesettest.Write(t, path, "rules:\n") }, "empty, nothing would be locked"},
		"too much": {func(t *testing.T, path string) {
			t.Helper()
			rulesettest.Write(t, path, keyed("a")+strings.Repeat("#\n", 3<<20))
		}, "larger than 4 MiB"},
		"another format": {func(t *testing.T, path string) { t.Helper(); rulesettest.Write(t, path, "<rules/>\n") }, `"<rules/>" is text`},
		"bytes":          {func(t *testing.T, path string) { t.Helper(); rulesettest.Write(t, path, "\x7fELF\x00") }, "U+007F is invisible"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := fileWith(t, keyed("a"))
			l, seen := openLive(t, path)
			inForce := l.Current()
			remove(t, path)
			tc.put(t, path)
			err := l.Reload()
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %.300v, want it to name the file and to say %q", err, tc.want)
			}
			if r := seen.next(t); !errors.Is(r.Err, err) || r.Set != inForce || l.Current() != inForce {
				t.Errorf("observed %+v", r)
			}
			remove(t, path)
			rulesettest.Write(t, path, keyed("a", 1))
			if err := l.Reload(); err != nil {
				t.Error(err)
			}
			if l.Current() == inForce {
				t.Error("the valid file did not come into force")
			}
		})
	}
}

func TestOpen_SourceNamesPath(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locks.yaml")
	if err := os.WriteFile(path, []byte(smallFile), 0o600); err != nil {
		t.Fatal(err)
	}
	live, err := ruleset.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	want := ruleset.Source{Layer: ruleset.LayerYAML, File: path, Line: 2, Column: 20}
	if got := live.Current().Rules()[0].Source("key"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestOpen_Unreadable(t *testing.T) {
	t.Parallel()
	_, err := ruleset.Open(filepath.Join(t.TempDir(), "none.yaml"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: got %v", err)
	}
	if _, err := ruleset.Open(t.TempDir()); err == nil {
		t.Error("a folder: got no error")
	}
}
