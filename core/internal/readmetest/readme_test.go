package readmetest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const module = "github.com/interlock-go/interlock"

// root is the folder with README.md.
var root = filepath.Join("..", "..", "..")

// readme gives the lines of README.md.
func readme(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// block is one fenced Go block.
type block struct {
	line  int    // of its first line of code
	code  string // without the fences
	given string // the parameters of the comment before it: <!-- given: locks *core.Client -->
}

var given = regexp.MustCompile(`^<!-- given: (.*) -->$`)

// blocks gives the Go blocks of README.md.
func blocks(t *testing.T) []block {
	t.Helper()
	var found []block
	inside, params := false, ""
	for i, text := range readme(t) {
		switch {
		case inside && text == "```":
			inside = false
		case inside:
			found[len(found)-1].code += text + "\n"
		case text == "```go":
			inside = true
			found = append(found, block{line: i + 2, given: params})
			params = ""
		case given.MatchString(text):
			params = given.FindStringSubmatch(text)[1]
		}
	}
	if inside || params != "" || len(found) == 0 {
		t.Fatalf("README.md: %d Go blocks; one has no end: %t; given without a block: %q", len(found), inside, params)
	}
	return found
}

// rows gives the rows of the first table under a heading, as cells.
func rows(t *testing.T, heading string) [][]string {
	t.Helper()
	var table [][]string
	under := false
	for _, text := range readme(t) {
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
	t.Fatalf("README.md has no table under the heading %q", heading)
	return nil
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

// plain removes the marks of code.
func plain(cell string) string { return strings.ReplaceAll(cell, "`", "") }

// goTool runs the go command at the root and gives its output.
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
