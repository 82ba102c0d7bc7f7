package readmetest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/interlock-go/interlock"

// root is the folder with README.md.
var root = filepath.Join("..", "..", "..")

// The pages, by their paths from the root.
const (
	start     = "README.md"
	examples  = "examples/README.md"
	choosing  = "examples/choosing/README.md"
	operating = "examples/operating/README.md"
	migrating = "examples/migrating/README.md"
	adapters  = "examples/adapters/README.md"
)

// pages lists the texts whose blocks, names and templates are compared with the code.
var pages = []string{start, examples, choosing, operating, migrating, adapters}

// read returns the text of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rows returns the cells of the first table under a heading of a page, row by row.
func rows(t *testing.T, page, heading string) [][]string {
	t.Helper()
	var table [][]string
	under := false
	for text := range strings.Lines(read(t, page)) {
		text = strings.TrimSpace(text)
		switch {
		case strings.HasPrefix(text, "#"):
			if under && len(table) > 0 {
				return table[2:]
			}
			under = strings.TrimLeft(text, "# ") == heading
		case under && strings.HasPrefix(text, "|"):
			table = append(table, cells(text))
		case under && len(table) > 0:
			return table[2:] // without the head and the line under it
		}
	}
	if len(table) < 3 {
		t.Fatalf("%s has no table under the heading %q", page, heading)
	}
	return table[2:]
}

// cells splits a row; a bar inside a cell is written \|.
func cells(row string) []string {
	row = strings.ReplaceAll(strings.Trim(row, "|"), `\|`, "\x00")
	parts := strings.Split(row, "|")
	for i, p := range parts {
		parts[i] = strings.TrimSpace(strings.ReplaceAll(p, "\x00", "|"))
	}
	return parts
}

// plain removes the backquotes of code.
func plain(cell string) string { return strings.ReplaceAll(cell, "`", "") }

// goTool runs the go command at the root and returns its output.
func goTool(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	cmd.Stdin = strings.NewReader(stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}
