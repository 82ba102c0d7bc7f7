// Package rulesettest replaces rule files in tests, in the ways in which they are
// replaced in operation.
package rulesettest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Write writes a file in place, as some editors do.
func Write(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// Replace puts a text in the place of a file by renaming a complete one.
func Replace(tb testing.TB, path, text string) {
	tb.Helper()
	Write(tb, path+".new", text)
	rename(tb, path+".new", path)
}

// Mount puts a text behind the symbolic links of a folder, as Kubernetes does with a
// ConfigMap: the file leads to ..data, which leads to a folder that is new each time.
func Mount(tb testing.TB, path, text string) {
	tb.Helper()
	dir, name := filepath.Split(path)
	version := tb.TempDir()
	Write(tb, filepath.Join(version, name), text)
	Link(tb, version, filepath.Join(dir, "..data"))
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		Link(tb, filepath.Join("..data", name), path)
	}
}

// Link makes a symbolic link, or replaces one by renaming.
func Link(tb testing.TB, target, path string) {
	tb.Helper()
	if err := os.Symlink(target, path+".new"); err != nil {
		tb.Fatal(err)
	}
	rename(tb, path+".new", path)
}

func rename(tb testing.TB, from, to string) {
	tb.Helper()
	if err := os.Rename(from, to); err != nil {
		tb.Fatal(err)
	}
}
