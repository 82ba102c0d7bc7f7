package keyexpr

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
)

// The functions that references are replaced by. Their first argument is the
// evaluation, the second the number of the access; a user cannot write the
// names.
const (
	fnGet   = "$get"   // reads a variable
	fnStep  = "$step"  // takes steps from a value
	fnIndex = "$index" // takes a computed element
	fnItem  = "$item"  // reads a computed entry
	fnList  = "$list"  // asserts a list
	fnGuard = "$guard" // asserts that a text is not empty

	evaluationName = "$evaluation"
)

type internalFunction func(e *evaluation, a *access, args []any) (any, *EvalError)

var internalFunctions = map[string]internalFunction{ //nolint:gochecknoglobals // a table that is only read
	fnGet: func(e *evaluation, a *access, _ []any) (any, *EvalError) { return a.value(e.env) },
	fnStep: func(_ *evaluation, a *access, args []any) (any, *EvalError) {
		if args[0] == nil {
			return a.absent(a.steps[0].before(a, 0))
		}
		return a.follow(args[0])
	},
	fnIndex: func(_ *evaluation, a *access, args []any) (any, *EvalError) { return a.element(args[0], args[1]) },
	fnItem:  func(e *evaluation, a *access, args []any) (any, *EvalError) { return a.entry(e.env, args[0]) },
	fnList:  func(_ *evaluation, a *access, args []any) (any, *EvalError) { return a.list(args[0]) },
	fnGuard: func(_ *evaluation, a *access, args []any) (any, *EvalError) { return a.guarded(args[0]) },
}

// element takes the element that a computed name or index chooses.
func (a *access) element(base, key any) (any, *EvalError) {
	v, failure := a.chosen(base, key)
	if failure != nil {
		return nil, failure
	}
	if v, failure = a.whole(v); failure != nil {
		return nil, failure
	}
	if v == nil {
		return a.absent(a.text)
	}
	return a.finish(normalize(v))
}

func (a *access) chosen(base, key any) (any, *EvalError) {
	if base == nil {
		return nil, nil
	}
	if list, ok := asList(base); ok {
		i, ok := key.(int)
		if !ok {
			return nil, wrongType(a.text, "needs an integer as index")
		}
		if i = position(i, len(list)); i < 0 {
			return nil, nil
		}
		return list[i], nil
	}
	name, ok := nameOf(key)
	if !ok {
		return nil, wrongType(a.text, "needs a string as name")
	}
	v, _, ok := lookUp(base, name)
	if !ok {
		return nil, wrongType(a.text, "is taken from "+describe(base))
	}
	return v, nil
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

// nameOf is the name that a computed value means.
func nameOf(key any) (name string, ok bool) {
	switch k := key.(type) {
	case string:
		return k, true
	case int:
		return strconv.Itoa(k), true
	}
	return "", false
}

// entry reads the entry of a keyed variable that a computed name chooses.
func (a *access) entry(env Env, key any) (any, *EvalError) {
	name, ok := key.(string)
	if !ok {
		return nil, wrongType(a.text, "needs a string as name")
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
	return computed.items(env)
}

func (a *access) list(v any) (any, *EvalError) {
	switch v.(type) {
	case nil:
		return a.absent(a.text)
	case []any:
		return a.finish(v)
	case []string, []int:
		return v, nil
	}
	return nil, wrongType(a.text, "is "+describe(v)+", not a list")
}

func (a *access) guarded(v any) (any, *EvalError) {
	switch v.(type) {
	case nil:
		return nil, &EvalError{Reason: ReasonMissing, Subject: a.text, Detail: "has no value"}
	case uint64, json.Number:
		return nil, &EvalError{Reason: ReasonExpression, Subject: a.text, Detail: "is too large to compute with"}
	}
	if v == "" {
		return nil, &EvalError{Reason: ReasonEmpty, Subject: a.text, Detail: "is empty"}
	}
	return v, nil
}

// invoke returns the call of an internal function on an optional value.
func (r *resolver) invoke(name string, result Type, value ast.Node, a *access, more ...ast.Node) ast.Node {
	args := []ast.Node{&ast.IdentifierNode{Value: evaluationName}, &ast.IntegerNode{Value: len(r.accesses)}}
	r.accesses = append(r.accesses, a)
	if value != nil {
		args = append(args, value)
	}
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: name + result.suffix()}, Arguments: append(args, more...)}
}

func (r *resolver) asList(n ast.Node, text string, m mode) ast.Node {
	call := r.invoke(fnList, ListType(AnyType()), n, &access{typ: ListType(AnyType()), text: text, mode: m})
	setLocation(call, n.Location())
	return call
}

