package readmetest_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

func TestReadme_GoBlocksCompile(t *testing.T) {
	t.Parallel()
	pkgs := load(t)
	for _, b := range all(t, "go") {
		t.Run(fmt.Sprintf("%s line %d", b.file, b.line), func(t *testing.T) {
			t.Parallel()
			pkgs.check(t, b)
		})
	}
}

// check type-checks a block. In a fragment a value may go unused; a file must compile as it stands.
func (p *packages) check(t *testing.T, b block) {
	t.Helper()
	source, isFile := b.source()
	file, err := parser.ParseFile(p.fset, fmt.Sprintf("block%d.go", b.line), source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%v\n%s", err, b.code)
	}
	config := types.Config{Importer: p, Error: func(err error) {
		if e, ok := errors.AsType[types.Error](err); ok && e.Soft && !isFile {
			return
		}
		t.Error(err)
	}}
	_, _ = config.Check("readme", p.fset, []*ast.File{file}, nil)
}

// source returns the source of a file with the block. The block may be a whole file, declarations (with one
// given variable), or the body of a function (with given parameters).
func (b block) source() (code string, isFile bool) {
	line := fmt.Sprintf("//line %s:%d\n", b.file, b.line)
	if strings.HasPrefix(b.code, "package ") {
		return line + b.code, true
	}
	head := "package readme\n" + b.imports()
	if parses(head + b.code) {
		if b.given != "" {
			head += "var " + b.given + "\n"
		}
		return head + line + b.code, false
	}
	if strings.Contains(b.code, "err = ") && !strings.Contains(b.code, "err :=") {
		head += "var err error\n"
	}
	return fmt.Sprintf("%sfunc _(%s) error {\n%s%s\nreturn nil\n}\n", head, b.given, line, b.code), false
}

func parses(source string) bool {
	_, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	return err == nil
}

// imports returns the imports of the known packages that the block mentions.
func (b block) imports() string {
	var lines []string
	for name, path := range known {
		if mentions(b.code+b.given, name) {
			lines = append(lines, fmt.Sprintf("import %s %q\n", name, path))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func mentions(code, name string) bool {
	for rest := code; ; {
		i := strings.Index(rest, name+".")
		if i < 0 {
			return false
		}
		if i == 0 || !strings.ContainsRune(wordCharacters, rune(rest[i-1])) {
			return true
		}
		rest = rest[i+1:]
	}
}

const wordCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.\"/"

func TestReadme_GoBlocksAreFormatted(t *testing.T) {
	t.Parallel()
	for _, b := range all(t, "go") {
		formatted, err := format.Source([]byte(b.code))
		if err != nil {
			t.Errorf("%s:%d: %v", b.file, b.line, err)
			continue
		}
		if string(formatted) != b.code {
			t.Errorf("%s:%d: gofmt formats it as:\n%s", b.file, b.line, formatted)
		}
	}
}
