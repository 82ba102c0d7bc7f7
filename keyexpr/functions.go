package keyexpr

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"golang.org/x/text/unicode/norm"
)

// function is a function of the language. Each looks once at what it takes.
type function struct {
	usage  string // its arguments, for messages
	mode   argMode
	takes  []kind // the types of the first argument
	result func(argument Type) Type
	do     func(e *evaluation, name string, v any) any
}

// arguments is how many it takes.
func (f function) arguments() int { return strings.Count(f.usage, ", ") + 1 }

type argMode uint8

const (
	argValue argMode = iota // an operand of a computation
	argSame                 // the result is made of the argument
	argText                 // the result is the text of the argument
)

// functions are all that the language has.
var functions = map[string]function{ //nolint:gochecknoglobals // a table that is only read
	"lower":  {"text", argSame, []kind{kindString}, toText, ofText(strings.ToLower)},
	"upper":  {"text", argSame, []kind{kindString}, toText, ofText(strings.ToUpper)},
	"trim":   {"text", argSame, []kind{kindString}, toText, ofText(strings.TrimSpace)},
	"nfc":    {"text", argSame, []kind{kindString}, toText, ofText(norm.NFC.String)},
	"string": {"value", argText, []kind{kindString, kindBool, kindInt}, textType, textOfValue},
	"int":    {"value", argValue, []kind{kindInt, kindString, kindFloat}, toInt, integer},
	"len":    {"value", argValue, []kind{kindString, kindList, kindMap}, toInt, length},
	"keys":   {"map", argValue, []kind{kindMap}, namesType, keys},
	"first":  {"list", argSame, []kind{kindList}, Type.element, first},
	"last":   {"list", argSame, []kind{kindList}, Type.element, last},
	"split":  {`text, ","`, argSame, []kind{kindString}, toTexts, nil},
	"map":    {"list, .field", argSame, []kind{kindList}, nil, nil},
	"filter": {"list, .field == 1", argSame, []kind{kindList}, nil, nil},
	"any":    {"list, .field == 1", argValue, []kind{kindList}, nil, nil},
	"all":    {"list, .field == 1", argValue, []kind{kindList}, nil, nil},
}

func toText(Type) Type  { return Type{kind: kindString} }
func toInt(Type) Type   { return Type{kind: kindInt} }
func toTexts(Type) Type { return ListType(Type{kind: kindString}) }

// namesType returns the type of the names of an object. Names of JSON are in lower case, see keys.
func namesType(object Type) Type {
	if object.kind == kindMap {
		return ListType(Type{kind: kindString})
	}
	return ListType(TextType(`a name in lower case, as keys gives the names of JSON; write "name" in the map to ask for one`, func(text string) (string, bool) {
		return text, foldName(text) == text
	}))
}

func textType(t Type) Type {
	if t.kind == kindString {
		return t
	}
	return Type{kind: kindString}
}

// call checks a call of a function.
func (c *checker) call(x ast.Node, name string, args []ast.Node, m mode) node {
	f, ok := functions[name]
	if !ok {
		return c.notHere(x, name)
	}
	if len(args) != f.arguments() {
		return c.report(x, name+"("+f.usage+")", "%s cannot take %d arguments", name, len(args))
	}
	switch {
	case f.mode == argText:
		m = modeKey
	case f.mode == argValue || m.lenient():
		m = modeValue
	}
	m = c.in(m)
	switch name {
	case "map", "filter", "any", "all":
		return c.loop(x, name, args, m)
	case "split":
		return c.split(args, m)
	}
	var arg node
	if f.takes[0] == kindList {
		arg = c.list(args[0], name, m)
	} else {
		arg = c.operand(args[0], m, name, f.takes...)
	}
	return node{typ: f.result(arg.typ), eval: func(e *evaluation) any { return f.do(e, name, arg.eval(e)) }}
}

// list checks an argument that has to be a list.
func (c *checker) list(n ast.Node, name string, m mode) node {
	x := c.only(n, c.node(n, m), name, kindList)
	if x.typ.kind == kindAny {
		return c.asList(x, textOf(n), m)
	}
	return x
}

func (c *checker) asList(x node, text string, m mode) node {
	a := &access{typ: ListType(AnyType()), text: text, mode: m}
	return node{typ: a.typ, eval: func(e *evaluation) any {
		v := x.eval(e)
		if v != nil && !isList(v) {
			panic(failed(ReasonWrongType, text, "is "+describe(v)+", not a list"))
		}
		return a.settle(v)
	}}
}

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}

