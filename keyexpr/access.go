package keyexpr

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
)

// mode says how a reference treats a value that is not there.
type mode uint8

const (
	// modeKey: the value becomes part of a key. Missing and empty are errors,
	// and so is the zero of a field without presence.
	modeKey mode = iota
	// modeText: an operand of +, whose empty string would vanish in the text.
	modeText
	// modeValue: an operand of a comparison or computation. Missing is an error.
	modeValue
	// modeLenient: the left of ?? or a comparison with nil. Missing is nil.
	modeLenient
	// modePresence: a comparison with nil. Missing is nil, also if it has a default.
	modePresence
	// modeWhen: anything in a condition. Missing is the zero of the type.
	modeWhen
)

func (m mode) lenient() bool { return m == modeLenient || m == modePresence }

// access reads one reference such as body.items[0].sku. It is immutable.
type access struct {
	variable *Variable // nil if the reference starts at a computed value
	slot     int
	item     *item // for keyed variables
	steps    []step
	typ      Type
	implicit bool   // the last step cannot tell zero from not set
	zero     string // the name of the zero of an enum
	preset   any    // what the last step has if it is not set
	mode     mode
	text     string
}

// item is the entry of a keyed variable that a reference reads.
type item struct {
	key   string
	index int // of a repeated value, or oneValue, or allValues
}

const (
	oneValue  = -1
	allValues = -2
)

// step goes from a value to one inside of it. get reports false where the value has none such.
type step struct {
	get    func(any) (any, bool)
	noun   string // what it takes
	inside bool   // of a list or map, which has no default for what is not in it
	text   string // of the reference up to here
}

func fieldStep(get func(any) any) step {
	return step{get: func(v any) (any, bool) { return get(v), true }, noun: "fields"}
}

func nameStep(name string) step {
	return step{get: func(v any) (any, bool) {
		value, _, ok := lookUp(v, name)
		return value, ok
	}, noun: "fields", inside: true}
}

func indexStep(index int) step {
	return step{get: func(v any) (any, bool) { return elementAt(v, index) }, noun: "elements", inside: true}
}

// value reads the reference for a request.
func (a *access) value(env Env) any {
	if a.item != nil {
		return a.items(env)
	}
	v, err := env.Value(a.slot)
	if err != nil {
		panic(a.internal(err))
	}
	if a.variable.Type.convert != nil {
		v = a.variable.Type.convert(v)
	}
	if v == nil || a.variable.Registered && isUnset(v) {
		return a.absent(a.variable.Name)
	}
	return a.follow(v)
}

// isUnset reports whether the program has not set a variable: "", or a struct without a
// value in it.
func isUnset(v any) bool {
	if v == "" {
		return true
	}
	value := reflect.ValueOf(v)
	return value.Kind() == reflect.Struct && value.IsZero()
}

// follow applies the steps to a value that is not nil.
func (a *access) follow(v any) any {
	for i := range a.steps {
		s := &a.steps[i]
		next, ok := s.get(v)
		if !ok {
			panic(failed(ReasonWrongType, a.before(i), "is "+describe(normalize(v))+" and has no "+s.noun))
		}
		if next == nil {
			if a.preset != nil && a.mode != modePresence && !slices.ContainsFunc(a.steps[i:], func(s step) bool { return s.inside }) {
				return a.finish(normalize(a.preset))
			}
			return a.absent(s.text)
		}
		v = next
	}
	return a.settle(v)
}

// settle makes a value what the expression gets of it.
func (a *access) settle(v any) any {
	if v = whole(v, a.text); v == nil {
		return a.absent(a.text)
	}
	return a.finish(normalize(v))
}

// lookUp finds what an object has under a name. ok is false for what is not an object.
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

// before is what a step is taken from.
func (a *access) before(i int) string {
	if i > 0 {
		return a.steps[i-1].text
	}
	if a.variable != nil {
		return a.variable.Name
	}
	return "the value before " + a.steps[0].text
}

// elementAt is an element of a list, nil where there is none. An index may count from the end.
func elementAt(v any, index int) (element any, isList bool) {
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

// finish checks a value that is there against the mode.
func (a *access) finish(v any) any {
	if a.implicit && (v == 0 || v == "" || a.zero != "" && v == a.zero) {
		switch {
		case a.mode == modeKey && v != "":
			panic(failed(ReasonMissing, a.text, "is not set or zero, which its type cannot tell apart; write "+a.text+" ?? 0 if zero is a value"))
		case a.mode.lenient():
			return nil
		}
	}
	if v == "" && (a.mode == modeKey || a.mode == modeText) {
		panic(failed(ReasonEmpty, a.text, "is empty"))
	}
	if list, ok := v.([]any); ok && len(list) > maxCollection {
		panic(tooMany(a.text))
	}
	_, big := v.(uint64)
	_, bigger := v.(json.Number)
	if (big || bigger) && a.mode != modeKey && !a.mode.lenient() {
		panic(failed(ReasonExpression, a.text, "is too large to compute with"))
	}
	return v
}

// absent is the result for a value that is not there.
func (a *access) absent(what string) any {
	if a.variable != nil && a.variable.Registered && what == a.variable.Name {
		panic(failed(ReasonUnset, what, "has no value for this request: is the lock installed before what sets it, such as authentication?"))
	}
	switch a.mode {
	case modeLenient, modePresence:
		return nil
	case modeWhen:
		if a.zero != "" {
			return a.zero
		}
		return kinds[a.typ.kind].empty
	}
	panic(failed(ReasonMissing, what, "is missing"))
}

// items reads an entry of a keyed variable: one value or all of them.
func (a *access) items(env Env) any {
	values, err := env.Items(a.slot, a.item.key)
	if err != nil {
		panic(a.internal(err))
	}
	if a.variable.Keyed.isCaseless(a.item.key) {
		values = lowered(values)
	}
	switch index := a.item.index; {
	case len(values) == 0 || index >= len(values):
		return a.absent(a.text)
	case index == allValues && len(values) > maxCollection:
		panic(tooMany(a.text))
	case index == allValues:
		return a.finish(boxed(values))
	case index == oneValue && len(values) > 1:
		panic(failed(ReasonRepeated, a.text, "is given more than once; write "+a.text+"[0] for the first or "+a.text+"[:] for all"))
	default:
		return a.finish(values[max(index, 0)])
	}
}

func lowered(values []string) []string {
	lower := make([]string, len(values))
	for i, v := range values {
		lower[i] = strings.ToLower(v)
	}
	return lower
}

// internal reports an error of the Env.
func (a *access) internal(err error) *EvalError {
	if known, ok := errors.AsType[*EvalError](err); ok {
		failure := *known
		if failure.Subject == "" {
			failure.Subject = a.text
		}
		return &failure
	}
	return &EvalError{Reason: ReasonInternal, Subject: a.text, Detail: "cannot be computed", Err: err}
}

// makes reports whether a reference converts what it reads, which takes time and memory.
func (a *access) makes() bool {
	return a.item != nil || a.variable != nil && a.variable.Type.convert != nil ||
		slices.ContainsFunc(a.steps, func(s step) bool { return !s.inside })
}

// madeOf is how much text takes as long as making a value.
func madeOf(v any) int {
	size := 4
	switch v := v.(type) {
	case string:
		return len(v)
	case json.Number:
		return len(v)
	case []any:
		for _, element := range v {
			size += madeOf(element)
		}
	}
	return size
}
