package keyexpr

import (
	"github.com/expr-lang/expr/vm"
)

// evaluation is one run of a program on a machine. A program pools them.
type evaluation struct {
	program  *program
	machine  vm.VM
	vars     map[string]any
	env      Env
	meter    meter
	failure  *EvalError
	panicked any // what computing a variable panicked with
}

// run evaluates the program for a request. What it costs is added to the meter.
func (p *program) run(env Env, m *meter) (any, *EvalError) {
	if p.plain != nil {
		return p.plain.value(env)
	}
	if !m.spend(env, p.price) {
		return nil, tooCostly(p.source)
	}
	e, ok := p.pool.Get().(*evaluation)
	if !ok {
		e = &evaluation{program: p}
		e.vars = map[string]any{evaluationName: e}
	}
	e.env, e.meter = env, *m
	v, err := e.machine.Run(p.code, e.vars)
	failure, panicked := e.failure, e.panicked
	modest := e.meter.spent.bytes-m.spent.bytes <= modestBytes
	*m = e.meter
	e.forget()
	if modest {
		p.pool.Put(e)
	}
	switch {
	case panicked != nil: // the machine takes panics for failures of the expression
		panic(panicked)
	case err == nil:
		return normalize(v), nil
	case failure == nil:
		return nil, p.failed(ofMachine(err))
	case failure.Reason == ReasonTooCostly:
		failure.Subject = p.source
	}
	return nil, failure
}

// modestBytes is what an evaluation may have allocated to be used again: its machine
// keeps the stack that it needed.
const modestBytes = 64 << 10

// forget drops what a pooled evaluation holds of a request.
func (e *evaluation) forget() {
	e.env, e.meter, e.failure, e.panicked = nil, meter{}, nil, nil
	clear(e.machine.Variables)
	clear(e.machine.Stack[:cap(e.machine.Stack)])
}

// failed is the failure of the expression for a reason, which may be empty.
func (p *program) failed(why string) *EvalError {
	detail := "cannot be computed for these values"
	if why != "" {
		detail += ": " + why
	}
	return failed(ReasonExpression, p.source, detail)
}
