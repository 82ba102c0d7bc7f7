package ruleset

import (
	"strings"
	"unicode"
)

// suggestName is a name for a rule that needs one beside others: of the fixed text of its key, or
// else of its endpoint, such as order-pay of "order:pay:#{path.id}".
func suggestName(rule *Resolved) string {
	for _, text := range append(rule.Templates(), rule.Endpoint.Path, "rule") {
		fixed, _, _ := strings.Cut(text, "#{")
		words := strings.FieldsFunc(fixed, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' })
		if name := strings.Trim(strings.Join(words, "-"), "_"); name != "" && len(name) <= maxNameLength {
			return name
		}
	}
	return "rule"
}
