package keyexpr

import (
	"iter"
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

// document is a list or a map as encoding/json makes them for an interface. Numbers in
// it are not yet in the form of AnyType.
type document struct{ v any }

// newDocument is a value of a Go interface.
func newDocument(v any) any {
	switch v.(type) {
	case []any, map[string]any:
		return document{v}
	}
	return FromJSON(v)
}

// inside takes the step into a value that is not converted yet.
func (s *step) inside(v any) (next any, ok bool) {
	switch x := v.(type) {
	case lazyList:
		if i := position(s.index, x.n); s.kind == stepIndex && i >= 0 {
			next = x.at(i)
		}
		return next, s.kind == stepIndex
	case document:
		next, ok = s.take(x.v)
		return newDocument(next), ok
	}
	return nil, false
}

// whole converts a value that an expression uses as it is.
func (a *access) whole(v any) (any, *EvalError) {
	switch x := v.(type) {
	case lazyList:
		if x.n > maxCollection {
			return nil, a.tooMany(maxCollection)
		}
	case lazyMap, document:
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
		if x.n > maxCollection {
			return x
		}
		if *room -= x.n; *room < 0 {
			return nil
		}
		m := make(map[string]any, x.n)
		for name, value := range x.all {
			m[name] = convert(value, room)
		}
		return m
	case document:
		return fromJSON(x.v, room)
	}
	return normalize(v)
}
