package keyexpr

import (
	"fmt"
	"strings"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/vm/runtime"
)

// meteredFunction does the work of a builtin or an operator whose cost depends on its
// operands, and pays for it first. Its error is that of the expression.
type meteredFunction func(e *evaluation, args []any) (any, error)

// meteredFunctions are by the names of the builtins and operators that they take the
// place of; loop and sorted belong to loops.
var meteredFunctions = map[string]meteredFunction{ //nolint:gochecknoglobals // a table that is only read
	"loop": beginLoop, "sorted": sortedBy,

	"+": add, "==": equal, "!=": unequal, "in": in, "..": span,
	"<": compare(runtime.Less), "<=": compare(runtime.LessOrEqual), ">": compare(runtime.More), ">=": compare(runtime.MoreOrEqual),
	"contains": unlessNil(textIn(search, strings.Contains)), "matches": matches,
	"startsWith": unlessNil(textIn(ends, strings.HasPrefix)), "endsWith": unlessNil(textIn(ends, strings.HasSuffix)),

	"hasPrefix": textIn(ends, strings.HasPrefix), "hasSuffix": textIn(ends, strings.HasSuffix),
	"indexOf": textIn(search, strings.Index), "lastIndexOf": textIn(search, strings.LastIndex),
	"trim": trim, "trimPrefix": orSpace(textIn(ends, strings.TrimPrefix)), "trimSuffix": orSpace(textIn(ends, strings.TrimSuffix)),
	"upper": recase(strings.ToUpper), "lower": recase(strings.ToLower),
	"split": cut(strings.SplitN), "splitAfter": cut(strings.SplitAfterN), "replace": replace, "join": join,
	"toBase64": toBase64, "fromBase64": fromBase64, "len": length, "type": typeName,
	"string": ofText(lengthPrice, ownString), "int": ofText(lengthPrice, ownInt), "float": ofText(numberPrice, ownFloat),

	"keys": keysOf, "values": ofMap(ownValues),
	"uniq": uniq, "flatten": flatten, "concat": concat, "reverse": reverse, "sort": sortList,
	"max": aggregate("max", price{}), "min": aggregate("min", price{}), "mean": aggregate("mean", price{}), "median": aggregate("median", price{20, 32}),
}

// original calls the language's own builtin, which has been paid for.
func original(name string, args []any) (any, error) {
	f := builtin.Builtins[builtin.Index[name]]
	switch {
	case f.Safe != nil:
		v, _, err := f.Safe(args...)
		return v, err
	case f.Func != nil:
		return f.Func(args...)
	}
	return f.Fast(args[0]), nil
}

// argument is an argument of a type, or an error that does not show it.
func argument[T any](args []any, i int, noun string) (T, error) {
	var none T
	if i >= len(args) {
		return none, fmt.Errorf("%s is missing", noun)
	}
	v, ok := args[i].(T)
	if !ok {
		return none, fmt.Errorf("needs %s, not %s", noun, describe(args[i]))
	}
	return v, nil
}

func textArgument(args []any, i int) (string, error) { return argument[string](args, i, "a string") }
