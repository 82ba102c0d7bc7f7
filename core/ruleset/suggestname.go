package ruleset

import (
	"slices"
	"strings"
	"unicode"
)

// suggestName is a name for a rule that needs one: the fixed text of its key, or else the last
// word of its endpoint, unless a rule beside it has that name.
func suggestName(rule *Resolved, all []*Resolved) string {
	last := lastWord(rule.Endpoint.Path)
	for _, template := range append(rule.Templates(), last) {
		fixed, _, _ := strings.Cut(template, "#{")
		name := nameOf(fixed)
		taken := slices.ContainsFunc(all, func(n *Resolved) bool { return n.Name == name && n != rule })
		if name != "" && !taken && len(name) <= maxNameLength {
			return name
		}
	}
	return last + "-2"
}

// nameOf makes a name of fixed text: "order:pay:" is order-pay.
func nameOf(text string) string {
	parts := strings.FieldsFunc(text, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' && c != '-' })
	return strings.Trim(strings.Join(parts, "-"), "_-")
}

// lastWord is the last fixed part of a path.
func lastWord(path string) string {
	parts := strings.Split(path, "/")
	for _, part := range slices.Backward(parts) {
		if name := nameOf(part); name != "" && !strings.HasPrefix(part, ":") && !strings.HasPrefix(part, "*") {
			return name
		}
	}
	return "rule"
}
