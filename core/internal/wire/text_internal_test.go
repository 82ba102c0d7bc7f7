package wire

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every error with a constant text is registered as a text without a key, except for two errors that never
// leave their function.
func TestKnownText_EveryConstant(t *testing.T) {
	t.Parallel()
	inner := []string{errIncomplete.Error(), errLent.Error()}
	texts := constantTexts(t)
	if !slices.Contains(texts, errHookLeft.Error()) {
		t.Fatalf("found only %q", texts)
	}
	for _, text := range texts {
		known := slices.ContainsFunc(fixed(), func(err error) bool { return err.Error() == text })
		if !known && !slices.Contains(inner, text) {
			t.Errorf("%q is not registered as a text without a key", text)
		}
	}
}

// constantTexts returns the constant texts of the errors that this package creates.
func constantTexts(t *testing.T) (texts []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := goparser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text, ok := newError(n); ok {
				texts = append(texts, text)
			}
			return true
		})
	}
	return texts
}

// newError returns the text of an error if the node creates one.
func newError(n ast.Node) (text string, ok bool) {
	call, isCall := n.(*ast.CallExpr)
	if !isCall || len(call.Args) != 1 {
		return "", false
	}
	fun, isMember := call.Fun.(*ast.SelectorExpr)
	literal, isLiteral := call.Args[0].(*ast.BasicLit)
	if !isMember || !isLiteral || fun.Sel.Name != "New" {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}
