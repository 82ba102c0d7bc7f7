package ruleset

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

// Limits of a file.
const (
	maxRules    = 50_000
	maxProfiles = 1000
	maxServices = 1000 // the largest number of services in one rule
)

// Examples in messages.
const (
	ruleExample  = `"- http: POST /orders/:id/pay"`
	rulesExample = `"rules:" and below it ` + ruleExample
)

// fileReader adds the declarations of a rule file to declarations and collects every problem.
type fileReader struct {
	*strictyaml.Doc // nil if the file is not YAML

	service  string // the name of the program
	to       *declarations
	scope    Source // the source of the rules or the profile that are being read, without a position
	foreign  bool   // a services list was found, and the program has no name
	problems []*Problem
}

// entry is a rule of a file.
type entry struct {
	rule     Rule
	services []string
	file     *fileReader
}

// The mappings of a rule file.
//
//nolint:gochecknoglobals // tables that are only read
var (
	topMapping = strictyaml.NewMapping("a rule file", append(
		keysOf(settingFields, func(f *fileReader) *Settings { return &f.to.settings }),
		strictyaml.Key[fileReader]{Name: "profiles", Field: "profiles", Read: readProfiles},
		strictyaml.Key[fileReader]{Name: "rules", Field: "rules", Read: readRules},
	), topHints())

	ruleMapping = strictyaml.NewMapping("a rule", append(
		[]strictyaml.Key[entry]{
			{Name: "http", Field: "endpoint", Read: endpointReader(HTTP)},
			{Name: "grpc", Field: "endpoint", Read: endpointReader(GRPC)},
			{Name: "func", Field: "endpoint", Read: endpointReader(Func)},
			{Name: "services", Field: "services", Read: readServices},
		},
		keysOf(ruleFields[1:], func(e *entry) *Rule { return &e.rule })...,
	), ruleHints())

	profileMapping = strictyaml.NewMapping("a profile", keysOf(sharedFields(), func(r *Rule) *Rule { return r }), profileHints())
)

// readFile reads the text of a file for the program service and adds its declarations to to.
func readFile(name string, text []byte, service string, to *declarations) *fileReader {
	f := &fileReader{service: service, to: to, scope: Source{Layer: LayerYAML, File: name}}
	f.Doc = strictyaml.Parse(text, f.note)
	if f.Doc != nil {
		f.readTop()
		f.ReportComments()
	}
	return f
}

// note records a problem.
func (f *fileReader) note(p strictyaml.Problem) {
	f.problems = append(f.problems, &Problem{Field: p.Field, Source: f.at(p.Line, p.Column), Message: p.Message})
}

// at returns the source at a position.
func (f *fileReader) at(line, column int) Source {
	s := f.scope
	s.Line, s.Column = line, column
	return s
}

// of returns the source of a node.
func (f *fileReader) of(n *yaml.Node) Source { return f.at(n.Line, n.Column) }

// readTop reads the file as a whole.
func (f *fileReader) readTop() {
	root := f.Root
	switch {
	case root.Tag == "!!null":
		f.Reportf(&yaml.Node{Line: 1, Column: 1}, "", "the file says nothing: write "+rulesExample)
		return
	case !f.Is(strictyaml.Value{Node: root}, yaml.MappingNode, rulesExample):
		return
	}
	all := topMapping.Read(f.Doc, "", root, f)
	if !slices.ContainsFunc(all, func(p strictyaml.Pair) bool { return p.Field == "rules" }) {
		f.Reportf(root, "rules", "missing: write %s, or rules: [] if none are meant", rulesExample)
	}
	f.to.settingAt = make(map[string]Source, len(all))
	for _, p := range all {
		if p.OK && slices.Contains(namesOf(settingFields), p.Field) {
			f.to.settingAt[p.Field] = f.of(p.Node)
		}
	}
	f.to.profilesUnread = slices.ContainsFunc(all, func(p strictyaml.Pair) bool { return p.Field == "profiles" && !p.OK })
}

