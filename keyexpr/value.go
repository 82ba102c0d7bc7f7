package keyexpr

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
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
		return FromJSONNumber(n)
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

// FromJSONNumber converts a number to the form [AnyType] describes: int where
// it fits, then uint64, the exact text of a longer integer, and nil for the empty
// text. A number with a fraction or exponent is a float64, an infinite one where it
// is out of range, and so is -0. That keeps them out of keys: a handler that reads
// the number 5.0 as json.Number sees what it sees in the string "5.0", another one
// sees 5, and only one of them can be the key.
func FromJSONNumber(n json.Number) any {
	text := n.String()
	if text == "" {
		return nil
	}
	if strings.ContainsAny(text, ".eE") || text == "-0" {
		f, _ := strconv.ParseFloat(text, 64) //nolint:errcheck // out of range is infinite
		return f
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return int(i)
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u
	}
	return n
}

// fromFloat makes an integer of a float that is one exactly. A Go value has no
// other text than that of its number, be it that its decoder made floats of all
// numbers, as those of claims do. From 2^53 on it may have been another integer.
func fromFloat(f float64) any {
	if f != math.Trunc(f) || math.Abs(f) >= 1<<53 || f == 0 && math.Signbit(f) {
		return f
	}
	return int(f)
}

// FromJSON converts a value decoded by encoding/json, best with UseNumber, to the
// form [AnyType] describes; without UseNumber, integers from 2^53 on are floats and
// no key parts. Maps and slices are copied: the value may be shared, and is never changed.
func FromJSON(v any) any {
	room := math.MaxInt
	return convert(fromInterface(v), &room)
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
