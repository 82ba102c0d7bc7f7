package keyexpr

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/expr-lang/expr/ast"
)

// invoke returns the call that reads a reference in the place of a node.
func (r *resolver) invoke(place ast.Node, a *access, result Type, read reading, args ...ast.Node) ast.Node {
	return declare(r.conf, place, a.operation(read), result.goType(), args...)
}

// reading is a way to read a reference.
type reading func(a *access, env Env, args []any) (any, *EvalError)

func readVariable(a *access, env Env, _ []any) (any, *EvalError) { return a.value(env) }

func readText(a *access, _ Env, args []any) (any, *EvalError) { return a.settle(args[0]) }

func readSteps(a *access, _ Env, args []any) (any, *EvalError) {
	if args[0] == nil {
		return a.absent(a.steps[0].before(a, 0))
	}
	return a.follow(args[0])
}

// readElement takes the element that a computed name or index chooses.
func readElement(a *access, _ Env, args []any) (any, *EvalError) {
	v, failure := a.chosen(args[0], args[1])
	if failure != nil {
		return nil, failure
	}
	return a.settle(v)
}

func (a *access) chosen(base, key any) (any, *EvalError) {
	if base == nil {
		return nil, nil
	}
	s, needs := step{kind: stepKey}, "a string as name"
	name, ok := nameOf(key)
	s.name = name
	if isList(base) {
		s.kind, needs = stepIndex, "an integer as index"
		s.index, ok = key.(int)
	}
	if !ok {
		return nil, failed(ReasonWrongType, a.text, "needs "+needs)
	}
	v, ok := s.take(base)
	if !ok {
		return nil, failed(ReasonWrongType, a.text, "is taken from "+describe(base))
	}
	return v, nil
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

// readEntry reads the entry of a keyed variable that a computed name chooses.
func readEntry(a *access, env Env, args []any) (any, *EvalError) {
	name, ok := args[0].(string)
	if !ok {
		return nil, failed(ReasonWrongType, a.text, "needs a string as name")
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

func readList(a *access, _ Env, args []any) (any, *EvalError) {
	if list := args[0]; list != nil && !isList(list) {
		return nil, failed(ReasonWrongType, a.text, "is "+describe(list)+", not a list")
	}
	return a.settle(args[0])
}

// operation pays for a reading and keeps its failure. A panic in it is one of the
// program, not of the expression, and is kept for run to pass on.
func (a *access) operation(read reading) operation {
	return func(e *evaluation, args []any) (any, error) {
		defer func() {
			if v := recover(); v != nil {
				e.panicked = v
				panic(v)
			}
		}()
		if err := e.payReading(args); err != nil {
			return nil, err
		}
		v, failure := read(a, e.env, args)
		if failure != nil {
			e.failure = failure
			return nil, failure
		}
		return v, e.payMaking(a, v)
	}
}

// payReading pays for bringing a computed name into its canonical form.
func (e *evaluation) payReading(args []any) error {
	cost := price{}
	for i := range args {
		cost = cost.plus(price{10, 2}.times(len(textAt(args, i))))
	}
	return e.pay(cost)
}

// payMaking pays for a value that was made for the expression: those of Go types and
// of messages are converted, lists of the values of an entry are collected.
func (e *evaluation) payMaking(a *access, v any) error {
	if number, ok := v.(json.Number); ok {
		return e.pay(digitsPrice(number))
	}
	if !a.makes() {
		return nil
	}
	return e.pay(madePrice(v))
}

// makes reports whether a reference converts what it reads.
func (a *access) makes() bool {
	if a.item != nil || a.variable != nil && a.variable.Type.convert != nil {
		return true
	}
	for i := range a.steps {
		if a.steps[i].kind == stepField {
			return true
		}
	}
	return false
}

func madePrice(v any) price {
	made := price{}
	switch v := v.(type) {
	case string:
		made = price{len(v) / 2, 2 * len(v)}
	case json.Number:
		made = digitsPrice(v)
	case []any:
		for _, element := range v {
			made = made.plus(price{60, 48}).plus(madePrice(element))
		}
	case map[string]any:
		for _, value := range v {
			made = made.plus(price{200, 160}).plus(madePrice(value))
		}
	}
	return made
}
