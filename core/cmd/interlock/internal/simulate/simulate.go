// Package simulate tells which locks a request would take, without taking them.
package simulate

import (
	"errors"
	"fmt"
	"reflect"

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

func (e *NoMatchError) Error() string { return e.text }

func noMatchf(format string, args ...any) error {
	return &NoMatchError{text: fmt.Sprintf(format, args...)}
}

// unlocked says that an endpoint has no lock because a declaration says so.
func unlocked(e ruleset.Endpoint, at ruleset.Source) error {
	return &NoMatchError{OnPurpose: true, text: fmt.Sprintf("%s has no lock, on purpose (%s)", e, at)}
}

// Function tells what the rules do with a call of a function that has some. What is made
// of its argument has no key. The error is a [*NoMatchError] if no rule locks anything.
func (p *Program) Function(name string) ([]Answer, error) {
	e := ruleset.Func(name)
	rules, err := p.rulesOf(e)
	if err != nil {
		return nil, err
	}
	if err := p.elsewhere(e, "the program"); err != nil {
		return nil, err
	}
	schema, err := keyexpr.Argument(reflect.TypeFor[any]())
	if err != nil {
		return nil, err
	}
	return answers(aspect.Site{Endpoint: e, Schema: schema}, rules, argument{})
}

// rulesOf are the rules of the set for an endpoint. The error is a [*NoMatchError].
func (p *Program) rulesOf(e ruleset.Endpoint) ([]*ruleset.Resolved, error) {
	rules := p.Set.Lookup(e)
	switch {
	case len(rules) == 0:
		return nil, noMatchf("no rule is for %s", e)
	case rules[0].None:
		return nil, unlocked(e, rules[0].Source("none"))
	default:
		return rules, nil
	}
}

// argument is the [keyexpr.Env] of a function, of whose argument nothing is known.
type argument struct{}

func (argument) Value(int) (any, error) {
	return nil, &keyexpr.EvalError{
		Reason: keyexpr.ReasonInternal, Subject: keyexpr.ArgumentName,
		Detail: "is the argument of the function, which is a Go value and not known here",
	}
}

func (argument) Item(int, string, int) (string, int, error) { return "", 0, nil }

// elsewhere reports a rule whose key is not in the file.
func (p *Program) elsewhere(e ruleset.Endpoint, where string) error {
	for _, r := range p.Set.Lookup(e) {
		if r.Partial() {
			return noMatchf("rule %q of %s (%s) has no key here, so it has to be in %s", r.Name, e, r.Source("endpoint"), where)
		}
	}
	return nil
}

// answers evaluates the rules of a place for a request.
func answers(site aspect.Site, rules []*ruleset.Resolved, env keyexpr.Env) ([]Answer, error) {
	site.AnyFallback = true
	preview, err := aspect.NewPreview(site, rules...)
	if err != nil {
		return nil, err
	}
	list := make([]Answer, len(rules))
	for i, r := range rules {
		seen := &recorder{env: env, names: site.Schema.Variables()}
		a := Answer{Rule: r, Condition: r.When}
		if a.Applies, a.Err = preview.Applies(i, seen); a.Err == nil && a.Applies {
			a.Keys, a.Err = preview.Names(i, seen)
		}
		a.Values = seen.values
		list[i] = a
	}
	return list, nil
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
