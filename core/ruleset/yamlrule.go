package ruleset

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// What to write, in messages.
const (
	ruleExample  = `"- http: POST /orders/:id/pay"`
	rulesExample = `"rules:" and below it ` + ruleExample
)

// entry is a rule as a file has it.
type entry struct {
	rule     Rule
	services []string
}

// The mappings of a rule file.
//
//nolint:gochecknoglobals // tables that are only read
var (
	ruleTable = newTable("a rule", append(
		[]row[entry]{
			{"http", "endpoint", endpointReader(HTTP)},
			{"grpc", "endpoint", endpointReader(GRPC)},
			{"func", "endpoint", endpointReader(Func)},
			{"services", "services", (*fileReader).readServices},
		},
		fieldRows(func(e *entry) *Rule { return &e.rule }, "endpoint")...,
	), ruleHints())

	profileTable = newTable("a profile", fieldRows(func(r *Rule) *Rule { return r }, singleRuleFields...), profileHints())

	topTable = newTable("a rule file", append(
		fieldRows(func(c *config) *Settings { return &c.settings }),
		row[config]{"profiles", "profiles", (*fileReader).readProfiles},
		row[config]{"rules", "rules", (*fileReader).readRules},
	), topHints())
)

// readTop reads the file as a whole.
func (f *fileReader) readTop(root *yaml.Node, cfg *config) {
	if !f.is(value{node: root}, yaml.MappingNode, rulesExample) {
		return
	}
	all := readMapping(f, topTable, "", root, cfg)
	if !slices.ContainsFunc(all, func(s found) bool { return s.field == "rules" }) {
		f.reportf(root, "rules", "missing: write %s, or rules: [] if none are meant", rulesExample)
	}
	cfg.switches = Declared{Rule: Rule{Disabled: cfg.settings.Disabled, DryRun: cfg.settings.DryRun}, Source: f.of(root), Fields: map[string]Source{}}
	for _, s := range all {
		cfg.switches.Fields[s.field] = s.at
	}
	cfg.switches.dropUnset()
	cfg.profilesUnread = slices.ContainsFunc(all, func(s found) bool { return s.field == "profiles" && !s.ok })
}

// dropUnset leaves only the fields that say something.
func (d *Declared) dropUnset() {
	set := setFields(&d.Rule)
	for name := range d.Fields {
		if !set.has(fieldIndex(name)) {
			delete(d.Fields, name)
		}
	}
}

// maxRules bounds the rules of a file.
const maxRules = 50_000

// readRules reads the list of rules. An empty one is written by who wants the settings
// of a file over rules of the .proto, and must be written: nothing is not enough.
func (f *fileReader) readRules(v value, to *config) bool {
	switch n := len(v.node.Content); {
	case !f.isPlain(v):
		return false
	case v.node.Tag == "!!null":
		f.reportf(v.key, v.field, "empty, nothing would be locked: write %s below it, or rules: [] if that is meant", ruleExample)
		return false
	case !f.is(v, yaml.SequenceNode, "every rule after a dash: "+ruleExample):
		return false
	case n > maxRules:
		f.reportf(v.node, v.field, "%d rules: a file has %d at most; split them between programs", n, maxRules)
		return false
	}
	for i, n := range v.node.Content {
		if f.isFull() {
			break
		}
		item := value{field: fmt.Sprintf("%s[%d]", v.field, i), node: n, flow: v.node.Style&yaml.FlowStyle != 0}
		if f.is(item, yaml.MappingNode, ruleExample) {
			f.readRule(n, to)
		}
	}
	return true
}

// readRule reads one rule and declares it if it is one of this program.
func (f *fileReader) readRule(n *yaml.Node, to *config) {
	first := len(f.problems)
	var e entry
	d := Declared{Source: f.of(n)}
	seen := readMapping(f, ruleTable, "", n, &e)
	f.checkEndpoints(n, seen)
	d.Rule = e.rule
	f.take(&d, seen)
	ours := f.isOurs(e.services, seen)
	for _, p := range f.problems[first:] {
		p.Rule, p.Endpoint = e.rule.Name, e.rule.Endpoint
	}
	if ours {
		to.declared = append(to.declared, d)
	}
}

// checkEndpoints reports a rule that has no endpoint, or several.
func (f *fileReader) checkEndpoints(n *yaml.Node, seen []found) {
	var first *found
	for i, s := range seen {
		switch {
		case s.field != "endpoint":
		case first == nil:
			first = &seen[i]
		default:
			f.reportf(s.key, s.name, "beside %s: a rule has one endpoint; remove one of them, or write two rules", first.name)
		}
	}
	if first == nil {
		f.reportf(n, "", endpointMissing)
	}
}

// take notes what became of the fields of a declaration.
func (f *fileReader) take(d *Declared, all []found) {
	d.Fields = make(map[string]Source, len(all))
	for _, s := range all {
		switch i := fieldIndex(s.field); {
		case i < 0:
		case s.ok:
			d.Fields[s.field] = s.at
		default:
			d.broken = d.broken.with(i)
		}
	}
	if d.Rule.Endpoint.IsZero() && d.Source.Layer == LayerYAML {
		d.broken = d.broken.with(fieldIndex("endpoint"))
	}
	maps.Copy(d.Fields, f.parts)
	f.parts = nil
}

// endpointReader reads an endpoint. One that is malformed still names its rule in
// problems.
func endpointReader(parse func(string) Endpoint) func(*fileReader, value, *entry) bool {
	return func(f *fileReader, v value, to *entry) bool {
		if v.node.Kind == yaml.SequenceNode {
			f.reportf(v.node, v.field, "a list: write a rule for each endpoint")
			return false
		}
		text, ok := f.string(v, textForm{})
		if !ok {
			return false
		}
		if !to.rule.Endpoint.IsZero() {
			return true // the first one counts, and that there are two is reported
		}
		to.rule.Endpoint = parse(text)
		if message := to.rule.Endpoint.problem(true); message != "" {
			f.reportf(v.node, v.field, "%s", message)
			return false
		}
		return true
	}
}

func (f *fileReader) readServices(v value, to *entry) bool {
	var ok bool
	if to.services, ok = f.strings(v, textForm{}); !ok {
		return false
	}
	f.parts = nil // they are none of the rule
	if len(to.services) == 0 {
		f.reportf(v.node, v.field, "no program would have the rule: name one, or remove the line")
		return false
	}
	return slices.Contains(to.services, f.service) || !f.isNearlyOurs(v.node, to.services)
}

// isNearlyOurs reports a name that differs from that of the program only by case or blanks:
// the rule would be left out.
func (f *fileReader) isNearlyOurs(list *yaml.Node, services []string) bool {
	ours := strings.TrimSpace(f.service)
	i := slices.IndexFunc(services, func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), ours) })
	if i < 0 || ours == "" {
		return false
	}
	f.reportf(list.Content[i], fmt.Sprintf("services[%d]", i), "%q is not the name of this program, and the rule would be left out: write %s", services[i], quoteYAML(f.service))
	return true
}

// isOurs reports whether the rule is one of this program.
func (f *fileReader) isOurs(services []string, seen []found) bool {
	i := slices.IndexFunc(seen, func(s found) bool { return s.field == "services" })
	switch {
	case i < 0:
		return true
	case !seen[i].ok:
		return false
	case f.service != "":
		return slices.Contains(services, f.service)
	case !f.foreign: // once is enough
		f.foreign = true
		f.report(seen[i].at, "services", "the program does not say which one it is: start it with "+
			fmt.Sprintf("ruleset.WithService(%q)", services[0])+", or remove the services of every rule")
	}
	return false
}
