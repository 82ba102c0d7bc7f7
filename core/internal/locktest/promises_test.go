package locktest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// row is a promise of package core, and the tests that show it.
type row struct {
	folder, promise string
	tests           []string
}

// The tables in the comments of the folders name promises of core/doc.go and tests that exist in the folder or in core.
func TestPromises_NameTests(t *testing.T) {
	t.Parallel()
	doc := plain(read(t, "../../doc.go"))
	for _, r := range rows(t) {
		if !strings.Contains(doc, r.promise) {
			t.Errorf("%s/doc.go: core/doc.go does not say %q", r.folder, r.promise)
		}
		tests := read(t, filepath.Join(r.folder, "*_test.go")) + read(t, "../../*_test.go")
		for _, name := range r.tests {
			if !strings.Contains(tests, "\nfunc "+name+"(") {
				t.Errorf("%s/doc.go: the test %s does not exist in this folder or in core", r.folder, name)
			}
		}
	}
}

// Each sentence that core/doc.go promises has a row in a folder.
func TestPromises_HaveTests(t *testing.T) {
	t.Parallel()
	// No test of package core shows these.
	without := []string{"Safety when the clock of Redis steps", "A lock is not idempotency"}
	for _, section := range []string{"Kinds", "What is promised", "What is not promised, and what helps"} {
		_, after, found := strings.Cut(read(t, "../../doc.go"), "// # "+section+"\n")
		if !found {
			t.Fatalf("core/doc.go has no section %q", section)
		}
		body, _, _ := strings.Cut(after, "// # ")
		for _, sentence := range strings.Split(body, "//   - ")[1:] {
			sentence = plain(sentence)
			shown := slices.ContainsFunc(rows(t), func(r row) bool { return strings.Contains(sentence, r.promise) }) ||
				slices.ContainsFunc(without, func(s string) bool { return strings.HasPrefix(sentence, s) })
			if !shown {
				t.Errorf("no folder of locktest has a row for: %.80s", sentence)
			}
		}
	}
}

// rows returns the tables of all folders.
func rows(t *testing.T) (all []row) {
	t.Helper()
	files, err := filepath.Glob("*/doc.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		before := len(all)
		for line := range strings.Lines(read(t, file)) {
			promise, tests, ok := strings.Cut(strings.TrimPrefix(line, "//\t"), "|")
			if promise = strings.TrimSpace(promise); !ok || promise == "promise" {
				continue
			}
			all = append(all, row{filepath.Dir(file), promise, strings.Split(strings.TrimSpace(tests), ", ")})
		}
		if len(all) == before {
			t.Errorf("%s has no table", file)
		}
	}
	return all
}

// plain returns the text of a comment in one line.
func plain(comment string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(comment, "//", " ")), " ")
}

// read returns the text of files.
func read(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
