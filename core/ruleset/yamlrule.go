package ruleset

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
	"github.com/interlock-go/interlock/failpolicy"
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

// defaultProfile is the name of the values that hold for every rule of a file.
const defaultProfile = "default"

// sharedFields are the fields that profiles and defaults may have, singleFields those that belong
// to a single rule.
//
//nolint:gochecknoglobals // tables that are only read
var (
	sharedFields = slices.DeleteFunc(slices.Clone(ruleFields), func(f *field[Rule]) bool { return f.single })
	singleFields = slices.DeleteFunc(slices.Clone(ruleFields), func(f *field[Rule]) bool { return !f.single })
)

// maxProfiles bounds the profiles of a file.
const maxProfiles = 1000

// readProfiles reads the values that rules share.
func (f *fileReader) readProfiles(v value, to *config) bool {
	if !f.Is(v, yaml.MappingNode, "names with values, such as default: {wait_time: 5s}") {
		return false
	}
	if n := len(v.Node.Content) / 2; n > maxProfiles {
		f.Reportf(v.Node, v.Field, "%d profiles: a file has %d at most", n, maxProfiles)
		return false
	}
	file, all := f.scope, true
	defer func() { f.scope = file }()
	seen := map[string]*yaml.Node{}
	for p := range strictyaml.Pairs(v.Node, v.Field+".") {
		f.scope = file
		name, ok := f.Name(v.Field, p.Key)
		switch {
		case !ok:
			all = false
		case isDefaultMeant(name):
			f.Reportf(p.Key, v.Field, "%s: write default, which is the one that applies to every rule", keyText(name))
			f.readProfile(defaultProfile, p, to)
		case len(name) > maxNameLength:
			f.Reportf(p.Key, v.Field, "a name of %d bytes: write %d at most", len(name), maxNameLength)
			all = false
		case isBlank(name):
			f.Reportf(p.Key, v.Field, "a profile without a name: write reports: or default:")
		case !isPrintable(name):
			f.Reportf(p.Key, v.Field, "%s: write a name of visible characters, such as reports", keyText(name))
			all = false
		case seen[name] != nil:
			f.reportTwice(p.Field, seen[name], p.Key)
		default:
			seen[name] = p.Key
			f.readProfile(name, p, to)
		}
	}
	return all
}

// isDefaultMeant reports a name that looks like the one of the values for every rule. No
// profile may have it: what it says would count nowhere.
func isDefaultMeant(name string) bool {
	folded := foldKey(name)
	return name != defaultProfile && (folded == defaultProfile || folded == defaultProfile+"s")
}

// readProfile reads one profile, or the defaults of the file.
func (f *fileReader) readProfile(name string, v value, to *config) {
	f.scope.Layer, f.scope.Profile = LayerProfile, name
	if name == defaultProfile {
		f.scope.Layer, f.scope.Profile = LayerDefault, ""
	}
	v.Field = ""
	d := Declared{Source: f.of(v.Key)}
	if f.Is(v, yaml.MappingNode, "its values, such as wait_time: 5s") {
		f.take(&d, readMapping(f, profileTable, "", v.Node, &d.Rule))
	} else {
		d.broken = append(d.broken, "profile") // it is there, but nobody knows what it says
	}
	if name == defaultProfile {
		to.defaults = append(to.defaults, d)
		return
	}
	to.profiles = append(to.profiles, d)
}

const (
	halfExample   = "{http: 423, grpc: ABORTED}"
	statusExample = "busy: " + halfExample
)

//nolint:gochecknoglobals // tables that are only read
var (
	causeTable = newTable("status", causeRows(), map[string]hint{
		"canceled":  {message: "nobody is there to see it when the caller is gone: remove it"},
		"cancelled": {message: "nobody is there to see it when the caller is gone: remove it"},
		"http":      {message: "belongs to a cause: write " + statusExample},
		"grpc":      {message: "belongs to a cause: write " + statusExample},
		"taken":     {meant: "busy"},
		"locked":    {meant: "busy"},
		"timeout":   {meant: "busy"},
		"redis":     {meant: "backend"},
	})
	statusTable = newTable("a status", []row[failpolicy.Status]{
		{"http", "http", (*fileReader).httpStatus},
		{"grpc", "grpc", (*fileReader).grpcCode},
	}, nil)
)

// causeRows are the causes whose status a rule can change.
func causeRows() []row[failpolicy.Statuses] {
	var rows []row[failpolicy.Statuses]
	for _, cause := range failpolicy.Causes() {
		if (&failpolicy.Statuses{}).Of(cause) != nil {
			rows = append(rows, row[failpolicy.Statuses]{string(cause), string(cause), func(f *fileReader, v value, to *failpolicy.Statuses) bool {
				return readFilled(f, v, statusTable, halfExample, to.Of(cause))
			}})
		}
	}
	return rows
}

func (statusesType) read(f *fileReader, v value) (to failpolicy.Statuses, ok bool) {
	ok = readFilled(f, v, causeTable, statusExample, &to)
	return to, ok
}

// readFilled reads a mapping that is not empty.
func readFilled[T any](f *fileReader, v value, t *table[T], example string, to *T) bool {
	switch {
	case !f.Is(v, yaml.MappingNode, example):
		return false
	case len(v.Node.Content) == 0:
		f.Reportf(v.Node, v.Field, "empty: write %s, or remove the line", example)
		return false
	}
	all := readMapping(f, t, v.Field+".", v.Node, to)
	return !slices.ContainsFunc(all, func(s found) bool { return !s.ok })
}

func (f *fileReader) httpStatus(v value, to *failpolicy.Status) bool {
	n, ok := f.Int(v, "409")
	if ok && (n < 400 || n > 599) {
		f.Reportf(v.Node, v.Field, "%d is not the status of an error: write one of 400 to 599, such as 409", n)
		return false
	}
	to.HTTP = n
	f.notePart(v)
	return ok
}

// lastCode is the number of UNAUTHENTICATED, the last code of gRPC.
const lastCode = 16

func (f *fileReader) grpcCode(v value, to *failpolicy.Status) bool {
	if !f.Is(v, yaml.ScalarNode, "a code such as ABORTED") {
		return false
	}
	n := v.Node
	if i, err := strconv.Atoi(n.Value); err == nil && i > 0 && i <= lastCode {
		f.Reportf(n, v.Field, "%s: write the code's name, %s", strictyaml.ScalarText(n), failpolicy.Code(i))
		return false
	}
	code, err := failpolicy.ParseCode(strictyaml.Clip(n.Value))
	if err != nil {
		f.Reportf(n, v.Field, "%s", err)
		return false
	}
	to.GRPC = code
	f.notePart(v)
	return true
}
