package keyexpr

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/expr-lang/expr/vm/runtime"
)

var (
	errObjects = errors.New("objects of JSON are not compared, because a handler may take different ones for the same; compare their fields")
	errAlike   = errors.New("a text is compared with a number or a bool that reads like it, and handlers disagree about whether these are " +
		"the same; write string(…) for both")
)

// same is what == means; it pays for what it looks at. Two answers are refused because
// handlers disagree about them: whether objects of JSON are equal, whose names count in
// any case for some, and whether 42 and "42" are, which json.Number reads alike.
func (e *evaluation) same(a, b any) (bool, error) {
	a, b = normalize(a), normalize(b)
	if err := e.pay(comparisonPrice(a, b)); err != nil {
		return false, err
	}
	if isObject(a) && isObject(b) {
		return e.sameObjects(a, b)
	}
	if isList(a) && isList(b) {
		return e.sameLists(asList(a), asList(b))
	}
	if text, ok := a.(string); ok {
		return sameText(text, b)
	}
	if text, ok := b.(string); ok {
		return sameText(text, a)
	}
	if isNumber, equal := sameNumbers(a, b); isNumber {
		return equal, nil
	}
	return runtime.Equal(a, b), nil
}

// sameNumbers compares integers exactly, and others as the floats that they are.
func sameNumbers(a, b any) (areNumbers, equal bool) {
	x, okX := numberOf(a)
	y, okY := numberOf(b)
	if !okX || !okY {
		return false, false
	}
	_, floatX := a.(float64)
	_, floatY := b.(float64)
	if floatX || floatY {
		return true, x == y
	}
	return true, a == b
}

// sameText compares a text with anything.
func sameText(text string, v any) (bool, error) {
	switch x := v.(type) {
	case string:
		return text == x, nil
	case bool:
		if text == strconv.FormatBool(x) {
			return false, errAlike
		}
	}
	if n, ok := numberOf(v); ok && readsLike(text, n) {
		return false, errAlike
	}
	return false, nil
}

// readsLike reports whether a text may be read as the number. It may say so of numbers
// that are very close. A text that is no decimal number is no number for any handler.
func readsLike(text string, number float64) bool {
	if !isDecimal(text) {
		return false
	}
	read, err := strconv.ParseFloat(text, 64)
	return read == number && (err == nil || errors.Is(err, strconv.ErrRange))
}

// numberOf is the float next to a number.
func numberOf(v any) (number float64, ok bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, true
	case json.Number:
		number, _ = strconv.ParseFloat(n.String(), 64) //nolint:errcheck // out of range is infinite
		return number, true
	}
	return 0, false
}

func isObject(v any) bool {
	switch v.(type) {
	case jsonObject, map[string]any, lazyMap:
		return true
	}
	return false
}

func (e *evaluation) sameObjects(a, b any) (bool, error) {
	x, okX := a.(map[string]any)
	y, okY := b.(map[string]any)
	switch {
	case isLazy(a) || isLazy(b):
		return false, errTooMany
	case !okX || !okY:
		return false, errObjects
	}
	equal := len(x) == len(y)
	for name, value := range x {
		if err := e.pay(price{300 + len(name), 128}); err != nil {
			return false, err
		}
		other, found := y[name]
		equal = equal && found
		if !found {
			continue
		}
		same, err := e.same(value, other)
		if err != nil {
			return false, err
		}
		equal = equal && same
	}
	return equal, nil
}

func isLazy(v any) bool {
	_, lazy := v.(lazyMap)
	return lazy
}

// sameLists looks at all elements: what is refused must not depend on where the lists
// differ.
func (e *evaluation) sameLists(x, y []any) (bool, error) {
	equal := len(x) == len(y)
	for i := range min(len(x), len(y)) {
		same, err := e.same(x[i], y[i])
		if err != nil {
			return false, err
		}
		equal = equal && same
	}
	return equal, nil
}
