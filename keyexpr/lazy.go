package keyexpr

import (
	"encoding/json"
	"iter"
	"reflect"
	"strconv"
)

// maxMade bounds how many elements, those of lists and maps inside included, are
// converted for one reference.
const maxMade = 16 << 10

// LazyList returns a list of n elements for an [Env] or the Get of a [Field] that has
// to convert them. Only those that an expression uses are asked for, all of them if it
// uses the list.
func LazyList(n int, at func(i int) any) any { return lazyList{n, at} }

// LazyMap returns a map of n entries likewise. A map of more entries than a list may
// have elements is never converted: what an expression can do with it is to take an
// entry and to ask for one with in.
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
		if g, err := goTypeOf(reflect.TypeOf(n), GoNames, 0); err == nil && g.typ.kind != kindAny {
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

// inside takes the step into a list that is not converted yet.
func (s *step) inside(v any) (next any, ok bool) {
	list, ok := v.(lazyList)
	if !ok || s.kind != stepIndex {
		return nil, false
	}
	if i := position(s.index, list.n); i >= 0 {
		next = list.at(i)
	}
	return next, true
}

// whole converts a value that an expression uses as it is.
func (a *access) whole(v any) (any, *EvalError) {
	switch x := v.(type) {
	case lazyList:
		if x.n > maxCollection {
			return nil, a.tooMany(maxCollection)
		}
	case lazyMap:
		if x.n > maxCollection {
			return v, nil
		}
	default:
		return v, nil
	}
	room := maxMade
	made := convert(v, &room)
	if room < 0 {
		return nil, a.tooMany(maxMade)
	}
	return made, nil
}

func (a *access) tooMany(limit int) *EvalError {
	return failed(ReasonTooMany, a.text, "has more than "+strconv.Itoa(limit)+" elements")
}

// convert makes the plain form of a value, as long as there is room.
func convert(v any, room *int) any {
	switch x := v.(type) {
	case lazyList:
		if *room -= x.n; *room < 0 {
			return nil
		}
		list := make([]any, x.n)
		for i := range list {
			list[i] = convert(x.at(i), room)
		}
		return list
	case lazyMap:
		if *room -= x.n; *room < 0 {
			return nil
		}
		m := make(map[string]any, x.n)
		for name, value := range x.all {
			m[name] = convert(value, room)
		}
		return m
	}
	return normalize(v)
}
