package keyexpr

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/vm/runtime"
)

// metered is a builtin or an operator whose cost depends on its operands. It is paid for
// before it is done.
type metered struct {
	// takes says what the arguments are, one letter for each: t is a text, l a list, o an
	// object, n an integer, . anything. T is a text of an operator, which is false for nil.
	takes string
	// prices are paid one after the other: one may look for what an earlier one paid.
	prices []func(args []any) price
	// do does it; nil is the language's own builtin.
	do operation
}

// meteredNames are the builtins and operators that are metered.
var meteredNames = map[string]metered{ //nolint:gochecknoglobals // a table that is only read
	"+":  {"..", prices{sumPrice}, pure(runtime.Add)},
	"==": {"..", nil, equal}, "!=": {"..", nil, unequal}, "in": {"..", nil, in},
	"<": {"..", nil, compared(runtime.Less)}, "<=": {"..", nil, compared(runtime.LessOrEqual)},
	">": {"..", nil, compared(runtime.More)}, ">=": {"..", nil, compared(runtime.MoreOrEqual)},
	"..":         {"..", prices{spanPrice}, span},
	"contains":   {"TT", prices{searching(1)}, textIn(strings.Contains)},
	"startsWith": {"TT", prices{endsPrice}, textIn(strings.HasPrefix)},
	"endsWith":   {"TT", prices{endsPrice}, textIn(strings.HasSuffix)},

	"hasPrefix": {"tt", prices{endsPrice}, nil}, "hasSuffix": {"tt", prices{endsPrice}, nil},
	"trimPrefix": {"tt", prices{endsPrice}, nil}, "trimSuffix": {"tt", prices{endsPrice}, nil},
	"indexOf": {"tt", prices{searching(1)}, nil}, "lastIndexOf": {"tt", prices{searching(1)}, nil},
	"split": {"ttn", prices{searching(2), splitPrice}, nil}, "splitAfter": {"ttn", prices{searching(2), splitPrice}, nil},
	"replace": {"tttn", prices{searching(3), replacePrice}, nil}, "join": {"lt", prices{perElement(20, 16), joinPrice}, join},
	"trim":  {"tt", prices{trimPrice, trimWidePrice}, nil},
	"upper": {"t", prices{perByte(3, 1), perWide(16, 4)}, nil}, "lower": {"t", prices{perByte(3, 1), perWide(16, 4)}, nil},
	"toBase64": {"t", prices{perByte(3, 4)}, nil}, "fromBase64": {"t", prices{perByte(3, 2)}, nil},
	"len": {".", prices{perByte(3, 0)}, length}, "type": {".", nil, typeName},
	"string": {".", prices{perByte(2, 0)}, of(ownString)}, "int": {".", prices{perByte(2, 0)}, of(ownInt)},
	"float": {".", prices{floatPrice}, of(ownFloat)},

	"keys": {"o", prices{namesPrice}, keysOf}, "values": {"o", prices{namesPrice}, of(ownValues)},
	"uniq": {"l", nil, uniq}, "flatten": {"l", nil, flatten}, "concat": {"", prices{perElement(40, 96)}, nil},
	"reverse": {"l", prices{perElement(50, 32)}, nil}, "sort": {"l.", prices{perElement(2, 0), sortPrice}, sortList},
	"max": {"", nil, aggregate("max", price{})}, "min": {"", nil, aggregate("min", price{})},
	"mean": {"", nil, aggregate("mean", price{})}, "median": {"", nil, aggregate("median", price{20, 32})},
}

type prices = []func(args []any) price

// operation does what is metered, under its name.
func (m metered) operation(name string) operation {
	return func(e *evaluation, args []any) (any, error) {
		if strings.HasPrefix(m.takes, "T") && slices.Contains(args, nil) {
			return false, nil
		}
		if err := m.admit(name, args); err != nil {
			return nil, err
		}
		for _, p := range m.prices {
			if err := e.pay(p(args)); err != nil {
				return nil, err
			}
		}
		if m.do == nil {
			return original(name, args)
		}
		return m.do(e, args)
	}
}

