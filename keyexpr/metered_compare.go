package keyexpr

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/expr-lang/expr/vm/runtime"
)

func equal(e *evaluation, args []any) (any, error) {
	if err := e.payComparison(args[0], args[1]); err != nil {
		return nil, err
	}
	return same(args[0], args[1])
}

func unequal(e *evaluation, args []any) (any, error) {
	if err := e.payComparison(args[0], args[1]); err != nil {
		return nil, err
	}
	equal, err := same(args[0], args[1])
	return !equal, err
}

// compare is an operator of order.
func compare(f func(a, b any) bool) meteredFunction {
	return func(e *evaluation, args []any) (any, error) {
		if err := e.payComparison(args[0], args[1]); err != nil {
			return nil, err
		}
		return f(args[0], args[1]), nil
	}
}

// payComparison pays for comparing two values: all of the smaller text, or all of a
// list or an object, which might be equal.
func (e *evaluation) payComparison(a, b any) error {
	if _, lazy := b.(lazyMap); lazy {
		return errTooMany
	}
	x, textX := a.(string)
	y, textY := b.(string)
	switch {
	case textX && textY:
		return e.spend(min(len(x), len(y))/8, 0)
	case isScalar(a) || isScalar(b):
		cost := readingPrice(a).plus(readingPrice(b))
		return e.spend(cost.work, cost.bytes)
	}
	if err := e.payWhole(a); err != nil {
		return err
	}
	return e.payWhole(b)
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

func isScalar(v any) bool {
	switch v.(type) {
	case nil, bool, int, float64, string, uint64, json.Number:
		return true
	}
	return false
}

// payWhole pays for looking at all of a value, which for objects is done by
// reflection.
func (e *evaluation) payWhole(v any) error {
	switch x := v.(type) {
	case string:
		return e.spend(40+len(x)/8+numberPrice(x), 0)
	case json.Number:
		cost := readingPrice(x)
		return e.spend(40+cost.work, cost.bytes)
	case lazyMap:
		return errTooMany
	case map[string]any:
		if err := e.spend(500, 256); err != nil {
			return err
		}
		for name, value := range x {
			if err := e.spend(300+len(name), 128); err != nil {
				return err
			}
			if err := e.payWhole(value); err != nil {
				return err
			}
		}
		return nil
	}
	if isList(v) {
		if err := e.spend(300, 128); err != nil {
			return err
		}
		return each(v, e.payWhole)
	}
	return e.spend(100, 32)
}

// in looks for a value in a list, or for a name in an object.
func in(e *evaluation, args []any) (any, error) {
	needle, where := args[0], args[1]
	switch {
	case where == nil:
		return false, nil
	case isObject(where):
		return inObject(e, needle, where)
	case reflect.TypeOf(where).Kind() == reflect.Map: // of literals, made by the optimizer
		text, _ := needle.(string) //nolint:errcheck // other names are short
		if err := e.spend(100+len(text)/2, 16); err != nil {
			return nil, err
		}
		return runtime.In(needle, where), nil
	case !isList(where):
		return runtime.In(needle, where), nil // an error
	}
	for i, list := 0, reflect.ValueOf(where); i < list.Len(); i++ {
		element := list.Index(i).Interface()
		if err := e.spend(30, 16); err != nil {
			return nil, err
		}
		if err := e.payComparison(element, needle); err != nil {
			return nil, err
		}
		if equal, err := same(element, needle); equal || err != nil {
			return equal, err
		}
	}
	return false, nil
}

var errTooMany = errors.New("has more than " + strconv.Itoa(maxCollection) + " entries")

func inObject(e *evaluation, needle, object any) (any, error) {
	if needle == nil {
		return false, nil
	}
	name, err := argument[string]([]any{needle}, 0, "a string")
	if err != nil {
		return nil, err
	}
	if err := e.spend(200+10*len(name), 64+2*len(name)); err != nil {
		return nil, err
	}
	_, found, _ := lookUp(object, name)
	return found, nil
}

// typeName is what the language calls the type of a value.
func typeName(_ *evaluation, args []any) (any, error) {
	if isObject(args[0]) {
		return "map", nil
	}
	return original("type", args)
}

// seen are the values that uniq has met. Their texts are their identity, as in keys.
type seen struct {
	simple map[any]struct{}
	others []any
}

func newSeen() *seen { return &seen{simple: map[any]struct{}{}} }

// add notes a value and reports whether an equal one was there.
func (s *seen) add(e *evaluation, v any) (known bool, err error) {
	if key, ok := simpleKey(v); ok {
		switch x := v.(type) {
		case string:
			err = e.spend(len(x), 0)
		case json.Number:
			err = e.spend(2*len(x), len(x))
		}
		_, known = s.simple[key]
		s.simple[key] = struct{}{}
		return known, err
	}
	for _, other := range s.others {
		if err := e.spend(50, 0); err != nil {
			return false, err
		}
		if err := e.payComparison(other, v); err != nil {
			return false, err
		}
		if equal, err := same(other, v); equal || err != nil {
			return equal, err
		}
	}
	s.others = append(s.others, v)
	return false, nil
}

// simpleKey is what equal values that can be looked up have in common.
func simpleKey(v any) (key any, ok bool) {
	switch x := v.(type) {
	case nil, string:
		return v, true
	case bool, int, uint64, json.Number:
		return fmt.Sprint(x), true
	case float64:
		if i := int(x); float64(i) == x && i > math.MinInt && i < math.MaxInt {
			return strconv.Itoa(i), true
		}
		return strconv.FormatFloat(x, 'g', -1, 64), true
	}
	return nil, false
}
