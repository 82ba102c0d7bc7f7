package keyexpr

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/optimizer"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"
)

// program is one compiled expression. A plain reference has only an access and
// never meets the machine.
type program struct {
	source   string
	plain    *access
	code     *vm.Program
	accesses []*access
	typ      Type
	used     map[string]bool
	pool     sync.Pool // of *evaluation
}

// evaluation is one run of a program on a machine.
type evaluation struct {
	machine  vm.VM
	vars     map[string]any
	env      Env
	accesses []*access
	failure  *EvalError
}

// compileExpression compiles the text of a part or condition.
func compileExpression(source string, schema *Schema, condition bool) (p *program, problems []problem) {
	defer func() {
		if v := recover(); v != nil { // a defect of the language's checker
			p, problems = nil, []problem{{0, "the expression cannot be compiled: " + firstLine(fmt.Sprint(v)), ""}}
		}
	}()
	r := &resolver{schema: schema, source: source, condition: condition, used: map[string]bool{}}
	text := source
	if _, ok := schema.slots[ArgumentName]; ok {
		text = renameArgument(source)
	}
	c := newConf()
	addInternal(c)
	addOwn(c)
	c.WithEnv(types.Map{evaluationName: types.Any})
	tree, err := parser.ParseWithConfig(text, c)
	if err != nil {
		if r.explain() {
			return nil, r.problems
		}
		return nil, []problem{problemOf(err)}
	}
	root := modeKey
	if condition {
		root = modeWhen
	}
	typ := r.node(&tree.Node, root)
	if condition {
		r.fill(&tree.Node, typ, BoolType())
	}
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	p = &program{source: source, accesses: r.accesses, typ: typ, used: r.used}
	if p.plain = plainAccess(tree.Node, r.accesses); p.plain != nil && !condition {
		return p, nil
	}
	p.plain = nil
	if _, err := checker.Check(tree, c); err != nil {
		return nil, []problem{problemOf(err)}
	}
	if typ.kind == kindAny {
		p.typ = refine(typ, tree.Node)
	}
	if err := optimizer.Optimize(&tree.Node, c); err != nil {
		return nil, []problem{problemOf(err)}
	}
	if p.code, err = compiler.Compile(tree, c); err != nil {
		return nil, []problem{problemOf(err)}
	}
	p.pool.New = func() any { return p.newEvaluation() }
	return p, nil
}

// plainAccess returns the access if the whole expression is one reference.
func plainAccess(n ast.Node, accesses []*access) *access {
	call, ok := n.(*ast.CallNode)
	if !ok {
		return nil
	}
	callee, isName := call.Callee.(*ast.IdentifierNode)
	number, isInt := ast.Node(nil), false
	if len(call.Arguments) == 2 {
		number = call.Arguments[1]
	}
	n2, isInt := number.(*ast.IntegerNode)
	if !isName || !isInt || !strings.HasPrefix(callee.Value, fnGet) {
		return nil
	}
	return accesses[n2.Value]
}

// problemOf takes the position and the first line of an error of the language.
func problemOf(err error) problem {
	var positioned *file.Error
	if errors.As(err, &positioned) {
		return problem{positioned.From, plainWords(positioned.Message), ""}
	}
	return problem{0, plainWords(firstLine(err.Error())), ""}
}

// plainWords hides the names that the resolver gave to things.
func plainWords(message string) string {
	message = strings.ReplaceAll(message, argumentAlias, ArgumentName)
	message = strings.TrimPrefix(message, "compilation failed: ")
	if message == "unexpected token EOF" {
		return "the expression ends too early"
	}
	return tokenKind.ReplaceAllString(message, "$1")
}

// tokenKind is how the language's parser prints a token.
var tokenKind = regexp.MustCompile(`(?:Operator|Bracket|Identifier|Number|String|token Bytes)\((".*")\)`)

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
	e.env, e.failure = env, nil
	v, err := e.machine.Run(p.code, e.vars)
	failure := e.failure
	e.env, e.failure = nil, nil
	clear(e.machine.Variables)
	p.pool.Put(e)
	switch {
	case err == nil:
		return normalize(v), nil
	case failure != nil:
		return nil, failure
	}
	return nil, p.expressionError(err)
}

func (p *program) expressionError(err error) *EvalError {
	detail := "cannot be computed for these values"
	var positioned *file.Error
	if errors.As(err, &positioned) {
		detail += ": " + firstLine(positioned.Message)
	}
	return &EvalError{Reason: ReasonExpression, Subject: p.source, Detail: detail}
}

// constant reports whether the value is the same for all requests.
func (p *program) constant() bool { return len(p.used) == 0 }
