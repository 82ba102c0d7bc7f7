package keyexpr

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// function is a function of the language. It reads its argument once.
type function struct {
	usage  string // its arguments, for messages
	mode   argMode
	takes  []kind // the types of the first argument
	result func(argument Type) Type
	apply  func(e *evaluation, name string, v any) any // nil for split and the loops
}

// arguments returns the number of arguments.
func (f function) arguments() int { return strings.Count(f.usage, ", ") + 1 }

// argMode describes the use of the argument. It decides what happens if the argument is missing.
type argMode uint8

const (
	argValue argMode = iota // the function computes with the argument
	argSame                 // the result consists of the argument
	argText                 // the result is the text of the argument
)

// functions holds all functions of the language.
var functions = map[string]function{ //nolint:gochecknoglobals // a table that is only read
	"lower":  {"text", argSame, []kind{kindString}, toText, ofText(strings.ToLower)},
	"upper":  {"text", argSame, []kind{kindString}, toText, ofText(strings.ToUpper)},
	"trim":   {"text", argSame, []kind{kindString}, toText, ofText(strings.TrimSpace)},
	"nfc":    {"text", argSame, []kind{kindString}, toText, ofText(norm.NFC.String)},
	"string": {"value", argText, []kind{kindString, kindBool, kindInt}, stringType, toString},
	"int":    {"value", argValue, []kind{kindInt, kindString, kindFloat}, toInt, parseInteger},
	"len":    {"value", argValue, []kind{kindString, kindList, kindMap}, toInt, countElements},
	"keys":   {"map", argValue, []kind{kindMap}, namesType, listNames},
	"first":  {"list", argSame, []kind{kindList}, Type.element, firstElement},
	"last":   {"list", argSame, []kind{kindList}, Type.element, lastElement},
	"split":  {`text, ","`, argSame, []kind{kindString}, toTexts, nil},
	"map":    {"list, .field", argSame, []kind{kindList}, nil, nil},
	"filter": {"list, .field == 1", argSame, []kind{kindList}, nil, nil},
	"any":    {"list, .field == 1", argValue, []kind{kindList}, nil, nil},
	"all":    {"list, .field == 1", argValue, []kind{kindList}, nil, nil},
}

func toText(Type) Type  { return Type{kind: kindString} }
func toInt(Type) Type   { return Type{kind: kindInt} }
func toTexts(Type) Type { return ListType(Type{kind: kindString}) }

// namesType returns the type of the names of a map. The names of a JSON object are in lower case;
// see listNames.
func namesType(object Type) Type {
	if object.kind == kindMap {
		return ListType(Type{kind: kindString})
	}
	return ListType(TextType(`a name in lower case, as keys returns the names of JSON; write "name" in the map to ask for one`, func(text string) (string, bool) {
		return text, foldName(text) == text
	}))
}

func stringType(t Type) Type {
	if t.kind == kindString {
		return t
	}
	return Type{kind: kindString}
}

// callNode returns the node that applies a function to its argument.
func callNode(name string, f function, argument node) node {
	return node{typ: f.result(argument.typ), eval: func(e *evaluation) any { return f.apply(e, name, argument.eval(e)) }}
}

// splitNode returns the node that cuts a text at a separator. The separator is literal so that
// the length of the list is known before the list is built.
func splitNode(text node, separator string) node {
	return node{typ: toTexts(text.typ), eval: func(e *evaluation) any {
		text := e.text("split", text.eval(e))
		n := strings.Count(text, separator) + 1
		if n > maxCollection {
			panic(tooManyError(e.source))
		}
		e.spend(comparisonCost * n)
		return box(strings.Split(text, separator))
	}}
}

// loopNode returns the node that applies map, filter, any or all to a list.
func loopNode(name string, list, each node) node {
	var typ Type
	switch name {
	case "map":
		typ = ListType(each.typ)
	case "filter":
		typ = list.typ
	default:
		typ = Type{kind: kindBool}
	}
	return node{typ: typ, eval: func(e *evaluation) any {
		elements, _ := list.eval(e).([]any) //nolint:errcheck // the checker and listOf ensure a list
		return e.loop(name, elements, each)
	}}
}

// loop computes each for the elements of a list. any and all stop at the element that decides the
// result.
func (e *evaluation) loop(name string, elements []any, each node) any {
	result := make([]any, 0, len(elements))
	for _, element := range elements {
		e.spend(comparisonCost)
		e.element = normalize(element)
		if name == "map" {
			result = append(result, each.eval(e))
			continue
		}
		is := each.evalBool(e, "the predicate of "+name)
		switch {
		case name == "filter" && is:
			result = append(result, e.element)
		case name == "any" && is, name == "all" && !is:
			return is
		}
	}
	if name == "any" || name == "all" {
		return name == "all"
	}
	return result
}

func ofText(f func(string) string) func(*evaluation, string, any) any {
	return func(e *evaluation, name string, v any) any { return e.spendText(f(e.text(name, v))) }
}

func toString(e *evaluation, name string, v any) any {
	text, ok := scalarText(v)
	if !ok {
		e.failf("%s cannot take %s", name, describe(v))
	}
	return e.text(name, text)
}

// parseInteger returns the integer of a value. It refuses a value that does not convert exactly.
func parseInteger(e *evaluation, name string, v any) any {
	switch x := v.(type) {
	case int:
		return x
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return int(x)
		}
	case string:
		if i, err := strconv.Atoi(e.text(name, x)); err == nil {
			return i
		}
	}
	e.failf("%s cannot take %s, only an integer or the text of one", name, describe(v))
	return nil
}

func countElements(e *evaluation, name string, v any) any { return e.length(name, v) }

func (e *evaluation) length(name string, v any) int {
	switch x := v.(type) {
	case []any:
		return len(x)
	case map[string]any:
		return len(x)
	case jsonObject:
		return len(x)
	case lazyMap:
		if x.n > maxCollection {
			panic(tooManyError(e.source))
		}
		return x.n
	case string:
		return utf8.RuneCountInString(e.text(name, x))
	}
	e.failf("%s cannot take %s", name, describe(v))
	return 0
}

// listNames returns the names of an object, sorted. It refuses a JSON object that has a name with
// an upper-case letter, because a handler may take that name for another one.
func listNames(e *evaluation, name string, v any) any {
	if e.length(name, v) > maxCollection {
		panic(tooManyError(e.source))
	}
	var names []string
	switch m := v.(type) {
	case jsonObject:
		for folded, member := range m {
			if folded != member.name {
				e.failf(errSpelling)
			}
			names = append(names, member.name)
		}
	case map[string]any:
		names = slices.Collect(maps.Keys(m))
	case lazyMap:
		for name := range m.all {
			names = append(names, name)
		}
	default:
		e.failf("%s cannot take %s", name, describe(v))
	}
	for _, n := range names {
		e.spend(comparisonCost + len(n))
	}
	slices.Sort(names)
	return box(names)
}

const errSpelling = `keys() cannot return a name of a JSON object that is not in lower case, because a handler ` +
	`may take it for another name; write "name" in …, or give the body a type`

func firstElement(e *evaluation, _ string, v any) any { return e.elementOf(v, 0) }

func lastElement(e *evaluation, _ string, v any) any { return e.elementOf(v, -1) }

func (e *evaluation) elementOf(v any, index int) any {
	element, _ := elementAt(v, index)
	return whole(element, e.source)
}
