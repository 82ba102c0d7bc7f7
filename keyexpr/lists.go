package keyexpr

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"github.com/expr-lang/expr/vm/runtime"
)

// asList is a value as a list, nil for what is none.
func asList(v any) []any {
	list, _ := v.([]any) //nolint:errcheck // nil
	return list
}

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}

// textLength is the length of all texts of a list.
func textLength(list any) int {
	size := 0
	for _, v := range asList(list) {
		if text, ok := v.(string); ok {
			size += len(text)
		}
	}
	return size
}

// perElement is the price of an operation that looks at each element of its lists.
func perElement(work, bytes int) func(args []any) price {
	return func(args []any) price {
		size := 0
		for _, arg := range args {
			size += len(asList(arg))
		}
		return price{work, bytes}.times(size)
	}
}

// spanPrice is that of a range: 16 bytes for a place in the list, 8 for its number, and
// 16 for that with the race detector.
func spanPrice(args []any) price { return price{40, 32}.times(min(spanLength(args), largest)) }

func spanLength(args []any) int { return max(runtime.ToInt(args[1])-runtime.ToInt(args[0])+1, 0) }

func sortPrice(args []any) price {
	size := len(asList(args[0]))
	return price{(70*size + textLength(args[0])/8) * rounds(size), 32 * size}
}

// rounds is how often sorting n elements looks at each of them.
func rounds(n int) int { return bits.Len(uint(max(n, 1))) }

// namesPrice is that of sorting the names of an object.
func namesPrice(args []any) price {
	switch object := args[0].(type) {
	case map[string]any:
		return orderPrice(object)
	case jsonObject:
		return orderPrice(object)
	}
	return price{}
}

func orderPrice[K ~string, V any](object map[K]V) price {
	count, texts := len(object), 0
	for name := range object {
		texts += len(name)
	}
	return price{count*(100+40*rounds(count)) + texts/8*rounds(count), 112 * count}
}

// flatten makes one list of lists inside of lists.
func flatten(e *evaluation, args []any) (any, error) {
	return e.flatten([]any{}, args[0])
}

func (e *evaluation) flatten(flat []any, list any) ([]any, error) {
	for _, v := range asList(list) {
		err := e.pay(price{80, 96})
		switch {
		case err != nil:
		case isList(v):
			flat, err = e.flatten(flat, v)
		default:
			flat = append(flat, v)
		}
		if err != nil {
			return nil, err
		}
	}
	return flat, nil
}

// aggregate is a builtin over the numbers of lists inside of lists. The price of one
// rises with each list that it is inside of where the numbers are copied for each.
func aggregate(name string, deeper price) operation {
	return func(e *evaluation, args []any) (any, error) {
		if err := e.payNumbers(args, price{100, 16}, deeper); err != nil {
			return nil, err
		}
		return original(name, args)
	}
}

func (e *evaluation) payNumbers(list any, here, deeper price) error {
	for _, v := range asList(list) {
		if err := e.pay(here); err != nil {
			return err
		}
		if !isList(v) {
			continue
		}
		if err := e.payNumbers(v, here.plus(deeper), deeper); err != nil {
			return err
		}
	}
	return nil
}

// uniq keeps the first of equal elements. Texts and numbers are looked up; objects and
// lists are compared with each other, which is paid for.
func uniq(e *evaluation, args []any) (any, error) {
	s := seen{simple: map[any]bool{}}
	unique := make([]any, 0, min(len(asList(args[0])), 16))
	for _, v := range asList(args[0]) {
		if err := e.pay(price{350, 160}); err != nil {
			return nil, err
		}
		known, err := s.add(e, v)
		if err != nil {
			return nil, err
		}
		if !known {
			unique = append(unique, v)
		}
	}
	return unique, nil
}

// seen are the values that uniq has met.
type seen struct {
	simple map[any]bool
	others []any
}

// add notes a value and reports whether an equal one was there.
func (s *seen) add(e *evaluation, v any) (known bool, err error) {
	if err := e.pay(price{2, 1}.times(len(asText(v)))); err != nil {
		return false, err
	}
	if key, ok := simpleKey(v); ok {
		known, s.simple[key] = s.simple[key], true
		return known, nil
	}
	if known, err = e.among(s.others, v); err == nil && !known {
		s.others = append(s.others, v)
	}
	return known, err
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
