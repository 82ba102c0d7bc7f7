package keyexpr

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/expr-lang/expr/vm/runtime"
)

var errTooMany = errors.New("has more than " + strconv.Itoa(maxCollection) + " entries")

func equal(e *evaluation, args []any) (any, error) { return e.same(args[0], args[1]) }

func unequal(e *evaluation, args []any) (any, error) {
	equal, err := e.same(args[0], args[1])
	return !equal, err
}

// compared is an operator of order.
func compared(f func(a, b any) bool) operation {
	return func(e *evaluation, args []any) (any, error) {
		if err := e.pay(comparisonPrice(args[0], args[1])); err != nil {
			return nil, err
		}
		return f(args[0], args[1]), nil
	}
}

// comparisonPrice is that of comparing two values, without what is in lists and objects:
// all of the smaller text, which might be equal.
func comparisonPrice(a, b any) price {
	x, textX := a.(string)
	y, textY := b.(string)
	switch {
	case textX && textY:
		return price{min(len(x), len(y)) / 8, 0}
	case isObject(a) || isObject(b):
		return price{500, 256}
	case isList(a) || isList(b):
		return price{300, 128}.plus(price{60, 32}.times(len(asList(a)) + len(asList(b))))
	}
	return readingPrice(a).plus(readingPrice(b))
}

// readingPrice is that of finding out what number a text or a long integer is, which
// only comparing it with a number does.
func readingPrice(v any) price {
	switch x := v.(type) {
	case string:
		return price{numberPrice(x), 0}
	case json.Number: // the errors that tell how long it is have copies of it
		return price{numberPrice(x.String()), 6 * len(x)}
	}
	return price{}
}

// in looks for a value in a list, or for a name in an object.
func in(e *evaluation, args []any) (any, error) {
	needle, where := args[0], args[1]
	switch {
	case where == nil:
		return false, nil
	case isObject(where):
		return e.inObject(needle, where)
	case !isList(where):
		return runtime.In(needle, where), nil // an error
	}
	return e.among(asList(where), needle)
}

// among looks for a value in a list.
func (e *evaluation) among(list []any, needle any) (bool, error) {
	for _, element := range list {
		if err := e.pay(price{50, 0}); err != nil {
			return false, err
		}
		if equal, err := e.same(element, needle); equal || err != nil {
			return equal, err
		}
	}
	return false, nil
}

func (e *evaluation) inObject(needle, object any) (any, error) {
	if needle == nil {
		return false, nil
	}
	name, ok := needle.(string)
	if !ok {
		return nil, fmt.Errorf("needs a string, not %s", describe(needle))
	}
	if err := e.pay(price{200 + 10*len(name), 64 + 2*len(name)}); err != nil {
		return nil, err
	}
	_, found, _ := lookUp(object, name)
	return found, nil
}
