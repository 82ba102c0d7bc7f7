package aspect

import (
	"github.com/interlock-go/interlock/core/ruleset"
)

// Report is what was found wrong with the rules of a program: errors and warnings,
// each once. The zero value is empty.
type Report struct {
	errors, warnings collector
}

// Add adds what is wrong with an endpoint, every problem that is joined in err; nil
// adds nothing.
func (r *Report) Add(e ruleset.Endpoint, err error) { r.errors.addError(e, err) }

// Warn adds a warning about an endpoint.
func (r *Report) Warn(e ruleset.Endpoint, p *ruleset.Problem) { r.warnings.add(e, p) }

// addAs adds problems as severe as a setting says.
func (r *Report) addAs(s ruleset.Severity, problems ...*ruleset.Problem) {
	for _, p := range problems {
		switch s {
		case ruleset.SeverityIgnore:
		case ruleset.SeverityWarn:
			r.warnings.add(p.Endpoint, p)
		default:
			r.errors.add(p.Endpoint, p)
		}
	}
}

// err is a [*ruleset.InvalidError] of the errors, nil without any.
func (r *Report) err() error { return ruleset.Invalid(r.errors.problems()...) }

// Errors are the errors: those of files by file and line, after the others. A problem
// of a rule with a wildcard names an endpoint that has it.
func (r *Report) Errors() []*ruleset.Problem { return r.errors.problems() }

// Warnings are the warnings, likewise.
func (r *Report) Warnings() []*ruleset.Problem { return r.warnings.problems() }