// loop checks a function that computes something for each element of a list.
func (c *checker) loop(x ast.Node, name string, args []ast.Node, m mode) node {
	predicate, ok := args[1].(*ast.PredicateNode)
	if c.element != nil || !ok {
		return c.report(x, "", "%s(…) cannot stand inside of another predicate: register a variable for the inner list", name)
	}
	list := c.list(args[0], name, m)
	element := list.typ.element()
	c.element = &element
	var typ Type
	var each node
	if name == "map" {
		each = c.node(predicate.Node, m)
		typ = ListType(each.typ)
	} else {
		each = c.operand(predicate.Node, modeValue, "the predicate of "+name, kindBool)
		typ = Type{kind: kindBool}
	}
	if name == "filter" {
		typ = list.typ
	}
	c.element = nil
	return node{typ: typ, eval: func(e *evaluation) any {
		elements, _ := list.eval(e).([]any) //nolint:errcheck // it is one
		return e.loop(name, elements, each)
	}}
}

// loop runs the predicate once for each element, as far as it has to.
func (e *evaluation) loop(name string, elements []any, each node) any {
	made := make([]any, 0, len(elements))
	for _, element := range elements {
		e.spend(comparison)
		e.element = normalize(element)
		if name == "map" {
			made = append(made, each.eval(e))
			continue
		}
		is := each.truth(e, "the predicate of "+name)
		switch {
		case name == "filter" && is:
			made = append(made, e.element)
		case name == "any" && is, name == "all" && !is:
			return is
		}
	}
	if name == "any" || name == "all" {
		return name == "all"
	}
	return made
}

// split cuts a text at a literal separator, so that the length of the list is known before
// it is made.
func (c *checker) split(args []ast.Node, m mode) node {
	separator, ok := args[1].(*ast.StringNode)
	if !ok || separator.Value == "" {
		return c.report(args[1], "split("+textOf(args[0])+`, ",")`, "the separator of split is a literal text that is not empty")
	}
	arg := c.operand(args[0], m, "split", kindString)
	return node{typ: ListType(Type{kind: kindString}), eval: func(e *evaluation) any {
		text := e.text("split", arg.eval(e))
		n := strings.Count(text, separator.Value) + 1
		if n > maxCollection {
			panic(tooMany(e.source))
		}
		e.spend(comparison * n)
		return boxed(strings.Split(text, separator.Value))
	}}
}

func ofText(f func(string) string) func(*evaluation, string, any) any {
	return func(e *evaluation, name string, v any) any { return e.made(f(e.text(name, v))) }
}

func textOfValue(e *evaluation, name string, v any) any {
	text, ok := textOfScalar(v)
	if !ok {
		e.failf("%s cannot take %s", name, describe(v))
	}
	return e.text(name, text)
}

// textOfScalar is the one text of a string, a bool or an integer.
func textOfScalar(v any) (text any, ok bool) {
	switch x := v.(type) {
	case string:
		return v, true
	case bool, int, uint64:
		return fmt.Sprint(x), true
	case json.Number:
		return x.String(), true
	}
	return nil, false
}

// integer refuses what does not convert exactly.
func integer(e *evaluation, name string, v any) any {
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

func length(e *evaluation, name string, v any) any {
	switch x := v.(type) {
	case []any:
		return len(x)
	case map[string]any:
		return len(x)
	case jsonObject:
		return len(x)
	case lazyMap:
		if x.n > maxCollection {
			panic(tooMany(e.source))
		}
		return x.n
	case string:
		return utf8.RuneCountInString(e.text(name, x))
	}
	e.failf("%s cannot take %s", name, describe(v))
	return nil
}

// keys are the names of an object. A handler may take a name that is not in lower case for another.
func keys(e *evaluation, name string, v any) any {
	if length(e, name, v).(int) > maxCollection { //nolint:errcheck,forcetypeassert // as length has it
		panic(tooMany(e.source))
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
		e.spend(comparison + len(n))
	}
	slices.Sort(names)
	return boxed(names)
}

func first(e *evaluation, _ string, v any) any { return e.end(v, 0) }

func last(e *evaluation, _ string, v any) any { return e.end(v, -1) }

func (e *evaluation) end(v any, index int) any {
	element, _ := elementAt(v, index)
	return whole(element, e.source)
}
