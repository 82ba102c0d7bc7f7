package ruleset

import (
	"reflect"
	"slices"
	"strings"
)

// field is a row of the table of the fields of S, which is [Rule] or [Settings]: all that
// Go, files, .proto files, dumps and checks know of one field.
type field[S any] struct {
	name    string // outside Go; the name in Go follows from it
	single  bool   // no profile and no default has it
	instead string // the field that goes when this one is set, and the other way round
	typ     any    // a typ of its values

	isZero func(s *S) bool
	lay    func(to, from *S)
	show   func(s *S) any // as a file says it: a string, word, bool, int, list of strings or object
	read   func(f *fileReader, v value, to *S) bool
	set    func(to *S, part string, layer Layer, value any) error
	check  func(c *checker, s *S)
}

// typ is how the values of a field are written and judged, in all places that have rules.
type typ[V any] interface {
	// read reads a value of a file. It reports a value that it cannot read.
	read(f *fileReader, v value) (V, bool)
	// set takes a value of a .proto, or a part of one. The error says what to write instead.
	set(to *V, part string, layer Layer, value any) error
	// show is the value as a file has it.
	show(v V) any
	// check reports a value that no rule can have.
	check(c *checker, field string, v V)
}

// column makes the row of a field of S.
func column[S, V any, T typ[V]](name string, t T, at func(*S) *V) *field[S] {
	return &field[S]{
		name: name, typ: t,
		isZero: func(s *S) bool { return reflect.ValueOf(at(s)).Elem().IsZero() },
		lay:    func(to, from *S) { *at(to) = *at(from) },
		show:   func(s *S) any { return t.show(*at(s)) },
		read: func(f *fileReader, v value, to *S) bool {
			x, ok := t.read(f, v)
			if ok {
				*at(to) = x
			}
			return ok
		},
		set:   func(to *S, part string, layer Layer, value any) error { return t.set(at(to), part, layer, value) },
		check: func(c *checker, s *S) { t.check(c, name, *at(s)) },
	}
}

// forOneRule says that the field belongs to a single rule.
func (f *field[S]) forOneRule() *field[S] {
	f.single = true
	return f
}

// insteadOf names the other form of the field.
func (f *field[S]) insteadOf(other string) *field[S] {
	f.instead = other
	return f
}

// fieldNamed finds a field of a rule by its name outside Go, nil if there is none.
func fieldNamed(name string) *field[Rule] {
	if i := slices.IndexFunc(ruleFields, func(f *field[Rule]) bool { return f.name == name }); i >= 0 {
		return ruleFields[i]
	}
	return nil
}

// Fields lists the names of the fields of a [Rule] as they are written outside
// Go, in their order.
func Fields() []string { return namesOf(ruleFields) }

func namesOf[S any](fields []*field[S]) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// goName is the Go name of a field, for the parts of a field ("keys[2]") too.
func goName(field string) string {
	base, rest := cutField(field)
	if fieldNamed(base) == nil {
		return field
	}
	return camel(base) + rest
}

// camel is the name in Go of what is wait_time outside.
func camel(name string) string {
	var text strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		text.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return text.String()
}

// cutField splits "keys[2]" into the field and the part of it.
func cutField(field string) (base, part string) {
	if cut := strings.IndexAny(field, "[."); cut >= 0 {
		return field[:cut], field[cut:]
	}
	return field, ""
}

// fieldList is a set of names of fields.
type fieldList []string

// hasAny reports whether one of the named fields is in the set.
func (l fieldList) hasAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(l, name) })
}
