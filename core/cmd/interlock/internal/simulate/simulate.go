// Package simulate tells which locks a request would take, without taking them.
package simulate

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/image"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/routes"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// Program is what is known of the program that would serve the request.
type Program struct {
	Set    *ruleset.Set
	Routes *routes.Table // nil: not known
	Image  *image.Image  // nil: not known

	// Variables are the values of registered variables, and of client_ip and peer.
	Variables map[string]string
}

// Answer is what one rule does with the request.
type Answer struct {
	Rule   *ruleset.Resolved
	Values []Value // what its key and condition read

	Condition string   // of the rule, "" if it has none
	Applies   bool     // the condition is met, or there is none
	Keys      []string // with the rule's prefix, without the client's
	Err       error    // why there is no key
}

// NoMatchError says that no rule locks anything for a request.
type NoMatchError struct {
	OnPurpose bool // one says so

	text string
}

// Error implements error.
func (e *NoMatchError) Error() string { return e.text }

func noMatchf(format string, args ...any) error {
	return &NoMatchError{text: fmt.Sprintf(format, args...)}
}

// unlocked says that an endpoint has no lock because a declaration says so.
func unlocked(e ruleset.Endpoint, at ruleset.Source) error {
	return &NoMatchError{OnPurpose: true, text: fmt.Sprintf("%s has no lock, on purpose (%s)", e, at)}
}

// Function says why there is no key of a function that has rules: it is made of a Go
// argument.
func (p *Program) Function(name string) error {
	e := ruleset.Func(name)
	rule := p.Set.Lookup(e)[0]
	if rule.None {
		return unlocked(e, rule.Source("none"))
	}
	return fmt.Errorf("%s is a function (%s): its keys are made of a Go argument, and cannot be shown", name, rule.Source("endpoint"))
}

// answers evaluates the rules of a place for a request.
func answers(site aspect.Site, rules []*ruleset.Resolved, env keyexpr.Env) ([]Answer, error) {
	preview, err := aspect.NewPreview(site, rules...)
	if err != nil {
		return nil, err
	}
	list := make([]Answer, len(rules))
	for i, r := range rules {
		seen := newRecorder(site.Schema, env)
		a := Answer{Rule: r, Condition: r.When}
		if a.Applies, a.Err = preview.Applies(i, seen); a.Err == nil && a.Applies {
			a.Keys, a.Err = preview.Names(i, seen)
		}
		a.Values = seen.values
		list[i] = a
	}
	return list, nil
}

// fallbacks are those that the rules name: whether they exist is no matter here.
func fallbacks(rules []*ruleset.Resolved) []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.Fallback)
	}
	return names
}

// Reason is why a rule yields no key, for people.
func (a *Answer) Reason() string {
	failure, ok := errors.AsType[*keyexpr.EvalError](a.Err)
	if !ok {
		return a.Err.Error()
	}
	text := failure.Detail
	if failure.Subject != "" {
		text = failure.Subject + " " + text
	}
	if failure.Err != nil {
		text += ": " + failure.Err.Error()
	}
	serverOnly := failure.Subject == "client_ip" || failure.Subject == "peer"
	if failure.Reason == keyexpr.ReasonUnset || serverOnly {
		text += fmt.Sprintf(" (give it with --var %s=…)", failure.Subject)
	}
	return text
}
