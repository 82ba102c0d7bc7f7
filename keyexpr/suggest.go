package keyexpr

import (
	"slices"
	"strings"
)

// nearest returns the candidate most like name, or "" if none is close.
func nearest(name string, candidates []string) string {
	best, bestDistance := "", max(1, len(name)/3)+1
	for _, c := range candidates {
		if fold(c) == fold(name) {
			return c
		}
		if d := distance(fold(name), fold(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// fold removes what spellings of one name differ in: orderId, order_id, OrderID.
func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// distance is the Levenshtein distance in bytes, which suffices for names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// listing names candidates in a message, the first few of them.
func listing(names []string) string {
	const most = 12
	names = slices.Sorted(slices.Values(names))
	if len(names) == 0 {
		return "there are none"
	}
	if len(names) > most {
		return "there are " + strings.Join(names[:most], ", ") + ", …"
	}
	if len(names) == 1 {
		return "there is " + names[0]
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

// guess places an unknown name into the variable that may hold anything.
func (s *Schema) guess(path string) string {
	for _, v := range s.variables {
		if v.Type.kind == kindAny {
			return v.Name + "." + path
		}
	}
	return path
}

func (t Type) find(names []string) (string, bool) {
	switch t.kind {
	case kindKeyed:
		return matching(names[0], t.keyed.Known)
	case kindObject:
		name, ok := matching(names[0], t.object.Fields())
		if !ok || len(names) == 1 {
			return name, ok
		}
		field, ok := t.object.Field(name)
		if !ok {
			return "", false
		}
		rest, ok := field.Type.find(names[1:])
		return name + "." + rest, ok
	}
	return "", false
}

func matching(name string, candidates []string) (string, bool) {
	i := slices.IndexFunc(candidates, func(c string) bool { return fold(c) == fold(name) })
	if i < 0 || name == "" {
		return "", false
	}
	return candidates[i], true
}
