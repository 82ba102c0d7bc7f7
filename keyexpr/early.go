package keyexpr

import "slices"

// CheckWithout evaluates the parts that read none of the variables named, and returns
// the error of the first that fails, an *[EvalError]: what can be known of a key before
// those variables are there, such as the body of a request. Nil says that nothing is
// wrong so far.
func (t *Template) CheckWithout(env Env, variables ...string) error {
	for i := range t.pieces {
		p := &t.pieces[i]
		if p.program == nil || slices.ContainsFunc(variables, p.program.uses) {
			continue
		}
		var m meter
		var failure *EvalError
		if p.list {
			_, failure = p.elements(env, &m)
		} else {
			_, failure = t.appendPart(nil, p, env, &m)
		}
		if failure != nil && failure.Reason != ReasonTooCostly { // a body adds to what a request may cost
			return t.fail(failure)
		}
	}
	return nil
}

func (p *program) uses(variable string) bool { return p.used[variable] }
