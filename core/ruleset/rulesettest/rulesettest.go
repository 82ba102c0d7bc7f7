// Package rulesettest helps tests of rule files. It replaces a file as editors and Kubernetes do. It
// also replaces the lists of fields, kinds and strategies in messages, so that a new one does not change the
// expected text. It does not depend on when a rule file is reloaded.
//
// The tests of ruleset, of the adapters and of the command call it.
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

// Replace replaces a file by renaming a complete one.
func Replace(tb testing.TB, path, text string) {
	tb.Helper()
	Write(tb, path+".new", text)
	rename(tb, path+".new", path)
}

// Mount writes a file as Kubernetes does with a ConfigMap: path is a symbolic link into ..data, which
// is a symbolic link to a new folder each time.
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

// Link creates a symbolic link, or replaces one by renaming.
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

// WithoutLists replaces each list of fields, kinds and strategies in a message by a word.
func WithoutLists(text string) string {
	text = strings.ReplaceAll(text, "http, grpc, func, services, "+strings.Join(ruleset.Fields()[1:], ", "), "<fields>")
	text = withoutList(text, "<kinds>", "ruleset.", "KIND_", ruleset.Kinds())
	return withoutList(text, "<strategies>", "failpolicy.", "STRATEGY_", failpolicy.Strategies())
}

// withoutList replaces a list in each of its three spellings: in rule files, in Go and in .proto files.
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
