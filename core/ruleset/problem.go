package ruleset

import (
	"errors"
	"fmt"
	"strings"
)

// Problem is one thing wrong with one rule.
type Problem struct {
	Rule     string   // the rule's name, empty if it has none
	Endpoint Endpoint // zero if it has none
	Field    string   // such as "wait_time"; empty for the rule as a whole
	Source   Source   // where the offending value was declared
	Message  string   // what is wrong and what to write instead
	Err      error    // what found it, such as a *keyexpr.Error; nil if nothing tells more than Message
}

// ErrNoService is the Err of the problem that a file has rules for some programs only,
// and it was not said which one this is; see [WithService].
var ErrNoService = errors.New("ruleset: the name of the program is missing")

// Error is the problem, its place first. The message of a template has more lines:
// the template itself with a caret.
func (p *Problem) Error() string {
	if at := p.Position(); at != "" {
		return at + ": " + p.Text()
	}
	return p.Text()
}

// Unwrap is Err, for [errors.As].
func (p *Problem) Unwrap() error { return p.Err }

// Position is the place in the file, such as "locks.yaml:14:3"; "" without one.
func (p *Problem) Position() string { return p.Source.position() }

// Text is [Problem.Error] without the place.
func (p *Problem) Text() string {
	text := p.Message
	for _, part := range []string{p.fieldName(), p.subject()} {
		if part != "" {
			text = part + ": " + text
		}
	}
	return text
}

// fieldName spells the field as it is written where it was declared.
func (p *Problem) fieldName() string {
	switch {
	case p.Source.Layer == LayerYAML && p.Field == "endpoint":
		return string(p.Endpoint.Transport) // http, grpc and func are its names there
	case p.Source.inFile():
		return p.Field
	default:
		return goName(p.Field)
	}
}

func (p *Problem) subject() string {
	name, e := p.Rule, p.Endpoint
	switch {
	case e.IsZero() && name == "" && p.Source.Layer == LayerProfile:
		return "profile " + p.Source.Profile
	case e.IsZero() && name == "" && p.Source.Layer == LayerYAML:
		return "" // the position says it
	case e.IsZero() && name == "" && p.Source.Layer == LayerDefault:
		return "defaults"
	case e.IsZero() && name == "" && p.Field == "" && p.Source.Layer == layerNone:
		return "" // it is not about a rule
	case e.IsZero() && name == "":
		return "rule without endpoint and name"
	case name == "" || name == e.Label():
		return "rule of " + e.String()
	case e.IsZero():
		return fmt.Sprintf("rule %q", name)
	default:
		return fmt.Sprintf("rule %q of %s", name, e)
	}
}

// InvalidError is every problem that was found, in the order of the rules; those of a
// file in the order of its lines.
type InvalidError struct {
	Problems []*Problem
}

// Error lists the problems, one after the other.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = strings.ReplaceAll(p.Error(), "\n", "\n\t")
	}
	if len(lines) == 1 {
		return "ruleset: " + lines[0]
	}
	return fmt.Sprintf("ruleset: %d problems\n\t%s", len(lines), strings.Join(lines, "\n\t"))
}

// Unwrap gives the problems, for [errors.As].
func (e *InvalidError) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}

// Invalid makes one [*InvalidError] of the problems, nil if there is none.
func Invalid(problems ...*Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &InvalidError{Problems: problems}
}
