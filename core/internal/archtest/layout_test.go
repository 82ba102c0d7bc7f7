package archtest_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// topLevel lists the allowed names at the root. Names that begin with a dot are always allowed.
var topLevel = []string{
	"go.mod", "go.sum", "README.md",
	"core", "ginlock", "grpclock", "keyexpr", "failpolicy", "telemetry", "examples",
}

func TestLayout_TopLevel(t *testing.T) {
	t.Parallel()
	for _, path := range tracked(t) {
		name, _, _ := strings.Cut(path, "/")
		if !strings.HasPrefix(name, ".") && !slices.Contains(topLevel, name) {
			t.Errorf("%s: the top level may contain only %q", path, topLevel)
		}
	}
}

// tracked returns the files in git as slash-separated paths from the root. Without git, as in a downloaded
// module, it returns the files on disk.
func tracked(t *testing.T) []string {
	t.Helper()
	dir := root(t)
	if _, err := os.Stat(filepath.Join(dir, ".git")); err != nil {
		return onDisk(t, dir)
	}
	cmd := exec.CommandContext(t.Context(), "git", "-c", "safe.directory="+dir, "ls-files", "-z")
	cmd.Dir = dir
	return strings.Split(strings.TrimSuffix(string(run(t, cmd)), "\x00"), "\x00")
}

func onDisk(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		files = append(files, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestLayout_PackageNames(t *testing.T) {
	t.Parallel()
	meaningless := []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "base"}
	seen := map[string]bool{}
	for _, path := range tracked(t) {
		dir := filepath.ToSlash(filepath.Dir(path))
		if !strings.HasSuffix(path, ".go") || seen[dir] {
			continue
		}
		seen[dir] = true
		for _, name := range append(strings.Split(dir, "/"), packageName(t, path)) {
			if slices.Contains(meaningless, strings.TrimSuffix(name, "_test")) {
				t.Errorf("%s: name the package after its purpose, not %q", path, name)
			}
		}
	}
}

func packageName(t *testing.T, path string) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root(t), path))
	if os.IsNotExist(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(source))
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "package "); ok {
			return name
		}
	}
	return ""
}
