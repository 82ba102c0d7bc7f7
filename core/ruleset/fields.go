package ruleset

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// fieldSet is a set of fields of [Rule], by index.
type fieldSet uint64

func (s fieldSet) has(i int) bool      { return i >= 0 && s&(1<<i) != 0 }
func (s fieldSet) with(i int) fieldSet { return s | 1<<i }

// hasAny reports whether one of the named fields is in the set.
func (s fieldSet) hasAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return s.has(fieldIndex(name)) })
}

func valueOf(r *Rule) reflect.Value { return reflect.ValueOf(r).Elem() }

// fieldTable is what reflection knows of the fields of a struct.
type fieldTable struct {
	names   []string // outside Go: the rule tag, or the Go name in lower case
	goNames []string
	index   map[string]int // by the name outside Go
}

//nolint:gochecknoglobals // tables that are only read
var (
	ruleFields    = fieldsOf(reflect.TypeFor[Rule]())
	settingFields = fieldsOf(reflect.TypeFor[Settings]())
)

func fieldsOf(t reflect.Type) *fieldTable {
	fields := &fieldTable{index: make(map[string]int, t.NumField())}
	for i := range t.NumField() {
		name := cmp.Or(t.Field(i).Tag.Get("rule"), strings.ToLower(t.Field(i).Name))
		fields.names = append(fields.names, name)
		fields.goNames = append(fields.goNames, t.Field(i).Name)
		fields.index[name] = i
	}
	return fields
}

// Fields lists the names of the fields of a [Rule] as they are written outside
// Go, in their order.
func Fields() []string { return slices.Clone(ruleFields.names) }

// fieldIndex finds a field by its name outside Go, -1 if there is none.
func fieldIndex(name string) int {
	if i, ok := ruleFields.index[name]; ok {
		return i
	}
	return -1
}

// goName is the Go name of a field, for the parts of a field ("keys[2]") too.
func goName(field string) string {
	base, rest := cutField(field)
	if i := fieldIndex(base); i >= 0 {
		return ruleFields.goNames[i] + rest
	}
	return field
}

// setFields is the set of the fields of r that are not zero.
func setFields(r *Rule) fieldSet {
	var set fieldSet
	v := valueOf(r)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			set = set.with(i)
		}
	}
	return set
}

// cutField splits "keys[2]" into the field and the part of it.
func cutField(field string) (base, part string) {
	if cut := strings.IndexAny(field, "[."); cut >= 0 {
		return field[:cut], field[cut:]
	}
	return field, ""
}
