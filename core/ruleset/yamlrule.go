package ruleset

import (
	"reflect"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/failpolicy"
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
	ruleTable    = newTable("a rule", nil, ruleRows())
	profileTable = newTable("a profile", nil, profileRows())
	topTable     = newTable("a rule file", nil, topRows())
)

func ruleRows() []row[entry] {
	rows := []row[entry]{
		{"http", "endpoint", endpointReader(HTTP)},
		{"grpc", "endpoint", endpointReader(GRPC)},
		{"func", "endpoint", endpointReader(Func)},
		{"services", "services", func(f *fileReader, v value, to *entry) (ok bool) {
			to.services, ok = f.strings(v, "a list of programs such as [shop-api]")
			return ok
		}},
	}
	for i, name := range Fields() {
		if name != "endpoint" {
			read := readerOf(ruleType().Field(i), name)
			rows = append(rows, row[entry]{name, name, func(f *fileReader, v value, to *entry) bool {
				return read(f, v, valueOf(&to.rule).Field(i))
			}})
		}
	}
	return rows
}

func endpointReader(parse func(string) Endpoint) func(*fileReader, value, *entry) bool {
	return func(f *fileReader, v value, to *entry) bool {
		text, ok := f.string(v, false)
		if ok {
			to.rule.Endpoint = parse(text)
		}
		return ok
	}
}

func profileRows() []row[Rule] {
	var rows []row[Rule]
	for i, name := range Fields() {
		switch name {
		case "endpoint", "name", "key", "keys", "profile", "none":
			continue
		}
		read := readerOf(ruleType().Field(i), name)
		rows = append(rows, row[Rule]{name, name, func(f *fileReader, v value, to *Rule) bool {
			return read(f, v, valueOf(to).Field(i))
		}})
	}
	return rows
}

func topRows() []row[config] {
	var rows []row[config]
	settings := reflect.TypeFor[Settings]()
	for i := range settings.NumField() {
		name := settings.Field(i).Tag.Get("rule")
		read := readerOf(settings.Field(i), name)
		rows = append(rows, row[config]{name, name, func(f *fileReader, v value, to *config) bool {
			return read(f, v, reflect.ValueOf(&to.settings).Elem().Field(i))
		}})
	}
	return append(rows,
		row[config]{"profiles", "profiles", (*fileReader).readProfiles},
		row[config]{"rules", "rules", (*fileReader).readRules},
	)
}

// readerOf reads a value of the field's type.
func readerOf(field reflect.StructField, name string) func(*fileReader, value, reflect.Value) bool {
	switch {
	case field.Type == reflect.TypeFor[time.Duration]():
		return func(f *fileReader, v value, to reflect.Value) bool {
			d, ok := f.duration(v)
			to.SetInt(int64(d))
			return ok
		}
	case field.Type == reflect.TypeFor[failpolicy.Statuses]():
		return func(f *fileReader, v value, to reflect.Value) bool { return false }
	}
	switch field.Type.Kind() {
	case reflect.Bool:
		return func(f *fileReader, v value, to reflect.Value) bool {
			b, ok := f.bool(v)
			to.SetBool(b)
			return ok
		}
	case reflect.Int:
		return func(f *fileReader, v value, to reflect.Value) bool {
			n, ok := f.int(v)
			to.SetInt(int64(n))
			return ok
		}
	case reflect.Slice:
		return func(f *fileReader, v value, to reflect.Value) bool {
			list, ok := f.strings(v, `a list such as ["a", "b"]`)
			if ok {
				to.Set(reflect.ValueOf(list))
			}
			return ok
		}
	case reflect.String:
		return func(f *fileReader, v value, to reflect.Value) bool {
			text, ok := f.string(v, false)
			to.SetString(text)
			return ok
		}
	default:
		panic("ruleset: no reader for " + field.Name)
	}
}

func (f *fileReader) readTop(root *yaml.Node, cfg *config) {
	if !f.is(value{node: root}, yaml.MappingNode, "rules: and a list") {
		return
	}
	sources := map[string]Source{}
	for _, s := range readMapping(f, topTable, "", root, cfg) {
		sources[s.field] = s.at
	}
	if _, ok := sources["rules"]; !ok {
		f.reportf(root, "rules", "missing: write rules: and a list")
	}
	cfg.switchAll(sources)
}

// switchAll makes the settings that concern every rule apply to them.
func (c *config) switchAll(sources map[string]Source) {
	c.switches = Declared{Source: Source{Layer: LayerYAML}, Fields: map[string]Source{}}
	if c.settings.Disabled {
		c.switches.Rule.Disabled = true
		c.switches.Fields["disabled"] = sources["disabled"]
	}
	if c.settings.DryRun {
		c.switches.Rule.DryRun = true
		c.switches.Fields["dry_run"] = sources["dry_run"]
	}
}

func (f *fileReader) readProfiles(v value, to *config) bool {
	if !f.is(v, yaml.MappingNode, "a mapping of names to values") {
		return false
	}
	scope := f.scope
	defer func() { f.scope = scope }()
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key, node := v.node.Content[i], v.node.Content[i+1]
		f.scope = Source{Layer: LayerProfile, Profile: key.Value, File: scope.File}
		if key.Value == "default" {
			f.scope = Source{Layer: LayerDefault, File: scope.File}
		}
		if !f.is(value{key: key, node: node}, yaml.MappingNode, "the values, such as wait_time: 5s") {
			continue
		}
		d := Declared{Source: f.of(key)}
		d.take(readMapping(f, profileTable, "", node, &d.Rule))
		if key.Value == "default" {
			to.defaults = append(to.defaults, d)
		} else {
			to.profiles = append(to.profiles, profile{key.Value, d})
		}
	}
	return true
}

// take notes what became of the fields.
func (d *Declared) take(all []found) {
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
}

func (f *fileReader) readRules(v value, to *config) bool {
	if !f.is(v, yaml.SequenceNode, "a list of rules") {
		return false
	}
	for _, n := range v.node.Content {
		if f.is(value{field: v.field, node: n}, yaml.MappingNode, "a rule such as http: POST /orders/:id/pay") {
			f.readRule(n, to)
		}
	}
	return true
}

func (f *fileReader) readRule(n *yaml.Node, to *config) {
	first := len(f.problems)
	var e entry
	seen := readMapping(f, ruleTable, "", n, &e)
	d := Declared{Rule: e.rule, Source: f.of(n)}
	d.take(seen)
	for _, p := range f.problems[first:] {
		p.Rule, p.Endpoint = e.rule.Name, e.rule.Endpoint
	}
	to.declared = append(to.declared, d)
}
