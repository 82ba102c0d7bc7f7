package keyexpr

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
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

// step goes from a value to one inside of it.
type step struct {
	get   func(any) any // field of an object
	name  string        // key of a map
	index int           // element of a list
	kind  stepKind
	text  string // of the reference up to here
}

type stepKind uint8

const (
	stepField stepKind = iota
	stepKey
	stepIndex
)

// value reads the reference for a request.
func (a *access) value(env Env) (any, *EvalError) {
	if a.item != nil {
		return a.items(env)
	}
	v, err := env.Value(a.slot)
	if err != nil {
		return nil, a.internal(err)
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
func (a *access) follow(v any) (any, *EvalError) {
	for i := range a.steps {
		s := &a.steps[i]
		next, ok := s.take(v)
		if !ok {
			return nil, failed(ReasonWrongType, s.before(a, i), "is "+describe(normalize(v))+" and has no "+s.noun())
		}
		if next == nil {
			if a.preset != nil && a.mode != modePresence && !slices.ContainsFunc(a.steps[i:], step.leaves) {
				return a.finish(normalize(a.preset))
			}
			return a.absent(s.text)
		}
		v = next
	}
	return a.settle(v)
}

// settle makes a value what the expression gets of it.
func (a *access) settle(v any) (any, *EvalError) {
	v, failure := a.whole(v)
	switch {
	case failure != nil:
		return nil, failure
	case v == nil:
		return a.absent(a.text)
	}
	return a.finish(normalize(v))
}

func (s *step) take(v any) (any, bool) {
	switch s.kind {
	case stepField:
		return s.get(v), true
	case stepKey:
		if next, _, ok := lookUp(v, s.name); ok {
			return next, true
		}
	default:
		if list, ok := normalize(v).([]any); ok {
			if i := position(s.index, len(list)); i >= 0 {
				return list[i], true
			}
			return nil, true
		}
	}
	return s.inside(v)
}

// lookUp finds what an object has under a computed name. ok is false for what is no
// object.
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

// leaves reports whether a step goes into a list or map, which has no default for what is
// not in it.
func (s step) leaves() bool { return s.kind != stepField }

func (s *step) noun() string {
	if s.kind == stepIndex {
		return "elements"
	}
	return "fields"
}

func (s *step) before(a *access, i int) string {
	if i > 0 {
		return a.steps[i-1].text
	}
	if a.variable != nil {
		return a.variable.Name
	}
	return "the value before " + s.text
}

// position resolves an index that may count from the end; -1 is outside.
func position(index, length int) int {
	if index < 0 {
		index += length
	}
	if index < 0 || index >= length {
		return -1
	}
	return index
}

// finish checks a value that is there against the mode.
func (a *access) finish(v any) (any, *EvalError) {
	if a.implicit && (v == 0 || v == "" || a.zero != "" && v == a.zero) {
		switch {
		case a.mode == modeKey && v != "":
			return nil, failed(ReasonMissing, a.text, "is not set or zero, which its type cannot tell apart; write "+a.text+" ?? 0 if zero is a value")
		case a.mode.lenient():
			return nil, nil
		}
	}
	if v == "" && (a.mode == modeKey || a.mode == modeText) {
		return nil, failed(ReasonEmpty, a.text, "is empty")
	}
	if list, ok := v.([]any); ok && len(list) > maxCollection {
		return nil, tooMany(a.text, maxCollection)
	}
	_, big := v.(uint64)
	_, bigger := v.(json.Number)
	if (big || bigger) && a.mode != modeKey && !a.mode.lenient() {
		return nil, failed(ReasonExpression, a.text, "is too large to compute with")
	}
	return v, nil
}

// absent is the result for a value that is not there.
func (a *access) absent(what string) (any, *EvalError) {
	if a.variable != nil && a.variable.Registered && what == a.variable.Name {
		return nil, failed(ReasonUnset, what, "has no value for this request: is the lock installed before what sets it, such as authentication?")
	}
	switch a.mode {
	case modeLenient, modePresence:
		return nil, nil
	case modeWhen:
		if a.zero != "" {
			return a.zero, nil
		}
		return kinds[a.typ.kind].empty, nil
	}
	return nil, failed(ReasonMissing, what, "is missing")
}

// string reads a single entry of a keyed variable without boxing it. ok is
// false where value has to be used.
func (a *access) string(env Env) (text string, ok bool, failure *EvalError) {
	if a.item == nil || a.item.index == allValues || a.mode != modeKey {
		return "", false, nil
	}
	text, count, failure := a.entryValue(env)
	switch {
	case failure != nil:
	case count == 0:
		_, failure = a.absent(a.text)
	case text == "":
		_, failure = a.finish("")
	}
	return text, true, failure
}

// items reads an entry of a keyed variable: one value or all of them.
func (a *access) items(env Env) (any, *EvalError) {
	text, count, failure := a.entryValue(env)
	switch {
	case failure != nil:
		return nil, failure
	case count == 0:
		return a.absent(a.text)
	case a.item.index == allValues:
		return a.all(env, count)
	}
	return a.finish(text)
}

// entryValue reads one value of an entry. A count of zero says that it is not there.
func (a *access) entryValue(env Env) (text string, count int, failure *EvalError) {
	index := a.item.index
	text, count, err := a.item.read(a, env, max(index, 0))
	switch {
	case err != nil:
		return "", 0, a.internal(err)
	case index >= count:
		return "", 0, nil
	case count > 1 && index == oneValue:
		return "", 0, failed(ReasonRepeated, a.text, "is given more than once; write "+a.text+"[0] for the first or "+a.text+"[:] for all")
	}
	return text, count, nil
}

func (i *item) read(a *access, env Env, index int) (text string, count int, err error) {
	text, count, err = env.Item(a.slot, i.key, index)
	if a.variable.Type.keyed.isCaseless(i.key) {
		text = strings.ToLower(text)
	}
	return text, count, err
}

func (a *access) all(env Env, count int) (any, *EvalError) {
	if count > maxCollection {
		return nil, tooMany(a.text, maxCollection)
	}
	list := make([]any, 0, count)
	for i := range count {
		text, _, err := a.item.read(a, env, i)
		if err != nil {
			return nil, a.internal(err)
		}
		list = append(list, text)
	}
	return a.finish(list)
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

// chosen takes what a computed name or index chooses.
func (a *access) chosen(e *evaluation, base, key any) (any, *EvalError) {
	if base == nil {
		return a.settle(nil)
	}
	s := step{kind: stepKey}
	list, isIndex := base.([]any)
	switch k := key.(type) {
	case string:
		if isIndex {
			return nil, failed(ReasonWrongType, a.text, "needs an integer as index")
		}
		s.name = k
	case int:
		s.name, s.index = strconv.Itoa(k), k
	default:
		return nil, failed(ReasonWrongType, a.text, "needs a string as name, or an integer as index")
	}
	if isIndex {
		s.kind, base = stepIndex, list
	}
	if _, failure := e.text(a.text, s.name); failure != nil {
		return nil, failure
	}
	v, ok := s.take(base)
	if !ok {
		return nil, failed(ReasonWrongType, a.text, "is taken from "+describe(base))
	}
	return a.settle(v)
}

// entry reads the entry of a keyed variable that a computed name chooses.
func (a *access) entry(e *evaluation, v any) (any, *EvalError) {
	if _, ok := v.(string); !ok {
		return nil, failed(ReasonWrongType, a.text, "needs a string as name")
	}
	name, failure := e.text(a.text, v)
	if failure != nil {
		return nil, failure
	}
	keyed := a.variable.Type.keyed
	if keyed.Canonical != nil {
		name = keyed.Canonical(name)
	}
	if !keyed.Open && !slices.Contains(keyed.Known, name) {
		return a.absent(a.text)
	}
	computed := *a
	computed.item = &item{key: name, index: a.item.index}
	return computed.items(e.env)
}

// makes reports whether a reference converts what it reads, which takes time and memory.
func (a *access) makes() bool {
	return a.item != nil || a.variable != nil && a.variable.Type.convert != nil ||
		slices.ContainsFunc(a.steps, func(s step) bool { return s.kind == stepField })
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
	case map[string]any:
		for _, value := range v {
			size += 2*comparison + madeOf(value)
		}
	}
	return size
}