func setLocation(n ast.Node, l file.Location) {
	n.SetLocation(l)
	if call, ok := n.(*ast.CallNode); ok {
		call.Callee.SetLocation(l)
		for _, arg := range call.Arguments[:2] {
			arg.SetLocation(l)
		}
	}
}

// suffix chooses the variant of an internal function that returns the type.
func (t Type) suffix() string {
	switch t.kind {
	case kindString:
		return "_string"
	case kindBool:
		return "_bool"
	case kindInt:
		return "_int"
	case kindFloat:
		return "_float"
	case kindList:
		switch t.elem.kind {
		case kindString:
			return "_strings"
		case kindInt:
			return "_ints"
		}
		return "_list"
	case kindMap:
		return "_map"
	}
	return ""
}

// addInternal declares the internal functions, once per type of result.
func addInternal(c *conf.Config) {
	results := map[string]any{
		"":         new(func(any, int, ...any) any),
		"_string":  new(func(any, int, ...any) string),
		"_bool":    new(func(any, int, ...any) bool),
		"_int":     new(func(any, int, ...any) int),
		"_float":   new(func(any, int, ...any) float64),
		"_list":    new(func(any, int, ...any) []any),
		"_strings": new(func(any, int, ...any) []string),
		"_ints":    new(func(any, int, ...any) []int),
		"_map":     new(func(any, int, ...any) map[string]any),
	}
	for name, f := range internalFunctions {
		for suffix, signature := range results {
			expr.Function(name+suffix, internalCall(f), signature)(c)
		}
	}
}

func internalCall(f internalFunction) func(...any) (any, error) {
	return func(args ...any) (any, error) {
		e, ok := args[0].(*evaluation)
		number, isInt := args[1].(int)
		if !ok || !isInt {
			return nil, errors.New("no evaluation")
		}
		return e.call(f, e.program.accesses[number], args[2:])
	}
}

// call runs an internal function. A panic in it is one of the program, not of the
// expression, and is kept for run to pass on.
func (e *evaluation) call(f internalFunction, a *access, args []any) (any, error) {
	defer func() {
		if v := recover(); v != nil {
			e.panicked = v
			panic(v)
		}
	}()
	if err := e.payReading(args); err != nil {
		return nil, err
	}
	v, failure := f(e, a, args)
	if failure != nil {
		e.failure = failure
		return nil, failure
	}
	return v, e.payMaking(a, v)
}

// ownFunction replaces a builtin that would lose or invent values.
type ownFunction struct {
	call      func(any) (any, error)
	signature any
	mode      mode
	accepts   []kind
	result    Type
}

var ownFunctions = map[string]ownFunction{ //nolint:gochecknoglobals // a table that is only read
	"string": {ownString, new(func(any) string), modeKey, []kind{kindString, kindBool, kindInt, kindAny}, StringType()},
	"int":    {ownInt, new(func(any) int), modeValue, []kind{kindString, kindInt, kindFloat, kindAny}, IntType()},
	"keys":   {ownKeys, new(func(any) []string), modeValue, []kind{kindMap, kindAny}, ListType(StringType())},
	"values": {ownValues, new(func(any) []any), modeValue, []kind{kindMap, kindAny}, ListType(AnyType())},
}

func addOwn(c *conf.Config) {
	for name, f := range ownFunctions {
		call := f.call
		expr.Function(name, func(args ...any) (any, error) { return call(args[0]) }, f.signature)(c)
	}
}

var errNotExact = errors.New("is no integer")

func ownString(v any) (any, error) {
	switch x := v.(type) {
	case string:
		return x, nil
	case bool:
		return strconv.FormatBool(x), nil
	case int:
		return strconv.Itoa(x), nil
	case uint64:
		return strconv.FormatUint(x, 10), nil
	case json.Number:
		return x.String(), nil
	}
	return nil, fmt.Errorf("string() cannot take %s", describe(v))
}

// ownInt refuses what does not convert exactly.
func ownInt(v any) (any, error) {
	switch x := v.(type) {
	case int:
		return x, nil
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return int(x), nil
		}
	case string:
		if i, err := strconv.Atoi(x); err == nil {
			return i, nil
		}
	}
	return nil, fmt.Errorf("int() cannot take %s that %w", describe(v), errNotExact)
}

// ownKeys are those of a map of the program. Those of an object of JSON need the
// spelling of the expression.
func ownKeys(v any) (any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("keys() cannot take %s", describe(v))
	}
	return slices.Sorted(maps.Keys(m)), nil
}

// ownValues are in the order of the keys.
func ownValues(v any) (any, error) {
	if object, ok := v.(jsonObject); ok {
		return membersInOrder(object), nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("values() cannot take %s", describe(v))
	}
	list := make([]any, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, normalize(m[k]))
	}
	return list, nil
}
