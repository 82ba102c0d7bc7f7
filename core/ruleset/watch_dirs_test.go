package ruleset_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

func TestWatchedDirs(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(parts ...string) string { return filepath.Join(append([]string{top}, parts...)...) }
	write(t, filepath.Join(mkdir(t, at("plain")), "locks.yaml"), "")
	write(t, filepath.Join(mkdir(t, at("other", "deep")), "real.yaml"), "")
	link(t, at("other", "deep", "real.yaml"), at("plain", "link.yaml"))
	link(t, "../plain/link.yaml", at("other", "chain.yaml"))
	link(t, "plain", at("current"))
	link(t, "loop", at("loop"))
	write(t, filepath.Join(mkdir(t, at("map", "..2024")), "locks.yaml"), "")
	link(t, "..2024", at("map", "..data"))
	link(t, "..data/locks.yaml", at("map", "locks.yaml"))

	sep := string(os.PathSeparator)
	for path, want := range map[string][]string{
		at("plain", "locks.yaml"):                           {at("plain")},
		at("plain", "link.yaml"):                            {at("plain"), at("other", "deep")},
		at("other", "chain.yaml"):                           {at("other"), at("plain"), at("other", "deep")},
		at("current", "locks.yaml"):                         {top, at("plain")},
		at("map", "locks.yaml"):                             {at("map"), at("map", "..2024")},
		at("plain", "absent.yaml"):                          {at("plain")},
		at("absent", "absent.yaml"):                         {top},
		at("loop"):                                          {top},
		at("plain", "locks.yaml", "below"):                  {at("plain")},
		at("current") + sep + ".." + sep + "." + sep + "no": {top},
		at("other", "deep") + sep + sep + ".." + sep + "no": {at("other")},
	} {
		if got := ruleset.WatchedDirs(path); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
