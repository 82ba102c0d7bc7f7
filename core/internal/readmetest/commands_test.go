package readmetest_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// texts returns every Markdown file of the repository, and every package comment in comments, by
// their paths from the root.
func texts(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{start: read(t, start), "core/cmd/interlock/doc.go": read(t, "core/cmd/interlock/doc.go")}
	for _, c := range comments {
		found[c.folder+"/doc.go"] = read(t, c.folder+"/doc.go")
	}
	for _, pattern := range []string{"*.md", "*/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, "examples", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files, %v", len(files), err)
		}
		for _, file := range files {
			path, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			found[filepath.ToSlash(path)] = read(t, filepath.ToSlash(path))
		}
	}
	return found
}

var (
	// ours matches a call of the command in a line of a block, in inline code, or in quotes.
	ours      = regexp.MustCompile("(?m)(?:^(?://\t)?(?:[^\n`]*\\| )?|`|\")(?:go tool )?interlock ([a-z]+)((?: +(?:'[^']*'|\"[^\"]*\"|[^\\s`'\"#|>]+))*)")
	flagOf    = regexp.MustCompile(`(?:^|\s)(--?[A-Za-z][\w-]*)`)
	helpFlag  = regexp.MustCompile(`(?m)^ {2,}(?:(-\w), )?(--[\w-]+|-\w)`)
	command   = regexp.MustCompile(`(?m)^  ([a-z]+)  `)
	aloneFlag = regexp.MustCompile("`(--[a-z][a-z-]*)(?: [^`]*)?`")
)

// notOurs matches flags of other programs that are mentioned alone.
var notOurs = []string{"--include_imports", "--enable-feature", "--scan"}

// TestReadme_Commands checks that the documented commands and flags of the command interlock exist.
func TestReadme_Commands(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "interlock")
	goTool(t, "", "build", "-o", program, "./core/cmd/interlock")
	help := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), program, append([]string{"help"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	flags, anywhere := map[string][]string{"help": {}}, []string{"--help"}
	for _, m := range command.FindAllStringSubmatch(help(), -1) {
		flags[m[1]] = []string{"--help"}
		for _, f := range helpFlag.FindAllStringSubmatch(help(m[1]), -1) {
			flags[m[1]] = append(flags[m[1]], f[1], f[2])
		}
		flags[m[1]] = slices.DeleteFunc(flags[m[1]], func(f string) bool { return f == "" })
		anywhere = append(anywhere, flags[m[1]]...)
	}
	seen := 0
	for path, text := range texts(t) {
		for _, m := range ours.FindAllStringSubmatch(strings.ReplaceAll(text, "\\\n", " "), -1) {
			known, is := flags[m[1]]
			if !is {
				t.Errorf("%s: the command %s does not exist", path, strings.TrimSpace(m[0]))
			}
			seen++
			for _, f := range flagOf.FindAllStringSubmatch(quoted.ReplaceAllString(m[2], ""), -1) {
				if is && !slices.Contains(known, f[1]) {
					t.Errorf("%s: %s has no flag %s, in %q", path, m[1], f[1], known)
				}
			}
		}
		for _, m := range aloneFlag.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(anywhere, m[1]) && !slices.ContainsFunc(notOurs, func(f string) bool { return strings.HasPrefix(f, m[1]) }) {
				t.Errorf("%s: no command has a flag %s", path, m[1])
			}
		}
	}
	if seen < 30 {
		t.Errorf("found only %d commands", seen)
	}
}

var quoted = regexp.MustCompile(`'[^']*'|"[^"]*"`)

var goCommand = regexp.MustCompile("(?m)\\bgo ((?:-C \\S+ )?(?:run|test)(?: +[^\\s`#|]+)+)")

// TestReadme_GoCommands checks that the folders in documented go commands exist, and that the programs in
// them have the documented flags.
func TestReadme_GoCommands(t *testing.T) {
	t.Parallel()
	seen := 0
	for path, text := range texts(t) {
		for _, m := range goCommand.FindAllStringSubmatch(text, -1) {
			words := strings.Fields(m[1])
			folder := root
			if i := slices.Index(words, "-C"); i >= 0 && i+1 < len(words) {
				folder, words = filepath.Join(root, words[i+1]), slices.Delete(words, i, i+2)
			}
			i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, ".") })
			if i < 0 || strings.HasSuffix(words[i], "...") || words[i] == "." && path == start { // "." is the reader's own program
				continue
			}
			if words[i] == "." && folder == root {
				folder = filepath.Join(root, filepath.Dir(path))
			}
			seen++
			folder = filepath.Join(folder, strings.TrimRight(words[i], ".,;:)"))
			sources := goSources(t, folder)
			if sources == "" {
				t.Errorf("%s: no folder for go %s", path, m[1])
			}
			for _, w := range words[i+1:] {
				name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
				if words[0] == "run" && strings.HasPrefix(w, "-") && !strings.Contains(sources, `"`+name+`"`) {
					t.Errorf("%s: go %s: the program has no flag %s", path, m[1], w)
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("found only %d commands", seen)
	}
}

// goSources returns the concatenated Go files of a folder.
func goSources(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(text)
	}
	return sources.String()
}

var variable = regexp.MustCompile(`\bINTERLOCK_[A-Z_]+\b`)

// TestReadme_EnvironmentVariables checks that the code reads the documented environment variables.
func TestReadme_EnvironmentVariables(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "doc.go") {
			return err
		}
		text, err := os.ReadFile(path)
		code.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range texts(t) {
		for _, name := range variable.FindAllString(text, -1) {
			if !strings.Contains(code.String(), `"`+name) {
				t.Errorf("%s: no code reads %s", path, name)
			}
		}
	}
}

var blockOfCode = regexp.MustCompile(`(?m)^//\t`)

// TestReadme_CommentsListed requires that every package comment with a block of code is in comments, so
// that its blocks are compiled. Comments of programs and of internal packages are exempt.
func TestReadme_CommentsListed(t *testing.T) {
	t.Parallel()
	known := []string{"core/cmd/interlock"} // its blocks are commands, which have separate tests
	for _, c := range comments {
		known = append(known, c.folder)
	}
	found := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "doc.go" || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		folder := filepath.ToSlash(rel)
		if err != nil || strings.Contains(folder, "internal") || strings.HasPrefix(folder, "examples") {
			return err
		}
		found++
		if blockOfCode.MatchString(read(t, folder+"/doc.go")) && !slices.Contains(known, folder) {
			t.Errorf("%s/doc.go has blocks that no test compiles: add it to comments", folder)
		}
		return nil
	})
	if err != nil || found < 10 {
		t.Fatalf("%d package comments, %v", found, err)
	}
}
