package keyexpr

import "fmt"

// node is a compiled expression or a part of one: its static type and the function that computes
// it.
type node struct {
	typ     Type
	eval    func(e *evaluation) any
	ref     *access // the reference, if the node only reads a variable
	literal bool
}

func literalNode(typ Type, v any) node {
	return node{typ: typ, literal: true, eval: func(*evaluation) any { return v }}
}

// program is a compiled expression.
type program struct {
	node

	source string
	used   map[string]bool // the variables that the program reads
}

// run evaluates the program for a request.
func (p *program) run(e *evaluation) any {
	e.source = p.source
	return p.eval(e)
}

func (p *program) uses(variable string) bool { return p.used[variable] }

// evaluation is the state of one run of the expressions of a template or condition. A failure
// panics with an *[EvalError], which origin.recoverError returns as an error. Package
// text/template does the same.
type evaluation struct {
	env     Env
	source  string // the source of the running program
	room    int    // the bytes of text that are left
	element any    // the element that a predicate is computed for
}

func newEvaluation(env Env) *evaluation { return &evaluation{env: env, room: maxRoom} }

// spend takes n bytes of text from the room. An operation that reads no text spends the number of
// bytes that take as long to process.
func (e *evaluation) spend(n int) {
	if e.room -= n; e.room < 0 {
		panic(newEvalError(ReasonTooLong, e.source, fmt.Sprintf("computes with more than %d KiB of text", maxRoom>>10)))
	}
}

// comparisonCost is the cost of a comparison in bytes of text, in addition to the texts that it
// compares.
const comparisonCost = 16

// text returns the text that an operation takes.
func (e *evaluation) text(operation string, v any) string {
	text, ok := v.(string)
	switch {
	case !ok:
		e.failf("%s needs a string, not %s", operation, describe(v))
	case len(text) > maxText:
		panic(tooLongError(e.source))
	}
	return e.spendText(text)
}

// spendText returns a text after taking its length from the room.
func (e *evaluation) spendText(text string) string {
	e.spend(len(text))
	return text
}

// failf stops the evaluation because the expression has no value for this request. The message
// shows no value of the request.
func (e *evaluation) failf(format string, args ...any) {
	panic(newEvalError(ReasonExpression, e.source, "cannot be computed for these values: "+fmt.Sprintf(format, args...)))
}

// evalBool evaluates a node that must be a bool. operation names it in the message.
func (n node) evalBool(e *evaluation, operation string) bool {
	v := n.eval(e)
	is, ok := v.(bool)
	if !ok {
		e.failf("%s needs a bool, not %s", operation, describe(v))
	}
	return is
}

// withDefault returns a node that yields the given value where the value of n is missing.
func (n node) withDefault(value any) node {
	return node{typ: n.typ, eval: func(e *evaluation) any {
		if v := n.eval(e); v != nil {
			return v
		}
		return value
	}}
}

// listOf returns a node for a list. It fails for a request whose value is not a list.
func (n node) listOf(text string, m mode) node {
	a := &access{typ: ListType(AnyType()), text: text, mode: m}
	return node{typ: a.typ, eval: func(e *evaluation) any {
		v := n.eval(e)
		if v != nil && !isList(v) {
			panic(newEvalError(ReasonWrongType, text, "is "+describe(v)+", not a list"))
		}
		return a.settle(v)
	}}
}

// mandatory returns a node that fails if the value of n is missing or empty.
func (n node) mandatory(text string) node {
	a := &access{text: text, mode: modeText}
	return node{typ: n.typ, eval: func(e *evaluation) any { return a.settle(n.eval(e)) }}
}

// elementNode returns the node that reads the element of a predicate.
func elementNode(typ Type) node {
	return node{typ: typ, eval: func(e *evaluation) any {
		if list, lazy := e.element.(lazyList); lazy {
			e.spend(comparisonCost * list.n)
		}
		return whole(e.element, e.source)
	}}
}

// readNode returns the node that reads a reference. If the reference does not start at a
// variable, base computes the value that it starts at.
func readNode(a *access, base node) node {
	if a.variable == nil && len(a.steps) == 0 {
		return node{typ: a.typ, eval: base.eval}
	}
	n := node{typ: a.typ}
	if a.variable != nil {
		n.ref = a
	}
	converts := a.converts()
	n.eval = func(e *evaluation) any {
		var v any
		if a.variable != nil {
			v = a.value(e.env)
		} else if v = base.eval(e); v == nil {
			v = a.absent(a.textBefore(0))
		} else {
			v = a.follow(v)
		}
		if converts {
			e.spend(conversionCost(v))
		}
		return v
	}
	return n
}
