package ruleset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/failpolicy"
)

// resolver applies defaults, profiles and layers, and collects every problem.
type resolver struct {
	defaults        Resolved
	profiles        profileList
	settings        Settings
	settingAt       map[string]Source
	requireEndpoint bool
	allowPartial    bool
	problems        []*Problem
}

// identity is what makes two declarations the same rule.
type identity struct {
	endpoint Endpoint
	name     string
	broken   int // tells declarations apart whose endpoint or name is unreadable
}

func newResolver(cfg *config) *resolver {
	r := &resolver{
		settings: cfg.settings, settingAt: cfg.settingAt,
		profiles: profileList{byName: map[string]*Declared{}, unread: cfg.profilesUnread}, problems: slices.Clone(cfg.problems),
	}
	r.profiles.add(builtinProfiles()...)
	r.defaults.overlay(&Declared{Rule: builtinDefaults(), Source: Source{Layer: LayerDefault}})
	for i := range cfg.defaults {
		r.checkShared(&cfg.defaults[i])
		r.defaults.overlay(&cfg.defaults[i])
	}
	for i := range cfg.profiles {
		switch p := &cfg.profiles[i]; {
		case p.Source.Profile == "":
			r.problems = append(r.problems, &Problem{Field: "profile", Source: p.Source, Message: `WithProfile("") has no name: write WithProfile("reports", …)`})
		case isDefaultMeant(p.Source.Profile):
			r.problems = append(r.problems, &Problem{Source: p.Source, Message: `write WithProfile("default", …), which is the one that applies to every rule`})
		}
		r.checkShared(&cfg.profiles[i])
	}
	r.profiles.add(cfg.profiles...)
	return r
}

// again is a resolver with the same defaults and profiles, and no problems.
func (r *resolver) again() *resolver {
	return &resolver{defaults: r.defaults, profiles: r.profiles, settings: r.settings, settingAt: r.settingAt, requireEndpoint: r.requireEndpoint}
}

// checkShared checks values that are shared by many rules.
func (r *resolver) checkShared(d *Declared) {
	own := Resolved{}
	own.overlay(d)
	own.origin = d.Source
	c := checker{rule: &own}
	c.checkShared(d)
	for _, p := range c.problems {
		p.Rule, p.Endpoint = "", Endpoint{}
	}
	r.problems = append(r.problems, c.problems...)
}

func (r *resolver) resolveAll(declared []Declared) []*Resolved {
	var order []identity
	groups := map[identity][]Declared{}
	for i, d := range declared {
		d.Source.Layer = cmp.Or(d.Source.Layer, LayerCode)
		id := identityOf(&d.Rule)
		if d.broken.hasAny("endpoint", "name") {
			id.broken = i + 1
		}
		if _, known := groups[id]; !known {
			order = append(order, id)
		}
		groups[id] = append(groups[id], d)
	}
	rules := make([]*Resolved, len(order))
	together := map[Endpoint][]*Resolved{}
	for i, id := range order {
		rules[i] = r.resolve(groups[id])
		together[id.endpoint] = append(together[id.endpoint], rules[i])
	}
	r.checkNames(rules, together)
	r.problems = append(r.problems, MixedKinds(r.kindKnown(rules))...)
	return rules
}

func identityOf(r *Rule) identity {
	return identity{endpoint: r.Endpoint, name: cmp.Or(r.Name, r.Endpoint.Label())}
}

