package httpvars

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/keyexpr"
)

// named holds values to which a client gave names, such as the parameters of a query.
//
// Handlers look up names in different ways: net/http and gin exactly, echo in any case, go-zero
// without a final "[]", fiber in any case, without "[]" and with "a[b]" for "a.b". If a client
// spells a name in another way than the expression, some of them read that value instead. So the
// request is refused.
type named struct {
	values map[string][]string
	odd    map[string][]string // the names that differ from their folded form, by that form
}

func newNamed(values map[string][]string) *named {
	n := &named{values: values}
	for name := range values {
		if folded := foldName(name); folded != name {
			n.addOdd(folded, name)
		}
	}
	return n
}

// addUnread records that the client sent a value of the name that is not in values.
func (n *named) addUnread(name string) {
	n.addOdd(foldName(name), "") // no expression has an empty name
}

func (n *named) addOdd(folded, name string) {
	if n.odd == nil {
		n.odd = map[string][]string{}
	}
	n.odd[folded] = append(n.odd[folded], name)
}

// get returns the values of a name. It returns an error if the client gave the name in another
// spelling, whether or not it also gave the name itself.
func (n *named) get(name string) ([]string, error) {
	folded := foldName(name)
	_, plain := n.values[folded]
	if plain && folded != name || slices.ContainsFunc(n.odd[folded], func(odd string) bool { return odd != name }) {
		return nil, &keyexpr.EvalError{
			Reason: keyexpr.ReasonRepeated,
			Detail: "is given in a form that only some handlers read: with other case, brackets or dots in its name, or as a malformed cookie",
		}
	}
	return n.values[name], nil
}

// has reports whether the client sent the name in any spelling.
func (n *named) has(name string) bool {
	folded := foldName(name)
	_, plain := n.values[folded]
	return plain || len(n.odd[folded]) > 0
}

// foldName maps all names that a handler may take for one to the same name.
func foldName(name string) string {
	for i := range len(name) {
		if c := name[i]; 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf || isMark(rune(c)) {
			return strings.Map(foldRune, name)
		}
	}
	return name
}

func isMark(r rune) bool { return r == '[' || r == ']' || r == '.' }

// foldRune maps all characters that differ only in case to one of them. It drops brackets and dots.
func foldRune(r rune) rune {
	if isMark(r) {
		return -1
	}
	return unicode.ToLower(unicode.ToUpper(r)) // ToLower alone leaves two of σ, ς and Σ
}
