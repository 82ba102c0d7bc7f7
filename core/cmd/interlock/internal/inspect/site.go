package inspect

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/shape"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// site is an endpoint with its rules, and the variables that they have there.
type site struct {
	endpoint ruleset.Endpoint
	rules    []*ruleset.Resolved
	example  string // of an expression
	schema   schemaFunc

	open      bool     // what the program registers is not known: any name may be that
	fallbacks []string // that the program has

	types []*shape.Type // whose names in messages are made readable
}

// schemaFunc is the schema of a place where the program registers more names.
type schemaFunc func(more []string) (*keyexpr.Schema, error)

// compile compiles the rules; nil if that fails. What fails is reported.
func (s *site) compile(found *findings) *aspect.Preview {
	var assumed []assumption
	if s.open {
		assumed = s.assume()
	}
	schema, err := s.schema(namesOf(assumed))
	if err != nil {
		found.addOnce(report.Error, s.rules[0].Problem("", err.Error()))
		return nil
	}
	preview, err := aspect.NewPreview(aspect.Site{Endpoint: s.endpoint, Schema: schema, Fallbacks: s.fallbacks}, s.rules...)
	if err != nil {
		s.report(err, found)
		return nil
	}
	for _, a := range assumed {
		found.addOnce(report.Note, a.rule.Problem(a.field, s.notJudged(a.name)))
	}
	return preview
}

func (s *site) report(err error, found *findings) {
	invalid, ok := errors.AsType[*ruleset.InvalidError](err)
	if !ok {
		found.addOnce(report.Error, s.rules[0].Problem("", err.Error()))
		return
	}
	for _, p := range invalid.Problems {
		readable := *p
		for _, t := range s.types {
			readable.Message = t.Readable(readable.Message)
		}
		readable.Message += s.registering(readable.Message)
		found.addAt(s.endpoint, report.Error, &readable)
	}
}

var unknownName = regexp.MustCompile(`: unknown name (\w+)`)

// registering says how a name becomes one of a program whose routes are known: there
// all its variables are.
func (s *site) registering(message string) string {
	found := unknownName.FindStringSubmatch(message)
	if s.endpoint.Transport != ruleset.TransportHTTP || s.open || found == nil {
		return ""
	}
	return fmt.Sprintf("\n  if it is a variable of the program: register it, WithVariable(%q, …) of ginlock, and write the routes file again (WriteRoutes)", found[1])
}

// fallbacksOf are the fallbacks that rules name, where those of the program are not
// known.
func fallbacksOf(rules []*ruleset.Resolved) []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.Fallback)
	}
	return names
}

// notJudged says of a name that only the program knows.
func (s *site) notJudged(name string) string {
	text := "not judged: the variable " + name + ", which the program has to register"
	if s.endpoint.Transport == ruleset.TransportHTTP {
		text += " (--routes tells whether it does)"
	}
	return text
}

// keyField is the field in which a rule has its first template.
func keyField(r *ruleset.Resolved) string {
	if r.Key == "" {
		return "keys"
	}
	return "key"
}

func quoted(s string) string { return strconv.Quote(s) }
