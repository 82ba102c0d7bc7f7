package keyexpr

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
)

// mode selects what a reference does if its value is missing.
type mode uint8

const (
	// modeKey: the value becomes part of a key. Missing and empty values are errors,
	// and so is the zero of a field without presence.
	modeKey mode = iota
	// modeText: the value is an operand of + in a key. Missing and empty values are errors,
	// because an empty text would vanish from the key.
	modeText
	// modeValue: the value is an operand of a comparison or computation. A missing value is an error.
	modeValue
	// modeLenient: the value is the left side of ??. A missing value is nil.
	modeLenient
	// modePresence: the value is compared with nil. A missing value is nil, even if it has a default.
	modePresence
	// modeWhen: the value is read by a condition. A missing value is the zero of its type.
	modeWhen
)

func (m mode) isLenient() bool { return m == modeLenient || m == modePresence }

// access reads one reference, for example body.items[0].sku. It is immutable.
type access struct {
	variable *Variable // nil if the reference starts at a computed value
	slot     int
	item     *item // the entry to read, if the variable is keyed
	steps    []step
	typ      Type
	implicit bool   // the last step cannot tell zero from not set
	zero     string // the name of the zero of an enum
	preset   any    // the default of the last step
	mode     mode
	text     string // the source, for messages
}

// item is the entry of a keyed variable that a reference reads.
type item struct {
	key   string
	index int // the position of one of several values, oneValue or allValues
}

const (
	oneValue  = -1
	allValues = -2
)

// step selects a value inside another one.
type step struct {
	// get returns the inner value, or nil if it is missing. It returns false if the outer value has
	// no fields or no elements.
	get    func(any) (any, bool)
	noun   string // "fields" or "elements"
	inside bool   // the outer value is a list or map, which has no default for an absent element
	text   string // the source of the reference up to here
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
		panic(a.envError(err))
	}
	if a.variable.Type.convert != nil {
		v = a.variable.Type.convert(v)
	}
	if v == nil || a.variable.Registered && isUnset(v) {
		return a.absent(a.variable.Name)
	}
	return a.follow(v)
}

// isUnset reports whether the value of a registered variable is "" or a zero struct, which means
// that the application did not set it.
func isUnset(v any) bool {
	if v == "" {
		return true
	}
	value := reflect.ValueOf(v)
	return value.Kind() == reflect.Struct && value.IsZero()
}

// items reads one value or all values of an entry of a keyed variable.
func (a *access) items(env Env) any {
	values, err := env.Items(a.slot, a.item.key)
	if err != nil {
		panic(a.envError(err))
	}
	if a.variable.Keyed.isCaseless(a.item.key) {
		values = lowerAll(values)
	}
	switch index := a.item.index; {
	case len(values) == 0 || index >= len(values):
		return a.absent(a.text)
	case index == allValues && len(values) > maxCollection:
		panic(tooManyError(a.text))
	case index == allValues:
		return a.check(box(values))
	case index == oneValue && len(values) > 1:
		panic(newEvalError(ReasonRepeated, a.text, "is given more than once; write "+a.text+"[0] for the first or "+a.text+"[:] for all"))
	default:
		return a.check(values[max(index, 0)])
	}
}

func lowerAll(values []string) []string {
	lower := make([]string, len(values))
	for i, v := range values {
		lower[i] = strings.ToLower(v)
	}
	return lower
}

// envError returns an error of the Env as an *EvalError.
func (a *access) envError(err error) *EvalError {
	if known, ok := errors.AsType[*EvalError](err); ok {
		failure := *known
		if failure.Subject == "" {
			failure.Subject = a.text
		}
		return &failure
	}
	return &EvalError{Reason: ReasonInternal, Subject: a.text, Detail: "cannot be computed", Err: err}
}

// follow applies the steps to a value that is not nil.
func (a *access) follow(v any) any {
	for i := range a.steps {
		s := &a.steps[i]
		next, ok := s.get(v)
		if !ok {
			panic(newEvalError(ReasonWrongType, a.textBefore(i), "is "+describe(normalize(v))+" and has no "+s.noun))
		}
		if next == nil {
			if a.preset != nil && a.mode != modePresence && !slices.ContainsFunc(a.steps[i:], func(s step) bool { return s.inside }) {
				return a.check(normalize(a.preset))
			}
			return a.absent(s.text)
		}
		v = next
	}
	return a.settle(v)
}

// textBefore returns the source of the value that a step starts from.
func (a *access) textBefore(i int) string {
	if i > 0 {
		return a.steps[i-1].text
	}
	if a.variable != nil {
		return a.variable.Name
	}
	return "the value before " + a.steps[0].text
}

// settle converts a value to the form that the expression computes with and checks it.
func (a *access) settle(v any) any {
	if v = whole(v, a.text); v == nil {
		return a.absent(a.text)
	}
	return a.check(normalize(v))
}

// check checks a value that is not nil against the mode.
func (a *access) check(v any) any {
	if a.implicit && (v == 0 || v == "" || a.zero != "" && v == a.zero) {
		switch {
		case a.mode == modeKey && v != "":
			panic(newEvalError(ReasonMissing, a.text, "is not set or zero, which its type cannot tell apart; write "+a.text+" ?? 0 if zero is a value"))
		case a.mode.isLenient():
			return nil
		}
	}
	if v == "" && (a.mode == modeKey || a.mode == modeText) {
		panic(newEvalError(ReasonEmpty, a.text, "is empty"))
	}
	if list, ok := v.([]any); ok && len(list) > maxCollection {
		panic(tooManyError(a.text))
	}
	_, big := v.(uint64)
	_, bigger := v.(json.Number)
	if (big || bigger) && a.mode != modeKey && !a.mode.isLenient() {
		panic(newEvalError(ReasonExpression, a.text, "is too large to compute with"))
	}
	return v
}

// absent returns the result for a missing value, or panics if the mode makes it an error.
// subject is the source of the missing value.
func (a *access) absent(subject string) any {
	if a.variable != nil && a.variable.Registered && subject == a.variable.Name {
		panic(newEvalError(ReasonUnset, subject, "has no value for this request: is the lock installed before the code that sets it, such as authentication?"))
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
	panic(newEvalError(ReasonMissing, subject, "is missing"))
}

// converts reports whether reading the reference converts a value, which takes time and memory.
func (a *access) converts() bool {
	return a.item != nil || a.variable != nil && a.variable.Type.convert != nil ||
		slices.ContainsFunc(a.steps, func(s step) bool { return !s.inside })
}
