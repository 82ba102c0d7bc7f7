package ruleset

import (
	"reflect"
	"strings"
)

// fieldSet is a set of fields of [Rule], by index.
type fieldSet uint64

func (s fieldSet) has(i int) bool      { return s&(1<<i) != 0 }
func (s fieldSet) with(i int) fieldSet { return s | 1<<i }
func ruleType() reflect.Type           { return reflect.TypeFor[Rule]() }
func fieldTag(i int) string            { return ruleType().Field(i).Tag.Get("rule") }
func valueOf(r *Rule) reflect.Value    { return reflect.ValueOf(r).Elem() }

// Fields lists the names of the fields of a [Rule] as they are written outside
// Go, in their order.
func Fields() []string {
	names := make([]string, ruleType().NumField())
	for i := range names {
		names[i] = fieldTag(i)
	}
	return names
}

// fieldIndex finds a field by its name outside Go, -1 if there is none.
func fieldIndex(name string) int {
	for i, n := range Fields() {
		if n == name {
			return i
		}
	}
	return -1
}

// goName is the Go name of a field, for the parts of a field ("keys[2]") too.
func goName(field string) string {
	base, rest := cutField(field)
	if i := fieldIndex(base); i >= 0 {
		return ruleType().Field(i).Name + rest
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
