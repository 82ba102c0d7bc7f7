package keyexpr

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// normalize converts integers, floats, lists and times to the one Go type that expressions compute
// with. An unsigned integer that does not fit an int, and a value of another type, stay as they are.
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
		return timeText(n)
	case []string:
		return box(n)
	case []int:
		return box(n)
	}
	return v
}

func box[T any](values []T) []any {
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

// maxInteger is the number of characters in the longest integer of 64 bits.
const maxInteger = 20

// fromJSONNumber converts a number to the form that [AnyType] describes. An integer becomes an
// int if it fits, otherwise a uint64, and otherwise keeps its text. The empty text becomes nil.
//
// A number with a fraction or an exponent becomes a float64, and so does -0. A number out of
// range becomes infinite. Floats cannot be part of a key, because handlers disagree about their
// text: 5.0 is "5.0" for a handler that reads a json.Number, and 5 for others.
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

// fromFloat converts a float that is exactly an integer to that integer. The decoder of a Go
// value, such as a claim, may decode all numbers into floats. From 2^53 on, the float may stand
// for several integers and stays a float.
func fromFloat(f float64) any {
	if f != math.Trunc(f) || math.Abs(f) >= 1<<53 || f == 0 && math.Signbit(f) {
		return f
	}
	return int(f)
}

// numberOf converts an int or a float64 to a float64.
func numberOf(v any) (number float64, ok bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// scalarText returns the text of a string, a bool or an integer. It returns a string as the same
// interface value, which saves an allocation.
func scalarText(v any) (text any, ok bool) {
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

// describe names the kind of a value for messages. It never shows the value.
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

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}

func isObject(v any) bool {
	switch v.(type) {
	case nil, string, bool, int, uint64, float64, json.Number, []any:
		return false
	}
	return true
}

// LazyList returns a list of n elements for an [Env], or for the Get of a [Field], that has to
// convert its elements. An expression converts only the elements that it uses, and all of them
// if it uses the list as a whole.
func LazyList(n int, at func(i int) any) any { return lazyList{n, at} }

// LazyMap returns a map of n entries that are converted one by one, as in a [LazyList]. An
// expression looks up an entry, asks with in whether a name exists, or lists the names.
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

// whole converts a lazy list and returns other values unchanged. Lists and maps inside the
// elements stay lazy. text names the value in the panic of a list that is too long.
func whole(v any, text string) any {
	lazy, ok := v.(lazyList)
	switch {
	case !ok:
		return v
	case lazy.n > maxCollection:
		panic(tooManyError(text))
	}
	list := make([]any, lazy.n)
	for i := range list {
		list[i] = normalize(lazy.at(i))
	}
	return list
}

// elementAt returns an element of a list, or nil if the index is out of range. A negative index
// counts from the end. ok is false if v is not a list.
func elementAt(v any, index int) (element any, ok bool) {
	var length int
	var at func(i int) any
	switch list := normalize(v).(type) {
	case []any:
		length, at = len(list), func(i int) any { return list[i] }
	case lazyList:
		length, at = list.n, list.at
	default:
		return nil, false
	}
	if index < 0 {
		index += length
	}
	if index < 0 || index >= length {
		return nil, true
	}
	return normalize(at(index)), true
}

// lookUp returns the value that an object has under a name. ok is false if object is not an object.
func lookUp(object any, name string) (value any, found, ok bool) {
	switch o := object.(type) {
	case jsonObject:
		var m member
		m, found = o[foldName(name)]
		return m.value, found, true
	case map[string]any:
		value, found = o[name]
		return value, found, true
	case lazyMap:
		value, found = o.entry(name)
		return value, found, true
	}
	return nil, false, false
}

// conversionCost returns the cost of converting the value, as the number of bytes of text that
// take as long to process.
func conversionCost(v any) int {
	size := 4
	switch v := v.(type) {
	case string:
		return len(v)
	case json.Number:
		return len(v)
	case []any:
		for _, element := range v {
			size += conversionCost(element)
		}
	}
	return size
}

// jsonObject is a JSON object as a client sent it. See [DecodeJSON]. Its keys are folded names.
//
// A handler with encoding/json reads ID, Id and even a name with the Kelvin sign into its field
// id, and this package does not know the fields of the handler. Therefore expressions see only
// the folded names of an object.
type jsonObject map[string]member

// MarshalJSON implements [json.Marshaler]. It returns the object as the client sent it, for
// programs that show a request.
func (o jsonObject) MarshalJSON() ([]byte, error) {
	sent := make(map[string]any, len(o))
	for _, m := range o {
		sent[m.name] = m.value
	}
	return json.Marshal(sent)
}

// member is the value of a name in a JSON object, and the name as the client sent it.
type member struct {
	name  string
	value any
}

// foldName maps all names that encoding/json reads into the same field to one of them, in lower case.
func foldName(name string) string {
	for i := range len(name) {
		if c := name[i]; 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf {
			return strings.Map(foldRune, name)
		}
	}
	return name
}

// foldRune maps all characters that differ only in case to one of them. The result is the lower
// case of the least such character, because σ and ς have one upper case. If encoding/json takes
// that lower case for another character, as for İ, the result is the least character itself.
func foldRune(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	lower := unicode.ToLower(least)
	for f := unicode.SimpleFold(least); f != least; f = unicode.SimpleFold(f) {
		if f == lower {
			return lower
		}
	}
	return least
}