// resolve makes one rule of the declarations of one identity, and sorts them.
func (r *resolver) resolve(group []Declared) *Resolved {
	slices.SortStableFunc(group, func(a, b Declared) int { return cmp.Compare(a.Source.Layer, b.Source.Layer) })
	rule := &Resolved{
		Rule: r.defaults.Rule, sources: maps.Clone(r.defaults.sources), broken: r.defaults.broken,
		origin: group[len(group)-1].Source, lowest: group[0].Source.Layer,
	}
	r.applyProfile(rule, group)
	for i := range group {
		if i > 0 && group[i].Source.Layer == group[i-1].Source.Layer {
			r.problems = append(r.problems, duplicate(&group[i], group[i-1].Source))
		}
		rule.overlay(&group[i])
	}
	rule.Name = cmp.Or(rule.Name, rule.Endpoint.Label())
	rule.partial = r.allowPartial && rule.mayBePartial()
	c := checker{rule: rule, declared: group}
	c.check(r.requireEndpoint)
	r.problems = append(r.problems, c.problems...)
	c.applyDebounce()
	r.applySettings(rule)
	return rule
}

// applySettings switches what the settings switch in every rule.
func (r *resolver) applySettings(rule *Resolved) {
	if r.settings.Disabled {
		rule.Disabled = true
		rule.sources["disabled"] = r.settingAt["disabled"]
	}
	if r.settings.DryRun {
		rule.DryRun = true
		rule.sources["dry_run"] = r.settingAt["dry_run"]
	}
}

// mayBePartial reports whether the rule has no key, and a lower layer may bring one.
func (r *Resolved) mayBePartial() bool {
	return r.Endpoint.mayHaveLower() && !r.None && r.origin.Layer == LayerYAML && !r.declared("key") && !r.declared("keys")
}

func duplicate(d *Declared, first Source) *Problem {
	where := ""
	if first.File != "" {
		where = " (the first is at " + first.String() + ")"
	}
	return &Problem{
		Rule: d.Rule.Name, Endpoint: d.Rule.Endpoint, Field: "name", Source: d.Source,
		Message: "declared twice" + where + ": remove one, or give each its own name",
	}
}

// applyProfile lays the profile that the highest declaration names over the defaults.
func (r *resolver) applyProfile(rule *Resolved, group []Declared) {
	d := profileFrom(group)
	if d == nil || d.Rule.Profile == "" {
		return
	}
	if p := r.profiles.byName[d.Rule.Profile]; p != nil {
		rule.overlay(p)
		return
	}
	rule.broken = append(slices.Clip(rule.broken), "profile")
	message := "the default profile holds for every rule: remove the line"
	switch {
	case d.Rule.Profile == defaultProfile:
	case r.profiles.unread:
		return // it may be one of those, and that was reported
	default:
		message = r.profiles.unknown(d.Rule.Profile)
	}
	r.problems = append(r.problems, &Problem{
		Rule: d.Rule.Name, Endpoint: d.Rule.Endpoint, Field: "profile", Source: d.source("profile"), Message: message,
	})
}

// profileFrom is the highest declaration that sets the profile, nil if none does.
func profileFrom(group []Declared) *Declared {
	for i := range slices.Backward(group) {
		if group[i].sets(fieldNamed("profile")) {
			return &group[i]
		}
	}
	return nil
}

// isBlank reports whether s has no visible character.
func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// profileList is the profiles by name.
type profileList struct {
	names  []string // in order
	byName map[string]*Declared
	unread bool // there are more, whose names could not be read
	missed int  // how many were asked for in vain
}

// add adds profiles, each in the place of that of its name.
func (l *profileList) add(profiles ...Declared) {
	for _, p := range profiles {
		name := p.Source.Profile
		if l.byName[name] == nil {
			l.names = append(l.names, name)
		}
		l.byName[name] = &p
	}
}

// unknown says what to write instead of a name.
func (l *profileList) unknown(name string) string {
	const shown, guesses = 10, 100
	e := failpolicy.UnknownWordError{What: "profile", Word: name, Known: l.names}
	if l.missed++; l.missed <= guesses && len(name) <= maxNameLength {
		e.Suggestion = failpolicy.Nearest(name, l.names)
	}
	if more := len(l.names) - shown; more > 1 {
		e.Known = slices.Concat(l.names[:shown], []string{fmt.Sprintf("and %d more", more)})
	}
	return e.Error()
}
