// Package rulesettest replaces rule files in tests, in the ways in which they are
// replaced in operation, and makes messages comparable.
package rulesettest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
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

// WithoutLists has a word in place of each list in a message that grows with a new field, kind or
// strategy.
func WithoutLists(text string) string {
	text = strings.ReplaceAll(text, "http, grpc, func, services, "+strings.Join(ruleset.Fields()[1:], ", "), "<fields>")
	text = withoutList(text, "<kinds>", "ruleset.", "KIND_", ruleset.Kinds())
	return withoutList(text, "<strategies>", "failpolicy.", "STRATEGY_", failpolicy.Strategies())
}

// withoutList replaces a list as files, Go and .proto files have it.
func withoutList[T ~string](text, name, inGo, inProto string, list []T) string {
	spelled := make([][]string, 3)
	for _, word := range list {
		var camel strings.Builder
		for part := range strings.SplitSeq(string(word), "_") {
			camel.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
		for i, as := range []string{string(word), inGo + camel.String(), inProto + strings.ToUpper(string(word))} {
			spelled[i] = append(spelled[i], as)
		}
	}
	for _, words := range spelled {
		text = strings.ReplaceAll(text, strings.Join(words, ", "), name)
	}
	return text
}
