package keyexpr

// Condition is a compiled boolean expression. It is immutable and safe for
// concurrent use.
type Condition struct {
	source string
}

// CompileCondition compiles a bare boolean expression, without #{…}, against
// the variables of schema. Its error joins one *[Error] per problem.
//
// Missing values are empty in a condition: "", 0, false or an empty list, as
// the type of the variable or the other operand demands. Comparing with nil
// still tells whether a value is there.
func CompileCondition(expression string, schema *Schema) (*Condition, error) {
	return nil, at(expression, 0, "not implemented", "")
}

// Eval evaluates the condition for a request. The error is an *[EvalError].
func (c *Condition) Eval(env Env) (bool, error) { return false, nil }

// Uses reports whether the condition reads a variable.
func (c *Condition) Uses(variable string) bool { return false }

// Variables returns the variables that the condition reads, sorted.
func (c *Condition) Variables() []string { return nil }

// String returns the source of the condition.
func (c *Condition) String() string { return c.source }
