package keyexpr

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/expr-lang/expr/vm/runtime"
)

// beginLoop pays for all turns of a loop. A loop may end early, and has then paid too
// much: what is refused must not depend on where it ends.
func beginLoop(e *evaluation, args []any) (any, error) {
	number, err := argument[int](args, 0, "a loop")
	if err != nil {
		return nil, err
	}
	turns := e.program.turns[number].times(listLength(args[1]))
	return args[1], e.spend(turns.work, turns.bytes)
}

// listLength is the length of a list, 0 for what is none.
func listLength(v any) int {
	switch list := v.(type) {
	case []any:
		return len(list)
	case []string:
		return len(list)
	case []int:
		return len(list)
	}
	if r := reflect.ValueOf(v); r.Kind() == reflect.Slice || r.Kind() == reflect.Array {
		return r.Len()
	}
	return 0
}

// each calls f for each element of a list.
func each(list any, f func(any) error) error {
	switch list := list.(type) {
	case []any:
		return eachOf(list, f)
	case []string:
		return eachOf(list, f)
	case []int:
		return eachOf(list, f)
	}
	r := reflect.ValueOf(list)
	if r.Kind() != reflect.Slice && r.Kind() != reflect.Array {
		return fmt.Errorf("needs a list, not %s", describe(list))
	}
	for i := range r.Len() {
		if err := f(r.Index(i).Interface()); err != nil {
			return err
		}
	}
	return nil
}

func eachOf[T any](list []T, f func(any) error) error {
	for _, element := range list {
		if err := f(element); err != nil {
			return err
		}
	}
	return nil
}

// sortedBy pays for comparing one of the values that a list is sorted by.
func sortedBy(e *evaluation, args []any) (any, error) {
	if text, ok := args[0].(string); ok {
		return text, e.spend(3*len(text), 0)
	}
	return args[0], nil
}

// span is the range operator.
func span(e *evaluation, args []any) (any, error) {
	from, to := runtime.ToInt(args[0]), runtime.ToInt(args[1])
	size := max(to-from+1, 0)
	if err := e.spend(4*min(size, largest), 8*min(size, largest)); err != nil {
		return nil, err
	}
	return runtime.MakeRange(from, to), nil
}

// uniq keeps the first of equal elements. Texts and numbers are looked up; objects and
// lists are compared with each other, which is paid for.
func uniq(e *evaluation, args []any) (any, error) {
	s := newSeen()
	unique := make([]any, 0, min(listLength(args[0]), 16))
	err := each(args[0], func(v any) error {
		if err := e.spend(350, 160); err != nil {
			return err
		}
		known, err := s.add(e, v)
		if err == nil && !known {
			unique = append(unique, v)
		}
		return err
	})
	return unique, err
}

func concat(e *evaluation, args []any) (any, error) {
	size := 0
	for _, arg := range args {
		size += listLength(arg)
	}
	if err := e.spend(40*size, 32*size); err != nil {
		return nil, err
	}
	all := make([]any, 0, size)
	for _, arg := range args {
		if err := each(arg, func(v any) error { all = append(all, v); return nil }); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// flatten appends the elements of lists inside of lists to one list.
func flatten(e *evaluation, args []any) (any, error) {
	flat := []any{}
	var add func(v any) error
	add = func(v any) error {
		if err := e.spend(80, 96); err != nil {
			return err
		}
		if isList(v) {
			return each(v, add)
		}
		flat = append(flat, v)
		return nil
	}
	err := each(args[0], add)
	return flat, err
}

func isList(v any) bool {
	switch v.(type) {
	case []any, []string, []int:
		return true
	case nil, string, int, bool, float64, map[string]any, jsonObject:
		return false
	}
	kind := reflect.TypeOf(v).Kind()
	return kind == reflect.Slice || kind == reflect.Array
}

func reverse(e *evaluation, args []any) (any, error) {
	size := listLength(args[0])
	if err := e.spend(50*size, 32*size); err != nil {
		return nil, err
	}
	return original("reverse", args)
}

func sortList(e *evaluation, args []any) (any, error) {
	if len(args) == 2 && args[1] != "asc" && args[1] != "desc" {
		return nil, errNoOrder // the language's own error shows it
	}
	size, texts := listLength(args[0]), 0
	err := each(args[0], func(v any) error {
		if text, ok := v.(string); ok {
			texts += len(text)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := e.spend((70*size+texts/8)*rounds(size), 32*size); err != nil {
		return nil, err
	}
	return original("sort", args)
}

var errNoOrder = errors.New(`the order of sort() is "asc" or "desc"`)

// aggregate is a builtin over the numbers of lists inside of lists. The price of one
// rises with each list that it is inside of where the numbers are copied for each.
func aggregate(name string, deeper price) meteredFunction {
	var pay func(e *evaluation, here price) func(any) error
	pay = func(e *evaluation, here price) func(any) error {
		return func(v any) error {
			if err := e.spend(here.work, here.bytes); err != nil {
				return err
			}
			if isList(v) {
				return each(v, pay(e, here.plus(deeper)))
			}
			return nil
		}
	}
	return func(e *evaluation, args []any) (any, error) {
		if err := each(args, pay(e, price{100, 16})); err != nil {
			return nil, err
		}
		return original(name, args)
	}
}

// ofMap is a function that sorts the names of an object.
func ofMap(f func(any) (any, error)) meteredFunction {
	return func(e *evaluation, args []any) (any, error) {
		if err := e.payNames(args[0]); err != nil {
			return nil, err
		}
		return f(args[0])
	}
}

// keysOf are the names of an object, as far as they are sure.
func keysOf(e *evaluation, args []any) (any, error) {
	object, ok := args[0].(jsonObject)
	if !ok {
		return ofMap(ownKeys)(e, args)
	}
	if err := e.payNames(object); err != nil {
		return nil, err
	}
	return e.program.spelling.names(object)
}

// payNames pays for sorting the names of an object.
func (e *evaluation) payNames(object any) error {
	count, texts := 0, 0
	switch o := object.(type) {
	case lazyMap:
		return errTooMany
	case map[string]any:
		count = len(o)
		for name := range o {
			texts += len(name)
		}
	case jsonObject:
		count = len(o)
		for name := range o {
			texts += len(name)
		}
	}
	return e.spend(count*(100+40*rounds(count))+texts/8*rounds(count), 112*count)
}
