package keyexpr

import (
	"errors"
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
	// modeWhen: anything in a condition. Missing is the zero of the type.
	modeWhen
)

// Limits of the work that one expression can cause: maxCollection bounds the
// lists that it loops over, maxPredicates how deeply loops are nested.
const (
	maxCollection = 1000
	maxPredicates = 2
)

// access reads one reference such as body.items[0].sku. It is immutable.
type access struct {
	variable *Variable // nil if the reference starts at a computed value
	slot     int
	item     *item // for keyed variables
	steps    []step
	typ      Type
	implicit bool   // the last step cannot tell zero from not set
	zero     string // the name of the zero of an enum
	mode     mode
	text     string
}

// item is the entry of a keyed variable that a reference reads.
type item struct {
	key     string
	index   int // of a repeated value, or oneValue, or allValues
	indexed bool
}

const (
	oneValue  = -1
	allValues = -2
)

// step goes from a value to one inside of it.
type step struct {
	get    func(any) any // field of an object
	name   string        // key of a map
	folded foldedName    // key of an object of JSON
	index  int           // element of a list, if isIndex
	kind   stepKind
	text   string // of the reference up to here
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
	if v == nil || a.variable.Registered && v == "" {
		return a.absent(a.variable.Name)
	}
	return a.follow(v)
}

// follow applies the steps to a value that is not nil.
func (a *access) follow(v any) (any, *EvalError) {
	for i := range a.steps {
		s := &a.steps[i]
		next, ok := s.take(v)
		if !ok {
			return nil, wrongType(s.before(a, i), "is "+describe(normalize(v))+" and has no "+s.noun())
		}
		if next == nil {
			return a.absent(s.text)
		}
		v = next
	}
	v, failure := a.whole(v)
	if failure != nil {
		return nil, failure
	}
	return a.finish(normalize(v))
}

func (s *step) take(v any) (any, bool) {
	switch s.kind {
	case stepField:
		return s.get(v), true
	case stepKey:
		switch m := v.(type) {
		case map[string]any:
			return m[s.name], true
		case jsonObject:
			return m[s.folded].value, true
		}
	default:
		if list, ok := asList(v); ok {
			if i := position(s.index, len(list)); i >= 0 {
				return list[i], true
			}
			return nil, true
		}
	}
	return s.inside(v)
}

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
	if a.implicit && a.isZero(v) {
		switch {
		case a.mode == modeKey && v != "":
			return nil, &EvalError{
				Reason: ReasonMissing, Subject: a.text,
				Detail: "is not set or zero, which its type cannot tell apart; write " + a.text + " ?? 0 if zero is a value",
			}
		case a.mode == modeLenient:
			return nil, nil
		}
	}
	if v == "" && (a.mode == modeKey || a.mode == modeText) {
		return nil, &EvalError{Reason: ReasonEmpty, Subject: a.text, Detail: "is empty"}
	}
	if list, ok := v.([]any); ok && len(list) > maxCollection {
		return nil, a.tooMany(maxCollection)
	}
	if _, big := v.(uint64); big && a.mode != modeKey && a.mode != modeLenient {
		return nil, &EvalError{Reason: ReasonExpression, Subject: a.text, Detail: "is too large to compute with"}
	}
	return v, nil
}

func (a *access) isZero(v any) bool {
	return v == 0 || v == "" || a.zero != "" && v == a.zero
}

// absent is the result for a value that is not there.
func (a *access) absent(what string) (any, *EvalError) {
	if a.variable != nil && a.variable.Registered && what == a.variable.Name {
		return nil, &EvalError{
			Reason: ReasonUnset, Subject: what,
			Detail: "has no value for this request: is the lock installed before what sets it, such as authentication?",
		}
	}
	switch a.mode {
	case modeLenient:
		return nil, nil
	case modeWhen:
		return a.typ.empty(), nil
	}
	return nil, &EvalError{Reason: ReasonMissing, Subject: what, Detail: "is missing"}
}

// empty is what a missing value is in a condition.
func (t Type) empty() any {
	switch t.kind {
	case kindString:
		return ""
	case kindBool:
		return false
	case kindInt:
		return 0
	case kindFloat:
		return 0.0
	case kindList:
		return []any{}
	case kindMap:
		return map[string]any{}
	}
	return nil
}

// string reads a single entry of a keyed variable without boxing it. ok is
// false where value has to be used.
func (a *access) string(env Env) (text string, ok bool, failure *EvalError) {
	if a.item == nil || a.item.index == allValues || a.mode != modeKey {
		return "", false, nil
	}
	text, count, err := env.Item(a.slot, a.item.key, max(a.item.index, 0))
	switch {
	case err != nil:
		return "", true, a.internal(err)
	case count == 0 || a.item.index >= count:
		_, failure = a.absent(a.text)
		return "", true, failure
	case count > 1 && a.item.index == oneValue:
		return "", true, a.repeated()
	case text == "":
		_, failure = a.finish("")
		return "", true, failure
	}
	return text, true, nil
}

// items reads an entry of a keyed variable: one value or all of them.
func (a *access) items(env Env) (any, *EvalError) {
	text, count, err := env.Item(a.slot, a.item.key, max(a.item.index, 0))
	switch {
	case err != nil:
		return nil, a.internal(err)
	case a.item.index == allValues:
		return a.all(env, count)
	case count == 0 || a.item.index >= count:
		return a.absent(a.text)
	case count > 1 && a.item.index == oneValue:
		return nil, a.repeated()
	}
	return a.finish(text)
}

func (a *access) all(env Env, count int) (any, *EvalError) {
	if count == 0 {
		return a.absent(a.text)
	}
	if count > maxCollection {
		return nil, a.tooMany(maxCollection)
	}
	list := make([]any, 0, count)
	for i := range count {
		text, _, err := env.Item(a.slot, a.item.key, i)
		if err != nil {
			return nil, a.internal(err)
		}
		list = append(list, text)
	}
	return a.finish(list)
}

func (a *access) repeated() *EvalError {
	return &EvalError{
		Reason: ReasonRepeated, Subject: a.text,
		Detail: "is given more than once; write " + a.text + "[0] for the first or " + a.text + "[:] for all",
	}
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

func wrongType(subject, detail string) *EvalError {
	return &EvalError{Reason: ReasonWrongType, Subject: subject, Detail: detail}
}