// readRules reads the list of rules. The list may be empty, because a file may contain only settings for
// the rules of the .proto files, but its author has to write it.
func readRules(d *strictyaml.Doc, v strictyaml.Value, f *fileReader) bool {
	switch n := len(v.Node.Content); {
	case !d.IsPlain(v):
		return false
	case v.Node.Tag == "!!null":
		d.Reportf(v.Key, v.Field, "empty, nothing would be locked: write %s below it, or rules: [] if that is meant", ruleExample)
		return false
	case !d.Is(v, yaml.SequenceNode, "every rule after a dash: "+ruleExample):
		return false
	case n > maxRules:
		d.Reportf(v.Node, v.Field, "%d rules: a file has %d at most; split them between programs", n, maxRules)
		return false
	}
	for i, n := range v.Node.Content {
		if d.IsFull() {
			break
		}
		if d.Is(v.Item(i), yaml.MappingNode, ruleExample) {
			f.readRule(n)
		}
	}
	return true
}

// readRule reads one rule and declares it unless it belongs only to other programs.
func (f *fileReader) readRule(n *yaml.Node) {
	first := len(f.problems)
	e := entry{file: f}
	d := Declared{Source: f.of(n)}
	pairs := ruleMapping.Read(f.Doc, "", n, &e)
	f.checkEndpoints(n, pairs)
	d.Rule = e.rule
	f.addSources(&d, pairs)
	if d.Rule.Endpoint.IsZero() {
		d.broken = append(d.broken, "endpoint")
	}
	ours := f.isOurs(e.services, pairs)
	for _, p := range f.problems[first:] {
		p.Rule, p.Endpoint = e.rule.Name, e.rule.Endpoint
	}
	if ours {
		f.to.rules = append(f.to.rules, d)
	}
}

// endpointReader returns a reader of endpoints. A malformed endpoint still names its rule in problems.
func endpointReader(parse func(string) Endpoint) func(*strictyaml.Doc, strictyaml.Value, *entry) bool {
	return func(d *strictyaml.Doc, v strictyaml.Value, to *entry) bool {
		if v.Node.Kind == yaml.SequenceNode {
			d.Reportf(v.Node, v.Field, "a list: write a rule for each endpoint")
			return false
		}
		text, ok := d.Text(v, strictyaml.Form{})
		if !ok {
			return false
		}
		if !to.rule.Endpoint.IsZero() {
			return true // checkEndpoints reports the second one
		}
		to.rule.Endpoint = parse(text)
		if message := to.rule.Endpoint.problem(true); message != "" {
			d.Reportf(v.Node, v.Field, "%s", message)
			return false
		}
		return true
	}
}

// checkEndpoints reports a rule with no endpoint or several endpoints.
func (f *fileReader) checkEndpoints(n *yaml.Node, pairs []strictyaml.Pair) {
	var first *strictyaml.Pair
	for i, p := range pairs {
		switch {
		case p.Field != "endpoint":
		case first == nil:
			first = &pairs[i]
		default:
			f.Reportf(p.Key, p.Name, "given together with %s: a rule has one endpoint; remove one of them, or write two rules", first.Name)
		}
	}
	if first == nil {
		f.Reportf(n, "", endpointMissing)
	}
}

// addSources adds the sources of the fields that were read, and of their parts. It marks a field that
// could not be read as broken.
func (f *fileReader) addSources(d *Declared, pairs []strictyaml.Pair) {
	d.Fields = make(map[string]Source, len(pairs))
	for _, p := range pairs {
		switch {
		case fieldNamed(p.Field) == nil:
		case p.OK:
			f.addSource(d.Fields, p.Field, p.Node)
		default:
			d.broken = append(d.broken, p.Field)
		}
	}
}

// addSource adds the source of a field, and of each part: "keys[1]", "status.busy.http".
func (f *fileReader) addSource(to map[string]Source, field string, n *yaml.Node) {
	to[field] = f.of(n)
	v := strictyaml.Value{Field: field, Node: n}
	switch n.Kind {
	case yaml.SequenceNode:
		for i := range n.Content {
			item := v.Item(i)
			f.addSource(to, item.Field, item.Node)
		}
	case yaml.MappingNode:
		for part := range strictyaml.Pairs(n, field+".") {
			f.addSource(to, part.Field, part.Node)
		}
	}
}

