package strictyaml_test

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

// parsed is a document, nil if the text is none, and the problems that it is told of.
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

// onlyValue is the value of the first name of a document that is a mapping.
func onlyValue(t *testing.T, doc *strictyaml.Doc) strictyaml.Value {
	t.Helper()
	if doc == nil {
		t.Fatal("the text is no YAML")
	}
	for v := range strictyaml.Pairs(doc.Root, "") {
		return v
	}
	t.Fatal("the document has no name")
	return strictyaml.Value{}
}
