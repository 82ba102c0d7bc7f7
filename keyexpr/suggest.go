package keyexpr

import (
	"cmp"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/failpolicy"
)

// listing names candidates in a message, the first few of them.
func listing(names []string) string {
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

// find translates a name of another template language to one of the schema:
// orderId becomes path.orderId, order.id becomes in.Order.ID.
func (s *Schema) find(path string) (string, bool) {
	names := strings.Split(strings.Trim(path, ". "), ".")
	if _, ok := s.slots[names[0]]; ok {
		return strings.Join(names, "."), true
	}
	for _, v := range s.variables {
		if found, ok := v.Type.find(names); ok {
			return v.Name + "." + found, true
		}
	}
	return "", false
}

// guess places an unknown name into the variable that may hold anything, or else into one that has its field.
func (s *Schema) guess(path string) string {
	if i := slices.IndexFunc(s.variables, func(v Variable) bool { return v.Type.kind == kindAny }); i >= 0 {
		return s.variables[i].Name + "." + path
	}
	_, field, _ := strings.Cut(path, ".") // of a parameter in Java, which is the whole request here
	found, _ := s.find(field)
	return cmp.Or(found, path)
}

func (t Type) find(names []string) (string, bool) {
	known := t.names()
	i := slices.IndexFunc(known, func(name string) bool { return names[0] != "" && failpolicy.SameName(name, names[0]) })
	if i < 0 {
		return "", false
	}
	if len(names) == 1 || t.kind == kindKeyed {
		return known[i], true
	}
	field, _ := t.object.Field(known[i])
	rest, ok := field.Type.find(names[1:])
	return known[i] + "." + rest, ok
}
