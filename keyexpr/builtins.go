package keyexpr

import (
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"
)

// signature says how the resolver treats a builtin of the language.
type signature struct {
	args       argMode
	collection bool // the first argument is a list
	result     resultKind
}

type argMode uint8

const (
	argValue argMode = iota // operands of a computation
	argSame                 // the result is made of the arguments
)

type resultKind uint8

const (
	resultUnknown resultKind = iota
	resultString
	resultBool
	resultInt
	resultFloat
	resultStrings
	resultSame     // the type of the first argument
	resultElement  // an element of the first argument
	resultMapped   // a list of what the predicate returns
	resultUnified  // the common type of the arguments
	resultAnything // a list of anything
)

// signatures are the builtins that expressions may use. The others are off:
// now, date, duration and timezone are impure; keys, values and toPairs have no
// order (there are own ones of the first two); get, toJSON and fromJSON lose the
// static types or exact numbers; repeat and reduce build arbitrarily long texts.
var signatures = map[string]signature{ //nolint:gochecknoglobals // a table that is only read
	"map": {argSame, true, resultMapped}, "filter": {argSame, true, resultSame}, "sortBy": {argSame, true, resultSame},
	"find": {argSame, true, resultElement}, "findLast": {argSame, true, resultElement},
	"findIndex": {argValue, true, resultInt}, "findLastIndex": {argValue, true, resultInt},
	"all": {argValue, true, resultBool}, "any": {argValue, true, resultBool}, "one": {argValue, true, resultBool}, "none": {argValue, true, resultBool},
	"count": {argValue, true, resultInt}, "sum": {argValue, true, resultUnknown},

	"first": {argSame, true, resultElement}, "last": {argSame, true, resultElement}, "take": {argSame, true, resultSame},
	"reverse": {argSame, true, resultSame}, "uniq": {argSame, true, resultSame}, "sort": {argSame, true, resultSame},
	"concat": {argSame, true, resultUnified}, "flatten": {argSame, true, resultAnything}, "join": {argSame, true, resultString},

	"trim": {argSame, false, resultString}, "trimPrefix": {argSame, false, resultString}, "trimSuffix": {argSame, false, resultString},
	"upper": {argSame, false, resultString}, "lower": {argSame, false, resultString}, "replace": {argSame, false, resultString},
	"split": {argSame, false, resultStrings}, "splitAfter": {argSame, false, resultStrings},
	"toBase64": {argSame, false, resultString}, "fromBase64": {argSame, false, resultString},
	"hasPrefix": {argValue, false, resultBool}, "hasSuffix": {argValue, false, resultBool},
	"indexOf": {argValue, false, resultInt}, "lastIndexOf": {argValue, false, resultInt}, "len": {argValue, false, resultInt},

	"abs": {argValue, false, resultUnified}, "max": {argValue, false, resultUnified}, "min": {argValue, false, resultUnified},
	"ceil": {argValue, false, resultFloat}, "floor": {argValue, false, resultFloat}, "round": {argValue, false, resultFloat},
	"float": {argValue, false, resultFloat}, "mean": {argValue, true, resultFloat}, "median": {argValue, true, resultFloat},
	"type":   {argValue, false, resultString},
	"bitand": {argValue, false, resultInt}, "bitor": {argValue, false, resultInt}, "bitxor": {argValue, false, resultInt},
	"bitnand": {argValue, false, resultInt}, "bitshl": {argValue, false, resultInt}, "bitshr": {argValue, false, resultInt},
	"bitushr": {argValue, false, resultInt}, "bitnot": {argValue, false, resultInt},
}

// offReasons says why a builtin is off, for those that people ask for.
var offReasons = map[string]string{ //nolint:gochecknoglobals // a table that is only read
	"now": "one request must always have the same key", "date": "it depends on the server's time zone",
	"duration": "it is no key part", "timezone": "it depends on the server",
	"toPairs": "its order changes from call to call", "fromPairs": "it is no key part",
	"get": "write value[\"name\"]", "toJSON": "write the fields that identify the lock", "fromJSON": "it loses exact numbers",
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
