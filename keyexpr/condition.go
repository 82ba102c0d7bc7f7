package keyexpr

import (
	"errors"
	"maps"
	"slices"
)

// Condition is a compiled boolean expression. It is immutable and safe for
// concurrent use.
type Condition struct {
	source  string
	program *program
	used    []string
}

// CompileCondition compiles a bare boolean expression, without #{…}, against
// the variables of schema. Its error joins one *[Error] per problem.
//
// Missing values are empty in a condition: "", 0, false or an empty list, as
// the type of the variable or the other operand demands. Comparing with nil
// still tells whether a value is there.
func CompileCondition(expression string, schema *Schema) (*Condition, error) {
	if problem := checkSize(expression, "condition"); problem != nil {
		return nil, problem
	}
	whole := segment{text: expression}
	if inner, ok := onePart(expression); ok {
		return nil, at(expression, 0, "a condition is a bare expression without #{…}", inner)
	}
	p, problems := compileExpression(expression, orEmpty(schema), true)
	var all []error
	for _, problem := range problems {
		all = append(all, problem.in(expression, whole))
	}
	if len(all) > 0 {
		return nil, errors.Join(all...)
	}
	if p.typ.kind != kindBool && p.typ.kind != kindAny {
		return nil, at(expression, 0, "the condition is "+p.typ.describe()+", not a bool", "")
	}
	return &Condition{source: expression, program: p, used: slices.Sorted(maps.Keys(p.used))}, nil
}

// onePart returns the expression of a condition written as a template.
func onePart(expression string) (string, bool) {
	segments, problem := split(expression)
	if problem == nil && len(segments) == 1 && segments[0].isExpr {
		return segments[0].text, true
	}
	return "", false
}

// Eval evaluates the condition for a request. The error is an *[EvalError].
func (c *Condition) Eval(env Env) (bool, error) {
	var m meter
	v, failure := c.program.run(env, &m)
	if failure != nil {
		failure.Template = c.source
		return false, failure
	}
	result, ok := v.(bool)
	if !ok {
		failure = wrongType("the condition", "is "+describe(v)+", not a bool")
		failure.Template = c.source
		return false, failure
	}
	return result, nil
}

// Uses reports whether the condition reads a variable.
func (c *Condition) Uses(variable string) bool {
	_, found := slices.BinarySearch(c.used, variable)
	return found
}

// Variables returns the variables that the condition reads, sorted.
func (c *Condition) Variables() []string { return slices.Clone(c.used) }

// String returns the source of the condition.
func (c *Condition) String() string { return c.source }