// admit checks the types of arguments. Its error shows none of them.
func (m metered) admit(name string, args []any) error {
	for i, arg := range args[:min(len(args), len(m.takes))] {
		admitted, noun := true, ""
		switch m.takes[i] {
		case 't', 'T':
			_, admitted = arg.(string)
			noun = "a string"
		case 'n':
			_, admitted = arg.(int)
			noun = "an integer"
		case 'l':
			admitted, noun = isList(arg), "a list"
		case 'o':
			admitted, noun = isObject(arg), "an object"
		}
		if !admitted {
			return fmt.Errorf("%s needs %s, not %s", name, noun, describe(arg))
		}
	}
	return nil
}

// original calls the language's own builtin, which has been paid for.
func original(name string, args []any) (v any, err error) {
	f := builtin.Builtins[builtin.Index[name]]
	switch {
	case f.Safe != nil:
		v, _, err = f.Safe(args...)
	case f.Func != nil:
		v, err = f.Func(args...)
	default:
		v = f.Fast(args[0])
	}
	if err != nil {
		return nil, errors.New(harmless(err.Error()))
	}
	return normalize(v), nil
}

// of makes an operation of a function of one value.
func of(f func(any) (any, error)) operation {
	return func(_ *evaluation, args []any) (any, error) { return f(args[0]) }
}

// pure makes one of an operator of the language.
func pure(f func(a, b any) any) operation {
	return func(_ *evaluation, args []any) (any, error) { return f(args[0], args[1]), nil }
}

// textIn makes one of an operator on a text and a part of it, which have been admitted.
func textIn(f func(text, part string) bool) operation {
	return func(_ *evaluation, args []any) (any, error) { return f(textAt(args, 0), textAt(args, 1)), nil }
}

func join(_ *evaluation, args []any) (any, error) {
	list := asList(args[0])
	texts := make([]string, len(list))
	for i, element := range list {
		text, ok := element.(string)
		if !ok {
			return nil, errors.New("join() needs a list of strings")
		}
		texts[i] = text
	}
	return strings.Join(texts, textAt(args, 1)), nil
}

func length(_ *evaluation, args []any) (any, error) {
	if isLazy(args[0]) {
		return nil, errTooMany
	}
	return original("len", args)
}

// typeName is what the language calls the type of a value.
func typeName(_ *evaluation, args []any) (any, error) {
	if isObject(args[0]) {
		return "map", nil
	}
	return original("type", args)
}

var errNoOrder = errors.New(`the order of sort() is "asc" or "desc"`)

func sortList(_ *evaluation, args []any) (any, error) {
	if len(args) == 2 && args[1] != "asc" && args[1] != "desc" {
		return nil, errNoOrder // the language's own error shows it
	}
	return original("sort", args)
}

// span is the range operator.
func span(_ *evaluation, args []any) (any, error) {
	from, size := runtime.ToInt(args[0]), spanLength(args)
	list := make([]any, size)
	for i := range list {
		list[i] = from + i
	}
	return list, nil
}

// matchingOf looks for a pattern of the program in a text.
func matchingOf(p pattern) metered {
	work := func(args []any) price {
		size := len(textAt(args, 0))
		return price{300 + size*(20+8*p.length), min(size*p.length/8, 32<<10)}
	}
	return metered{"T", prices{work}, func(_ *evaluation, args []any) (any, error) {
		return p.regexp.MatchString(textAt(args, 0)), nil
	}}
}

// naming pays for a computed name of a new object.
var naming = metered{"t", prices{perByte(1, 0)}, func(_ *evaluation, args []any) (any, error) { return args[0], nil }} //nolint:gochecknoglobals // it is only read

// sliced refuses what is neither a text nor a list: the language's own error shows a bound.
func sliced(_ *evaluation, args []any) (any, error) {
	switch args[0].(type) {
	case string, []any, []string, []int:
		return args[0], nil
	}
	return nil, fmt.Errorf("%s cannot be sliced, only a string or a list", describe(args[0]))
}

// looping pays for all turns of a loop when it begins. A loop may end early, and has then
// paid too much: what is refused must not depend on where it ends.
func looping(turn price) operation {
	return func(e *evaluation, args []any) (any, error) {
		return args[0], e.pay(turn.times(len(asList(args[0]))))
	}
}

// sorting pays for comparing one of the values that a list is sorted by.
func sorting(e *evaluation, args []any) (any, error) {
	return args[0], e.pay(perByte(3, 0)(args))
}
