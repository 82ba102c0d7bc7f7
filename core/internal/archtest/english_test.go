package archtest_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stumble is a pattern of text over which readers stumble, with advice about what to write instead.
type stumble struct {
	pattern *regexp.Regexp
	instead string
}

var stumbles = []stumble{
	{regexp.MustCompile(`\b[Ii]s no (?:[a-km-z]|l[a-np-z])|\b[Tt]here is no such`), "is not a …; no such … exists"},
	{regexp.MustCompile(`(^|[.:;] |// |# |-- )Who |\b[Oo]ne who\b|\b[Oo]ne that\b|\b[Tt]hose who\b`), "name the actor: a caller that …, a waiter that …"},
	{regexp.MustCompile(`\b[Tt]hat of\b|\b[Tt]hose of\b`), "repeat the noun"},
	{regexp.MustCompile(`\b[Nn]obody\b|\b[Ss]omebody\b|\b[Aa]nybody\b`), "name the actor: no client, another holder"},
	{regexp.MustCompile(`\btold\b|\btells\b`), "reports, logs, notifies, returns, shows"},
	{regexp.MustCompile(`\b[Mm]eanwhile\b|\b[Bb]y now\b|\bin vain\b|\bdear\b|\bbe it\b|\bof (its|their) own\b|\ball the same\b`), "drop it, or say when, or write: separate"},
	{regexp.MustCompile(`\bin the way\b|\bin (its|their) way\b`), "holds the lock; blocks"},
	{regexp.MustCompile(`\bas long as [a-z ]*lasts\b|\b(is|are|was) over\b`), "until …; has ended; has expired; was released"},
	{regexp.MustCompile(`(^|[.:;] |// |^# |-- )What (it|is|was|has)\b`), "the … that"},
	{regexp.MustCompile(`\b[Ee]lse (it|they)\b`), "otherwise"},
}

// TestEnglish_Sentences reports each line of a comment, a string literal or a document that matches a pattern
// in stumbles.
func TestEnglish_Sentences(t *testing.T) {
	t.Parallel()
	for _, name := range tracked(t) {
		if !readsEnglish(name) {
			continue
		}
		source, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range sentences(name, source) {
			for _, s := range stumbles {
				if found := s.pattern.FindString(text.words); found != "" {
					t.Errorf("%s:%d: %q in %q: write: %s", name, text.line, found, text.words, s.instead)
				}
			}
		}
	}
}

// readsEnglish reports whether the file contains English that people wrote. This file is exempt, because it
// quotes the patterns.
func readsEnglish(name string) bool {
	switch path.Base(name) {
	case "english_test.go", "go.sum", "package-lock.json":
		return false
	}
	if strings.HasSuffix(name, ".pb.go") {
		return false
	}
	return slices.Contains([]string{".go", ".md", ".yaml", ".yml", ".proto", ".lua", ".tla", ".html", ".js", ".java", ".golden", ".txt", ""}, path.Ext(name)) ||
		strings.HasPrefix(path.Base(name), ".")
}

// sentence is a line of text with its line number.
type sentence struct {
	words string
	line  int
}

// sentences returns the lines of English in a file. For Go these are the lines of comments and string
// literals, for Lua the comments, and for other files all lines.
func sentences(name string, source []byte) []sentence {
	var list []sentence
	if path.Ext(name) != ".go" {
		for i, line := range strings.Split(string(source), "\n") {
			if path.Ext(name) == ".lua" {
				_, comment, _ := strings.Cut(line, "--")
				line = "--" + comment
			}
			list = append(list, sentence{line, i + 1})
		}
		return list
	}
	file := token.NewFileSet().AddFile(name, -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	for {
		pos, tok, literal := s.Scan()
		switch tok {
		case token.EOF:
			return list
		case token.COMMENT, token.STRING:
			if tok == token.STRING && !strings.Contains(literal, " ") {
				continue // a name, such as a field in Redis
			}
			for i, line := range bytes.Split([]byte(literal), []byte("\n")) {
				list = append(list, sentence{string(line), file.Line(pos) + i})
			}
		}
	}
}

// nounComment matches the comment of a function that says what the function is, instead of what it does or
// returns. roleComment matches the comments of that form that read well, such as "… is the main function of …".
var (
	nounComment = regexp.MustCompile(`^\S+ (is|are|has) `)
	roleComment = regexp.MustCompile(`^\S+ is (like|called|closed|never|correct) |^\S+ is (a|the) (main )?(body|default|dialer|function|handler|loop|middleware)\b`)
)

// A comment of a function says what the function does or returns.
func TestEnglish_FunctionComments(t *testing.T) {
	t.Parallel()
	for _, name := range tracked(t) {
		if path.Ext(name) != ".go" || !readsEnglish(name) {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(root(t), name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Doc.Text(), f.Name.Name+" ") {
				continue
			}
			if words := strings.Join(strings.Fields(f.Doc.Text()), " "); nounComment.MatchString(words) && !roleComment.MatchString(words) {
				t.Errorf("%s:%d: %q: write what the function does or returns", name, fset.Position(f.Pos()).Line, words)
			}
		}
	}
}

// Every pattern matches its example.
func TestEnglish_Patterns(t *testing.T) {
	t.Parallel()
	examples := []string{
		"it is no error", "// Who waits", "the value is that of the rule", "nobody holds it", "the observers are told",
		"meanwhile it waits", "the lease in the way", "the wait is over", "// What it costs", "or else it waits",
	}
	for i, s := range stumbles {
		if !s.pattern.MatchString(examples[i]) {
			t.Errorf("%s does not match %q", s.pattern, examples[i])
		}
	}
}
