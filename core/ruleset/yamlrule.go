package ruleset

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
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
		rowsOf(ruleFields[1:], func(e *entry) *Rule { return &e.rule })...,
	), ruleHints())

	profileTable = newTable("a profile", rowsOf(sharedFields, itself[Rule]), profileHints())

	topTable = newTable("a rule file", append(
		rowsOf(settingFields, func(c *config) *Settings { return &c.settings }),
		row[config]{"profiles", "profiles", (*fileReader).readProfiles},
		row[config]{"rules", "rules", (*fileReader).readRules},
	), topHints())
)

// readTop reads the file as a whole.
func (f *fileReader) readTop(cfg *config) {
	root := f.Root
	switch {
	case root.Tag == "!!null":
		f.Reportf(&yaml.Node{Line: 1, Column: 1}, "", "the file says nothing: write "+rulesExample)
		return
	case !f.Is(value{Node: root}, yaml.MappingNode, rulesExample):
		return
	}
	all := readMapping(f, topTable, "", root, cfg)
	if !slices.ContainsFunc(all, func(s found) bool { return s.field == "rules" }) {
		f.Reportf(root, "rules", "missing: write %s, or rules: [] if none are meant", rulesExample)
	}
	cfg.settingAt = make(map[string]Source, len(all))
	for _, s := range all {
		if s.ok && slices.Contains(namesOf(settingFields), s.field) {
			cfg.settingAt[s.field] = f.of(s.node)
		}
	}
	cfg.profilesUnread = slices.ContainsFunc(all, func(s found) bool { return s.field == "profiles" && !s.ok })
}

// maxRules bounds the rules of a file.
const maxRules = 50_000

// readRules reads the list of rules. An empty one is written by who wants the settings
// of a file over rules of the .proto, and must be written: nothing is not enough.
func (f *fileReader) readRules(v value, to *config) bool {
	switch n := len(v.Node.Content); {
	case !f.IsPlain(v):
		return false
	case v.Node.Tag == "!!null":
		f.Reportf(v.Key, v.Field, "empty, nothing would be locked: write %s below it, or rules: [] if that is meant", ruleExample)
		return false
	case !f.Is(v, yaml.SequenceNode, "every rule after a dash: "+ruleExample):
		return false
	case n > maxRules:
		f.Reportf(v.Node, v.Field, "%d rules: a file has %d at most; split them between programs", n, maxRules)
		return false
	}
	for i, n := range v.Node.Content {
		if f.isFull() {
			break
		}
		if f.Is(v.Item(i), yaml.MappingNode, ruleExample) {
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
			f.Reportf(s.key, s.name, "beside %s: a rule has one endpoint; remove one of them, or write two rules", first.name)
		}
	}
	if first == nil {
		f.Reportf(n, "", endpointMissing)
	}
}

// take notes what became of the fields of a declaration.
func (f *fileReader) take(d *Declared, all []found) {
	d.Fields = make(map[string]Source, len(all))
	for _, s := range all {
		switch {
		case fieldNamed(s.field) == nil:
		case s.ok:
			d.Fields[s.field] = f.of(s.node)
		default:
			d.broken = append(d.broken, s.field)
		}
	}
	if d.Rule.Endpoint.IsZero() && d.Source.Layer == LayerYAML {
		d.broken = append(d.broken, "endpoint")
	}
	maps.Copy(d.Fields, f.parts)
	f.parts = nil
}

// endpointReader reads an endpoint. One that is malformed still names its rule in
// problems.
func endpointReader(parse func(string) Endpoint) func(*fileReader, value, *entry) bool {
	return func(f *fileReader, v value, to *entry) bool {
		if v.Node.Kind == yaml.SequenceNode {
			f.Reportf(v.Node, v.Field, "a list: write a rule for each endpoint")
			return false
		}
		text, ok := f.Text(v, strictyaml.Form{})
		if !ok {
			return false
		}
		if !to.rule.Endpoint.IsZero() {
			return true // the first one counts, and that there are two is reported
		}
		to.rule.Endpoint = parse(text)
		if message := to.rule.Endpoint.problem(true); message != "" {
			f.Reportf(v.Node, v.Field, "%s", message)
			return false
		}
		return true
	}
}

// maxServices is how many programs a rule names.
const maxServices = 1000

func (f *fileReader) readServices(v value, to *entry) bool {
	var ok bool
	if to.services, ok = f.texts(v, strictyaml.Form{}, maxServices, "%d programs: write %d at most"); !ok {
		return false
	}
	f.parts = nil // they are none of the rule
	if len(to.services) == 0 {
		f.Reportf(v.Node, v.Field, "no program would have the rule: name one, or remove the line")
		return false
	}
	return slices.Contains(to.services, f.service) || !f.isNearlyOurs(v.Node, to.services)
}

// isNearlyOurs reports a name that differs from that of the program only by case or blanks:
// the rule would be left out.
func (f *fileReader) isNearlyOurs(list *yaml.Node, services []string) bool {
	ours := strings.TrimSpace(f.service)
	i := slices.IndexFunc(services, func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), ours) })
	if i < 0 || ours == "" {
		return false
	}
	f.Reportf(list.Content[i], fmt.Sprintf("services[%d]", i), "%q is not the name of this program, and the rule would be left out: write %s", services[i], strictyaml.Quote(f.service))
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
		f.Reportf(seen[i].node, "services", "the program does not say which one it is: start it with ruleset.WithService(%q), or remove the services of every rule", services[0])
		if last := f.problems[len(f.problems)-1]; last.Field == "services" { // not the last of too many
			last.Err = ErrNoService
		}
	}
	return false
}
