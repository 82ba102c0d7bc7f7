package keyexpr

import (
	"maps"
	"slices"
)

// Condition is a compiled boolean expression. It is immutable and safe for
// concurrent use.
type Condition struct {
	origin

	program *program
}

// CompileCondition compiles a bare boolean expression, without #{…}, against
// the variables of schema. Its error joins one *[Error] per problem.
//
// Missing values are empty in a condition: "", 0, false or an empty list, as
// the type of the variable or the other operand demands, and the zero of an enum. A field
// with a declared default has its default. Comparing with nil still shows whether a value is there.
func CompileCondition(expression string, schema *Schema) (*Condition, error) {
	if problem := checkSize(expression, "condition"); problem != nil {
		return nil, problem
	}
	if inner, ok := onePart(expression); ok {
		return nil, at(expression, 0, "a condition is a bare expression without #{…}", inner)
	}
	if schema == nil {
		schema = &Schema{}
	}
	p, problems := compileExpression(segment{template: expression, text: expression}, schema, true)
	if len(problems) > 0 {
		return nil, joined(problems)
	}
	if p.typ.kind != kindBool && p.typ.kind != kindAny {
		return nil, at(expression, 0, "the condition is "+p.typ.describe()+", not a bool", "")
	}
	return &Condition{origin: origin{expression, slices.Sorted(maps.Keys(p.used))}, program: p}, nil
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
	result, ok := v.(bool)
	if failure == nil && !ok {
		failure = failed(ReasonWrongType, "the condition", "is "+describe(v)+", not a bool")
	}
	if failure != nil {
		return false, c.fail(failure)
	}
	return result, nil
}
