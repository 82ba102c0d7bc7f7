package ruleset

import (
	"cmp"
	"maps"
	"slices"
)

// resolver builds rules from declarations: it applies defaults, profiles and layers and collects every
// problem.
type resolver struct {
	defaults        Resolved
	profiles        profileList
	settings        Settings
	settingAt       map[string]Source
	requireEndpoint bool
	allowPartial    bool
	problems        []*Problem
}

// identity identifies a rule. Declarations with the same identity are one rule.
type identity struct {
	endpoint Endpoint
	name     string
	broken   int // distinguishes declarations whose endpoint or name could not be read
}

func identityOf(r *Rule) identity {
	return identity{endpoint: r.Endpoint, name: cmp.Or(r.Name, r.Endpoint.Label())}
}

func newResolver(d *declarations) *resolver {
	r := &resolver{
		settings: d.settings, settingAt: d.settingAt,
		profiles: profileList{byName: map[string]*Declared{}, unread: d.profilesUnread}, problems: slices.Clone(d.problems),
	}
	r.profiles.add(builtinProfiles()...)
	r.defaults.overlay(&Declared{Rule: builtinDefaults(), Source: Source{Layer: LayerDefault}})
	for i := range d.defaults {
		r.checkShared(&d.defaults[i])
		r.defaults.overlay(&d.defaults[i])
	}
	for i := range d.profiles {
		switch p := &d.profiles[i]; {
		case p.Source.Profile == "":
			r.problems = append(r.problems, &Problem{Field: "profile", Source: p.Source, Message: `WithProfile("") has no name: write WithProfile("reports", …)`})
		case isDefaultMeant(p.Source.Profile):
			r.problems = append(r.problems, &Problem{Source: p.Source, Message: `write WithProfile("default", …), the profile that applies to every rule`})
		}
		r.checkShared(&d.profiles[i])
	}
	r.profiles.add(d.profiles...)
	return r
}

// withoutProblems returns a resolver with the same defaults and profiles, but without problems.
func (r *resolver) withoutProblems() *resolver {
	return &resolver{defaults: r.defaults, profiles: r.profiles, settings: r.settings, settingAt: r.settingAt, requireEndpoint: r.requireEndpoint}
}

// checkShared checks values that many rules share.
func (r *resolver) checkShared(d *Declared) {
	shared := Resolved{}
	shared.overlay(d)
	shared.origin = d.Source
	c := checker{rule: &shared}
	c.checkShared(d)
	for _, p := range c.problems {
		p.Rule, p.Endpoint = "", Endpoint{}
	}
	r.problems = append(r.problems, c.problems...)
}

// resolveAll builds rules from declarations, in the order in which they were first declared.
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
	r.problems = append(r.problems, MixedKinds(r.withKnownKind(rules))...)
	return rules
}

// resolve builds one rule from the declarations of one identity. It sorts the declarations by
// layer.
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
	applyDebounce(rule)
	applyLease(rule)
	r.applySettings(rule)
	return rule
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
	message := "the default profile applies to every rule: remove the line"
	switch {
	case d.Rule.Profile == defaultProfile:
	case r.profiles.unread:
		return // the name may belong to an unreadable profile, which was reported
	default:
		message = r.profiles.unknown(d.Rule.Profile)
	}
	r.problems = append(r.problems, &Problem{
		Rule: d.Rule.Name, Endpoint: d.Rule.Endpoint, Field: "profile", Source: d.source("profile"), Message: message,
	})
}

// profileFrom returns the highest declaration that sets the profile, or nil.
func profileFrom(group []Declared) *Declared {
	for i := range slices.Backward(group) {
		if group[i].sets(fieldNamed("profile")) {
			return &group[i]
		}
	}
	return nil
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

// applySettings applies the settings that switch every rule.
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

// checkNames checks the names of the rules. together holds the rules by their endpoints.
func (r *resolver) checkNames(rules []*Resolved, together map[Endpoint][]*Resolved) {
	for _, all := range together {
		slices.SortStableFunc(all, func(a, b *Resolved) int { return cmp.Compare(a.origin.Layer, b.origin.Layer) })
	}
	c := nameChecker{r.problems}
	for _, rule := range rules {
		c.check(rule, together[rule.Endpoint])
	}
	r.problems = c.problems
}

// withKnownKind returns the rules whose kind is valid and cannot come from a lower layer outside
// the set.
func (r *resolver) withKnownKind(rules []*Resolved) []*Resolved {
	return slices.DeleteFunc(slices.Clone(rules), func(rule *Resolved) bool {
		tooMany := len(rule.Templates()) > 1 && !rule.Kind.Traits().Several
		return rule.broken.hasAny("kind", "key", "keys", "prefix", "when", "profile", "disabled", "dry_run", "endpoint") ||
			!rule.Kind.isKnown() || tooMany || rule.Kind.Traits().Permits && (rule.Permits < 1 || rule.broken.hasAny("permits")) || r.allowPartial && rule.Endpoint.mayHaveLower() && !rule.declared("kind")
	})
}
