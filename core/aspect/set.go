package aspect

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// WithSet lays the func: rules of a set over the rules given to [Wrap]; see there.
// Its rules for other transports are left alone. A reload of a [ruleset.Live] set
// changes the functions that were wrapped. Not together with [WithDefaults] and
// [WithProfile], which belong into the making of the set.
func WithSet(p ruleset.Provider) Option {
	return func(c *config) error {
		if err := ruleset.CheckProvider(p); err != nil {
			return fmt.Errorf("aspect: WithSet: %w", err)
		}
		if c.set != nil {
			return errors.New("aspect: WithSet: given twice: make one set of both")
		}
		c.set = p
		return nil
	}
}

func (c *config) checkSet() error {
	if c.set == nil || len(c.rules) == 0 {
		return nil
	}
	return errors.New("aspect: WithDefaults or WithProfile beside WithSet: give ruleset's options of that name to ruleset.LoadFile")
}

// place puts an endpoint under its rules: those of now, and those of every reload.
func (a *Aspect) place(e ruleset.Endpoint, prepare ruleset.Prepare) error {
	set := a.cfg.set
	if set == nil {
		set = (*ruleset.Set)(nil)
	}
	if _, err := set.Subscribe(prepare); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.placed = append(a.placed, e)
	return nil
}

// rekeyed refuses rules under which this function would take other locks than it
// takes now.
func rekeyed(old *Point, set *ruleset.Set, next []*ruleset.Resolved) error {
	if old == nil || set.Settings().AllowRekey {
		return nil
	}
	return ruleset.Invalid(ruleset.RekeyedAt(old.Rules(), next)...)
}

// overlay resolves a rule given in code, under those of a set.
func (a *Aspect) overlay(set *ruleset.Set, rule ruleset.Rule) ([]*ruleset.Resolved, error) {
	if a.cfg.set == nil {
		return ruleset.Resolve([]ruleset.Rule{rule}, a.cfg.rules...)
	}
	var code []ruleset.Declared
	if bare := (ruleset.Rule{Endpoint: rule.Endpoint, Name: rule.Name}); !reflect.DeepEqual(rule, bare) {
		code = append(code, ruleset.Code(rule))
	}
	rules, err := set.Overlay(rule.Endpoint, code...)
	if err == nil && len(rules) == 0 {
		err = ruleset.Invalid(noRule(set, rule.Endpoint))
	}
	return rules, err
}

// noRule says that a function has no rule, and in which file one may be meant for it.
func noRule(set *ruleset.Set, e ruleset.Endpoint) *ruleset.Problem {
	var names []string
	for _, r := range set.Rules() {
		if r.Endpoint.Transport == ruleset.TransportFunc {
			names = append(names, r.Endpoint.Path)
		}
	}
	text := "neither the program nor the set has a rule: "
	if near := failpolicy.Nearest(e.Path, names); near != "" {
		text += fmt.Sprintf("did you mean %q? Else ", near)
	}
	p := &ruleset.Problem{Endpoint: e, Message: text + "add one for func: " + e.Path + "; disabled: true lets it run unlocked"}
	if file := set.File(); file != "" {
		p.Source = ruleset.Source{Layer: ruleset.LayerYAML, File: file}
	}
	return p
}

// Check reports func: rules of the set of [WithSet] that no function was wrapped
// for, as severe as the set says. Call it when all functions are wrapped. From then
// on a reload is judged likewise.
func (a *Aspect) Check() error {
	if a.cfg.set == nil {
		return nil
	}
	a.checking.Lock()
	defer a.checking.Unlock()
	if a.checked {
		commit, err := a.judge(a.cfg.set.Current())
		if err == nil {
			commit()
		}
		return err
	}
	_, err := a.cfg.set.Subscribe(a.judge)
	a.checked = err == nil
	return err
}

// judge looks for rules without a function; see [ruleset.Prepare].
func (a *Aspect) judge(set *ruleset.Set) (commit func(), err error) {
	var problems []*ruleset.Problem
	for _, rule := range set.Rules() {
		if rule.Endpoint.Transport == ruleset.TransportFunc && !a.isPlaced(set, rule) {
			problems = append(problems, rule.Problem("endpoint", a.unmatched(rule.Endpoint.Path)))
		}
	}
	switch set.Settings().Unmatched {
	case ruleset.SeverityError:
		err = ruleset.Invalid(problems...)
		problems = nil
	case ruleset.SeverityIgnore:
		problems = nil
	}
	return func() { a.Warn(problems...) }, err
}

func (a *Aspect) isPlaced(set *ruleset.Set, rule *ruleset.Resolved) bool {
	return slices.ContainsFunc(a.endpoints(), func(e ruleset.Endpoint) bool { return slices.Contains(set.Lookup(e), rule) })
}

func (a *Aspect) unmatched(name string) string {
	var names []string
	for _, e := range a.endpoints() {
		names = append(names, e.Path)
	}
	if near := failpolicy.Nearest(name, names); near != "" {
		return fmt.Sprintf("no function %q is wrapped: did you mean %q?", name, near)
	}
	return fmt.Sprintf("no function %q is wrapped: remove the rule, or wrap the function with Endpoint: ruleset.Func(%q)", name, name)
}

func (a *Aspect) endpoints() []ruleset.Endpoint {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.placed)
}
