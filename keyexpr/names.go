package keyexpr

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/failpolicy"
)

// This file finds the names that a user probably meant. It depends on the schema only.

// adapterVariables are the variables of HTTP and gRPC requests for which another adapter has another
// name. Any other unknown name may be a variable that a program registers. See habits for the
// variable in.
var adapterVariables = map[string]bool{ //nolint:gochecknoglobals // a table that is only read
	"path": true, "query": true, "form": true, "body": true, "req": true,
}

// findReference translates a path of names to a reference of the schema whose names differ only
// in case and underscores: orderId becomes path.orderId, order.id becomes in.Order.ID.
func findReference(schema *Schema, path string) (string, bool) {
	names := strings.Split(strings.Trim(path, ". "), ".")
	if slot, ok := schema.slots[names[0]]; ok {
		if found, ok := findField(schema.variables[slot].Type, names[1:]); ok {
			return names[0] + "." + found, true
		}
		return strings.Join(names, "."), true
	}
	for _, v := range schema.variables {
		if found, ok := findField(v.Type, names); ok {
			return v.Name + "." + found, true
		}
	}
	return "", false
}

// findField translates a path of names to the fields of a type.
func findField(t Type, path []string) (string, bool) {
	names := t.names()
	i := slices.IndexFunc(names, func(name string) bool {
		return len(path) > 0 && path[0] != "" && failpolicy.SameName(name, path[0])
	})
	if i < 0 {
		return "", false
	}
	if len(path) == 1 || t.kind == kindKeyed {
		return names[i], true
	}
	field, _ := t.object.Field(names[i])
	rest, ok := findField(field.Type, path[1:])
	return names[i] + "." + rest, ok
}

// spelling returns the known name that is most similar to a name, or the name itself.
func (t Type) spelling(name string) string {
	return cmp.Or(failpolicy.Nearest(name, t.names()), name)
}

// translateName returns the reference of the schema for a name of another language.
func translateName(schema *Schema, name string) string {
	name = strings.Trim(readProperty(strings.TrimSpace(name)), ". #")
	if found, ok := findReference(schema, name); ok {
		return found
	}
	return cmp.Or(failpolicy.Nearest(name, shortReferences(schema)), guessReference(schema, name))
}

// shortReferences returns all references of one or two names.
func shortReferences(schema *Schema) []string {
	var all []string
	for _, v := range schema.variables {
		all = append(all, v.Name)
		for _, name := range v.Type.names() {
			all = append(all, v.Name+"."+name)
		}
	}
	return all
}

// unknownReference stands for a reference in a suggestion if the schema has none for it.
const unknownReference = "…"

// guessReference returns a reference for an unknown name. It prefers a field of the variable of
// unknown type. Then it tries a field named by the whole path, joined by underscores, and a field
// named by the path without its first name, which is a parameter in Java.
func guessReference(schema *Schema, path string) string {
	if i := slices.IndexFunc(schema.variables, func(v Variable) bool { return v.Type.kind == kindAny }); i >= 0 {
		return schema.variables[i].Name + "." + path
	}
	_, field, _ := strings.Cut(path, ".")
	joined, _ := findReference(schema, strings.ReplaceAll(path, ".", "_"))
	found, _ := findReference(schema, field)
	return cmp.Or(joined, found, unknownReference)
}

// readProperty replaces the call of a getter at the end of a path by the field that it reads, and
// removes toString, which every part of a template does without it.
func readProperty(path string) string {
	path, isCall := strings.CutSuffix(path, "()")
	last := strings.LastIndexByte(path, '.') + 1
	if field, ok := getterField(path[last:]); ok && isCall {
		return path[:last] + field
	}
	return strings.TrimSuffix(path, ".toString")
}

// getterField returns the field that a Java getter reads.
func getterField(name string) (field string, ok bool) {
	name, ok = strings.CutPrefix(name, "get")
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(first)) + name[size:], ok && unicode.IsUpper(first)
}

// exampleReference returns a reference that can be a part of a key, for an example in a message. It returns no text that an
// adapter supplies, such as the method, because the text may be the same for all requests.
func exampleReference(schema *Schema) string {
	for _, v := range schema.variables {
		name := ""
		switch {
		case v.Type.kind == kindAny:
			name = "id"
		case v.Type.kind == kindObject:
			name = firstPartField(v.Type.object)
		case len(v.Type.names()) > 0:
			name = v.Type.names()[0]
		}
		if name != "" {
			return v.Name + "." + name
		}
		if v.Type.kind == kindString && (v.Registered || schema.isArgument()) {
			return v.Name
		}
	}
	return unknownReference
}

// firstPartField returns a field that can be a part and is not a bool. It prefers id or value, then a text.
func firstPartField(o Object) string {
	best, least := "", 3
	for _, name := range slices.Sorted(slices.Values(o.Fields())) {
		rank := 2
		f, _ := o.Field(name)
		switch {
		case !f.Type.isPart() || f.Type.kind == kindBool:
			continue
		case strings.EqualFold(name, "id") || strings.EqualFold(name, "value"):
			rank = 0
		case f.Type.kind == kindString:
			rank = 1
		}
		if rank < least {
			best, least = name, rank
		}
	}
	return best
}

// exampleEntry returns the name of an entry of a keyed variable.
func exampleEntry(t Type) string { return append(t.names(), "name")[0] }

// isArgument reports whether the schema is one of [Argument].
func (s *Schema) isArgument() bool {
	_, ok := s.slots[argumentName]
	return ok
}

// otherNames returns the end of a message that lists the names of the schema. It says where these
// or other names come from.
func (s *Schema) otherNames() string {
	switch {
	case s.isArgument() && len(s.variables) == 1:
		return ", the argument of the function"
	case s.isArgument() || len(s.variables) == 0:
		return ""
	}
	return "; WithVariable adds others"
}

// adviseProgram returns the advice to let the program compute a value: in a field of the argument
// of a function, and otherwise in a registered variable.
func adviseProgram(schema *Schema, value string) string {
	if schema.isArgument() {
		return "compute " + value + " in the program, as a field of in"
	}
	return "register a variable for " + value + " (WithVariable)"
}

// listForMessage returns the first of the names as a list for a message.
func listForMessage(names []string) string {
	const most = 12
	names = slices.Sorted(slices.Values(names))
	switch {
	case len(names) == 0:
		return "there are none"
	case len(names) == 1:
		return "there is " + names[0]
	case len(names) > most:
		names = append(names[:most], "…")
	}
	return "there are " + strings.Join(names, ", ")
}
