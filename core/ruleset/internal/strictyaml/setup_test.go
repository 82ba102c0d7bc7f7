package strictyaml_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

// parsed returns the document, or nil if the text is not YAML, and the problems that are reported.
func parsed(text string) (*strictyaml.Doc, *[]string) {
	problems := &[]string{}
	doc := strictyaml.Parse([]byte(text), func(p strictyaml.Problem) {
		place := ""
		if p.Line > 0 {
			place = fmt.Sprintf("%d:%d: ", p.Line, p.Column)
		}
		if p.Field != "" {
			place += p.Field + ": "
		}
		*problems = append(*problems, place+p.Message)
	})
	return doc, problems
}

// firstValue returns the value of the first key in the top-level mapping of doc.
func firstValue(t *testing.T, doc *strictyaml.Doc) strictyaml.Value {
	t.Helper()
	if doc == nil {
		t.Fatal("the text is not YAML")
	}
	for v := range strictyaml.Pairs(doc.Root, "") {
		return v
	}
	t.Fatal("the top-level mapping is empty")
	return strictyaml.Value{}
}

func long(part string, n int) string { return strings.Repeat(part, n) }
