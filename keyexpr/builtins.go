package keyexpr

import (
	"reflect"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"
)

// signature says how the resolver treats a builtin of the language.
type signature struct {
	args       argMode
	collection bool                   // the first argument is a list
	result     func(args []Type) Type // nil is what the language says
}

type argMode uint8

const (
	argValue argMode = iota // operands of a computation
	argSame                 // the result is made of the arguments
	argText                 // the result is the text of the argument
)

// signatures are the builtins that expressions may use. The others are off:
// now, date, duration and timezone are impure; toPairs has no order; get, toJSON and
// fromJSON lose the static types or exact numbers; repeat and reduce build arbitrarily long texts;
// findLast and findLastIndex leave values behind on the stack of the machine, so that
// what follows them takes those for its operands (expr-lang/expr#950).
var signatures = map[string]signature{ //nolint:gochecknoglobals // a table that is only read
	"map": {argSame, true, mappedType}, "filter": {argSame, true, sameType}, "sortBy": {argSame, true, sameType},
	"find": {argSame, true, elementType}, "findIndex": {argValue, true, nil},
	"all": {argValue, true, nil}, "any": {argValue, true, nil}, "one": {argValue, true, nil}, "none": {argValue, true, nil},
	"count": {argValue, true, nil}, "sum": {argValue, true, nil},

	"first": {argSame, true, elementType}, "last": {argSame, true, elementType}, "take": {argSame, true, sameType},
	"reverse": {argSame, true, sameType}, "uniq": {argSame, true, sameType}, "sort": {argSame, true, sameType},
	"concat": {argSame, true, unifiedType}, "flatten": {argSame, true, nil}, "join": {argSame, true, nil},

	"trim": {argSame, false, nil}, "trimPrefix": {argSame, false, nil}, "trimSuffix": {argSame, false, nil},
	"upper": {argSame, false, nil}, "lower": {argSame, false, nil}, "replace": {argSame, false, nil},
	"split": {argSame, false, nil}, "splitAfter": {argSame, false, nil},
	"toBase64": {argSame, false, nil}, "fromBase64": {argSame, false, nil},
	"string": {argText, false, textType}, "int": {argValue, false, nil},
	"keys": {argValue, false, namesType}, "values": {argValue, false, nil},
	"hasPrefix": {argValue, false, nil}, "hasSuffix": {argValue, false, nil},
	"indexOf": {argValue, false, nil}, "lastIndexOf": {argValue, false, nil}, "len": {argValue, false, nil},

	"abs": {argValue, false, nil}, "max": {argValue, false, numberType}, "min": {argValue, false, numberType},
	"ceil": {argValue, false, nil}, "floor": {argValue, false, nil}, "round": {argValue, false, nil},
	"float": {argValue, false, nil}, "mean": {argValue, true, averageType}, "median": {argValue, true, averageType},
	"type":   {argValue, false, nil},
	"bitand": {argValue, false, nil}, "bitor": {argValue, false, nil}, "bitxor": {argValue, false, nil},
	"bitnand": {argValue, false, nil}, "bitshl": {argValue, false, nil}, "bitshr": {argValue, false, nil},
	"bitushr": {argValue, false, nil}, "bitnot": {argValue, false, nil},
}

// accepted are the types that a builtin takes where it is stricter than the language.
var accepted = map[string][]kind{ //nolint:gochecknoglobals // a table that is only read
	"string": {kindString, kindBool, kindInt, kindAny}, "int": {kindString, kindInt, kindFloat, kindAny},
	"keys": {kindMap, kindAny}, "values": {kindMap, kindAny},
}

// offReasons says why a builtin is off, for those that people ask for.
var offReasons = map[string]string{ //nolint:gochecknoglobals // a table that is only read
	"now": "one request must always have the same key", "date": "it depends on the server's time zone",
	"duration": "it is no key part", "timezone": "it depends on the server",
	"toPairs": "its order changes from call to call", "fromPairs": "it is no key part",
	"get": "write value[\"name\"]", "toJSON": "write the fields that identify the lock", "fromJSON": "it loses exact numbers",
	"findLast": "write find(reverse(…), …)", "findLastIndex": "write findIndex(reverse(…), …), which counts from the end",
	"repeat": "it makes keys of any length", "reduce": "it makes keys of any length", "groupBy": "its order changes from call to call",
}

// limitBuiltins turns off what has no signature.
func limitBuiltins(c *conf.Config) {
	for _, f := range builtin.Builtins {
		if _, ok := signatures[f.Name]; !ok {
			c.Disabled[f.Name] = true
			delete(c.Builtins, f.Name)
		}
	}
}

func sameType(args []Type) Type { return args[0] }

func textType(args []Type) Type {
	if len(args) > 0 && args[0].kind == kindString {
		return args[0]
	}
	return StringType()
}

func elementType(args []Type) Type { return args[0].element() }

func mappedType(args []Type) Type { return ListType(args[len(args)-1]) }

func unifiedType(args []Type) Type {
	typ := args[0]
	for _, a := range args[1:] {
		typ = unify(typ, a)
	}
	return typ
}

// numberType is that of one of the arguments, or of their elements, which have none.
func numberType(args []Type) Type {
	if typ := unifiedType(args); typ.kind == kindInt || typ.kind == kindFloat {
		return typ
	}
	return AnyType()
}

func averageType([]Type) Type { return FloatType() }

func namesType([]Type) Type { return ListType(StringType()) }

// languageResult is the type of what a builtin of the language yields. What it cannot
// take is reported by the language's checker.
func languageResult(name string, args []Type) Type {
	f := builtin.Builtins[builtin.Index[name]]
	if len(f.Types) > 0 {
		return fromGoType(f.Types[0].Out(0))
	}
	given := make([]reflect.Type, len(args))
	for i, a := range args {
		given[i] = a.goType()
	}
	result, err := f.Validate(given)
	if err != nil {
		return AnyType()
	}
	return fromGoType(result)
}

// fromGoType is the type of what has a Go type in the machine.
func fromGoType(t reflect.Type) Type {
	switch t.Kind() {
	case reflect.String:
		return StringType()
	case reflect.Bool:
		return BoolType()
	case reflect.Int:
		return IntType()
	case reflect.Float64:
		return FloatType()
	case reflect.Slice:
		return ListType(fromGoType(t.Elem()))
	case reflect.Map:
		return MapType(AnyType())
	}
	return AnyType()
}
