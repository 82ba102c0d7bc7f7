package keyexpr

import (
	"errors"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// evaluation is one run of a program on a machine. A program pools them.
type evaluation struct {
	machine  vm.VM
	vars     map[string]any
	env      Env
	accesses []*access
	failure  *EvalError
	panicked any // what computing a variable panicked with
}

func (p *program) newEvaluation() *evaluation {
	e := &evaluation{accesses: p.accesses}
	e.vars = map[string]any{evaluationName: e}
	return e
}

// run evaluates the program for a request.
func (p *program) run(env Env) (any, *EvalError) {
	if p.plain != nil {
		return p.plain.value(env)
	}
	e, ok := p.pool.Get().(*evaluation)
	if !ok {
		e = p.newEvaluation()
	}
	e.env = env
	v, err := e.machine.Run(p.code, e.vars)
	failure, panicked := e.failure, e.panicked
	e.forget()
	p.pool.Put(e)
	switch {
	case panicked != nil: // the machine takes panics for failures of the expression
		panic(panicked)
	case err == nil:
		return normalize(v), nil
	case failure != nil:
		return nil, failure
	}
	return nil, p.expressionError(err)
}

// forget drops what a pooled evaluation holds of a request.
func (e *evaluation) forget() {
	e.env, e.failure, e.panicked = nil, nil, nil
	clear(e.machine.Variables)
	clear(e.machine.Stack[:cap(e.machine.Stack)])
}

func (p *program) expressionError(err error) *EvalError {
	detail := "cannot be computed for these values"
	if positioned, ok := errors.AsType[*file.Error](err); ok {
		detail += ": " + firstLine(positioned.Message)
	}
	return &EvalError{Reason: ReasonExpression, Subject: p.source, Detail: detail}
}
