package keyexpr

import (
	"encoding/json"
	"iter"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// normalize gives integers, floats and lists the one Go type that expressions compute
// with. An unsigned integer that does not fit stays as it is.
func normalize(v any) any {
	switch n := v.(type) {
	case nil, string, bool, int, float64, []any, map[string]any:
		return v
	case int64, int32, int16, int8:
		return int(reflect.ValueOf(n).Int())
	case uint64, uint32, uint16, uint8, uint, uintptr:
		return fromUint(reflect.ValueOf(n).Uint())
	case float32:
		return float64(n)
	case json.Number:
		return fromJSONNumber(n)
	case time.Time:
		return fromTime(n)
	case []string:
		return boxed(n)
	case []int:
		return boxed(n)
	}
	return v
}

func boxed[T any](values []T) []any {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
	}
	return list
}

func fromUint(n uint64) any {
	if n > math.MaxInt {
		return n
	}
	return int(n)
}

// fromJSONNumber converts a number to the form [AnyType] describes: int where
// it fits, then uint64, the exact text of a longer integer, and nil for the empty
// text. A number with a fraction or exponent is a float64, an infinite one where it
// is out of range, and so is -0. That keeps them out of keys: a handler that reads
// the number 5.0 as json.Number sees what it sees in the string "5.0", another one
// sees 5, and only one of them can be the key.
func fromJSONNumber(n json.Number) any {
	text := n.String()
	if text == "" {
		return nil
	}
	if strings.ContainsAny(text, ".eE") || text == "-0" {
		f, _ := strconv.ParseFloat(text, 64) //nolint:errcheck // out of range is infinite
		return f
	}
	if len(text) > maxInteger {
		return n
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return int(i)
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u
	}
	return n
}

// maxInteger is the most characters of an integer of 64 bits.
const maxInteger = 20

// fromFloat makes an integer of a float that is one exactly. A Go value has no
// other text than that of its number, be it that its decoder made floats of all
// numbers, as those of claims do. From 2^53 on it may have been another integer.
func fromFloat(f float64) any {
	if f != math.Trunc(f) || math.Abs(f) >= 1<<53 || f == 0 && math.Signbit(f) {
		return f
	}
	return int(f)
}

// describe names the kind of a value for messages, never the value.
func describe(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a bool"
	case int, uint64, json.Number:
		return "an integer"
	case float64:
		return "a number with a fraction or exponent"
	case []any, lazyList:
		return "a list"
	case []byte:
		return "bytes"
	}
	return "an object"
}

// LazyList returns a list of n elements for an [Env] or the Get of a [Field] that has
// to convert them. Only those that an expression uses are asked for, all of them if it
// uses the list.
func LazyList(n int, at func(i int) any) any { return lazyList{n, at} }

// LazyMap returns a map of n entries likewise. An expression takes an entry, asks for one
// with in, or lists the names.
func LazyMap(n int, entry func(name string) (value any, found bool), all iter.Seq2[string, any]) any {
	return lazyMap{n, entry, all}
}

type lazyList struct {
	n  int
	at func(int) any
}

type lazyMap struct {
	n     int
	entry func(string) (any, bool)
	all   iter.Seq2[string, any]
}

// fromInterface returns the form of the value in a Go interface. Lists and maps of
// encoding/json are converted lazily. A value of another Go type has the form that it has in
// a field of that type.
func fromInterface(v any) any {
	switch x := v.(type) {
	case float64:
		return fromFloat(x)
	case float32:
		return fromFloat(float64(x))
	case []any:
		return LazyList(len(x), func(i int) any { return fromInterface(x[i]) })
	case map[string]any:
		return lazyDocument(x)
	}
	switch n := normalize(v).(type) {
	case nil, string, bool, int, uint64, json.Number, []any, jsonObject, lazyList, lazyMap:
		return n
	default: // a pointer to an interface is left alone, because it may lead back to itself
		if g, err := goTypeOf(reflect.TypeOf(n), goNames, 0); err == nil && g.typ.kind != kindAny {
			return g.value(reflect.ValueOf(n))
		}
		return n
	}
}

func lazyDocument(m map[string]any) any {
	entry := func(name string) (any, bool) {
		v, found := m[name]
		return fromInterface(v), found
	}
	return LazyMap(len(m), entry, func(yield func(string, any) bool) {
		for name, v := range m {
			if !yield(name, fromInterface(v)) {
				return
			}
		}
	})
}

// whole converts a lazy list that an expression uses as it is. What its elements have inside
// stays lazy.
func whole(v any, text string) any {
	lazy, ok := v.(lazyList)
	switch {
	case !ok:
		return v
	case lazy.n > maxCollection:
		panic(tooMany(text))
	}
	list := make([]any, lazy.n)
	for i := range list {
		list[i] = normalize(lazy.at(i))
	}
	return list
}

func tooMany(subject string) *EvalError {
	return failed(ReasonTooMany, subject, "has more than "+strconv.Itoa(maxCollection)+" elements")
}
