package readmetest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each path in the guide for contributors exists.
func TestContributing_PathsExist(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	guide, err := os.ReadFile(filepath.Join(root, ".github", "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	paths := 0
	for _, quoted := range regexp.MustCompile("`([a-z.][a-z0-9_.]*(?:/[a-z0-9_.]+)+)`").FindAllStringSubmatch(string(guide), -1) {
		path := quoted[1]
		if strings.HasPrefix(path, "testing/") {
			continue // in the standard library
		}
		paths++
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(path))); err != nil {
			t.Errorf("%s does not exist", path)
		}
	}
	if paths < 30 {
		t.Errorf("found %d paths, want the paths of the tables", paths)
	}
}
