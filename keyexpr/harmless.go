package keyexpr

import (
	"errors"
	"regexp"
	"strings"

	"github.com/expr-lang/expr/file"
)

// inWords names the types that values have in the machine.
var inWords = strings.NewReplacer( //nolint:gochecknoglobals // a table that is only read
	"map[string]interface {}", "map", "[]interface {}", "list",
	"json.Number", "integer", "keyexpr.jsonObject", "object", "keyexpr.lazyMap", "object", "<nil>", "nil",
)

// machineType is such a name. It is taken out of an error before this is looked at, which
// keeps the other pattern short.
var machineType = regexp.MustCompile(`(?:\[\]|\b)(?:map|list|object|integer|nil|string|bool|int|uint64|float64)\b`)

// harmlessTexts are the errors of the language that name types and no values. All others
// are not shown: some hold values, and a later version of the language may bring more.
var harmlessTexts = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`invalid operation: (?:T )?[-+*/%<>=]{1,2} T`,
	`invalid operation: (?:T|float)\(T\)`,
	`interface conversion: interface (?:\{\} )?is T, not T`,
	`operator "in" not defined on T`,
	`invalid argument for [a-z]+ \(type T\)`,
	`cannot use T as argument \(type T\) to call [a-z]+`,
	`cannot take (?:T|slice) elements`,
	`runtime error: T divide by zero`,
	`illegal base64 data at input byte [0-9]+`,
	`sortBy order argument must be a T`,
	`unknown order, use asc or desc`,
	`reflect\.Value\.Slice: slice index out of bounds`,
}, "|") + `)$`)

// maxHarmless is longer than all of them.
const maxHarmless = 120

// harmless is the text of an error of the language without values, or empty.
func harmless(text string) string {
	const shift = "invalid operation: negative shift count" // which follows
	if strings.HasPrefix(text, shift) {
		return shift
	}
	if len(text) > maxHarmless {
		return ""
	}
	text = inWords.Replace(text)
	if !harmlessTexts.MatchString(machineType.ReplaceAllLiteralString(text, "T")) {
		return ""
	}
	return text
}

// ofMachine says likewise what the machine has failed with.
func ofMachine(err error) string {
	if positioned, ok := errors.AsType[*file.Error](err); ok {
		return harmless(positioned.Message)
	}
	return ""
}