// readServices reads the names of the programs that a rule is for.
func readServices(d *strictyaml.Doc, v strictyaml.Value, to *entry) bool {
	var ok bool
	if to.services, ok = d.Texts(v, strictyaml.Form{}, maxServices, "%d programs: write %d at most"); !ok {
		return false
	}
	if len(to.services) == 0 {
		d.Reportf(v.Node, v.Field, "no program would have the rule: name one, or remove the line")
		return false
	}
	return slices.Contains(to.services, to.file.service) || !to.file.isNearlyOurs(v.Node, to.services)
}

// isNearlyOurs reports a problem and returns true if a name differs from the name of the program
// only in case or blanks, because the program would skip such a rule.
func (f *fileReader) isNearlyOurs(list *yaml.Node, services []string) bool {
	ours := strings.TrimSpace(f.service)
	i := slices.IndexFunc(services, func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), ours) })
	if i < 0 || ours == "" {
		return false
	}
	f.Reportf(list.Content[i], fmt.Sprintf("services[%d]", i), "%q is not the name of this program, and the rule would be left out: write %s", services[i], strictyaml.Quote(f.service))
	return true
}

// isOurs reports whether the rule is for this program.
func (f *fileReader) isOurs(services []string, pairs []strictyaml.Pair) bool {
	i := slices.IndexFunc(pairs, func(p strictyaml.Pair) bool { return p.Field == "services" })
	switch {
	case i < 0:
		return true
	case !pairs[i].OK:
		return false
	case f.service != "":
		return slices.Contains(services, f.service)
	case !f.foreign: // report it once
		f.foreign = true
		f.Reportf(pairs[i].Node, "services", "the program does not say which one it is: start it with ruleset.WithService(%q), or remove the services of every rule", services[0])
		if last := f.problems[len(f.problems)-1]; last.Field == "services" { // otherwise it is the message about too many problems
			last.Err = ErrNoService
		}
	}
	return false
}

// readProfiles reads the values that rules share.
func readProfiles(d *strictyaml.Doc, v strictyaml.Value, f *fileReader) bool {
	if !d.Is(v, yaml.MappingNode, "names with values, such as default: {wait_time: 5s}") {
		return false
	}
	if n := len(v.Node.Content) / 2; n > maxProfiles {
		d.Reportf(v.Node, v.Field, "%d profiles: a file has %d at most", n, maxProfiles)
		return false
	}
	file, all := f.scope, true
	defer func() { f.scope = file }()
	seen := map[string]*yaml.Node{}
	for p := range strictyaml.Pairs(v.Node, v.Field+".") {
		f.scope = file
		name, ok := d.Name(v.Field, p.Key)
		switch {
		case !ok:
			all = false
		case isDefaultMeant(name):
			d.Reportf(p.Key, v.Field, "%s: write default, the profile that applies to every rule", strictyaml.KeyText(name))
			f.readProfile(defaultProfile, p)
		case len(name) > maxNameLength:
			d.Reportf(p.Key, v.Field, "a name of %d bytes: write %d at most", len(name), maxNameLength)
			all = false
		case isBlank(name):
			d.Reportf(p.Key, v.Field, "a profile without a name: write reports: or default:")
		case !strictyaml.IsPrintable(name):
			d.Reportf(p.Key, v.Field, "%s: write a name of visible characters, such as reports", strictyaml.KeyText(name))
			all = false
		case seen[name] != nil:
			d.ReportTwice(p.Field, seen[name], p.Key)
		default:
			seen[name] = p.Key
			f.readProfile(name, p)
		}
	}
	return all
}

// readProfile reads one profile, or the defaults of the file.
func (f *fileReader) readProfile(name string, v strictyaml.Value) {
	f.scope.Layer, f.scope.Profile = LayerProfile, name
	if name == defaultProfile {
		f.scope.Layer, f.scope.Profile = LayerDefault, ""
	}
	v.Field = ""
	d := Declared{Source: f.of(v.Key)}
	if f.Is(v, yaml.MappingNode, "its values, such as wait_time: 5s") {
		f.addSources(&d, profileMapping.Read(f.Doc, "", v.Node, &d.Rule))
	} else {
		d.broken = append(d.broken, "profile") // its values are unknown
	}
	if name == defaultProfile {
		f.to.defaults = append(f.to.defaults, d)
		return
	}
	f.to.profiles = append(f.to.profiles, d)
}
