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
	Err      error    // an error with more details than Message, such as a *keyexpr.Error; may be nil
}

// ErrNoService is the Err of the problem that a file has rules for certain programs only, but
// this program did not pass its name with [WithService].
var ErrNoService = errors.New("ruleset: the name of the program is missing")

// Error returns the place and the message of the problem. For a template, further lines show the
// template with a caret.
func (p *Problem) Error() string {
	if at := p.Position(); at != "" {
		return at + ": " + p.Text()
	}
	return p.Text()
}

// Unwrap returns Err.
func (p *Problem) Unwrap() error { return p.Err }

// Position returns the place in the file, such as "locks.yaml:14:3", or "" without a file.
func (p *Problem) Position() string { return p.Source.position() }

// Text is like [Problem.Error], but without the place.
func (p *Problem) Text() string {
	text := p.Message
	for _, part := range []string{p.fieldName(), p.subject()} {
		if part != "" {
			text = part + ": " + text
		}
	}
	return text
}

// fieldName spells the field as the place of its declaration does.
func (p *Problem) fieldName() string {
	switch {
	case p.Source.Layer == LayerYAML && p.Field == "endpoint":
		return string(p.Endpoint.Transport) // a file names the endpoint http, grpc or func
	case p.Source.inFile():
		return p.Field
	default:
		return goName(p.Field)
	}
}

// subject returns a name for the rule or profile that has the problem.
func (p *Problem) subject() string {
	name, e := p.Rule, p.Endpoint
	switch {
	case e.IsZero() && name == "" && p.Source.Layer == LayerProfile:
		return "profile " + p.Source.Profile
	case e.IsZero() && name == "" && p.Source.Layer == LayerYAML:
		return "" // the position is enough
	case e.IsZero() && name == "" && p.Source.Layer == LayerDefault:
		return "defaults"
	case e.IsZero() && name == "" && p.Field == "" && p.Source.Layer == layerNone:
		return "" // the problem does not concern a rule
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

// InvalidError contains every problem that was found, in the order of the rules. The problems of
// a file are in the order of its lines.
type InvalidError struct {
	Problems []*Problem
}

// Error returns the problems. Each begins on a new line.
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

// Unwrap returns the problems.
func (e *InvalidError) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}

// Invalid returns an [*InvalidError] with the problems, or nil if there are none.
func Invalid(problems ...*Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &InvalidError{Problems: problems}
}
