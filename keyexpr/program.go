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
	"github.com/expr-lang/expr/conf"
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
	spelling spelling
	price    price     // of what runs once
	turns    []price   // of each loop
	patterns []pattern // of each matches
	pool     sync.Pool // of *evaluation
}

// compileExpression compiles the text of a part or condition: the language's
// parser, the resolver, the language's checker, optimizer and compiler.
func compileExpression(source string, schema *Schema, condition bool) (p *program, problems []problem) {
	defer func() {
		if v := recover(); v != nil { // a defect of the language's checker
			p, problems = nil, []problem{{0, "the expression cannot be compiled: " + firstLine(fmt.Sprint(v)), ""}}
		}
	}()
	r := &resolver{schema: schema, source: source, condition: condition, used: map[string]bool{}, spelling: spelling{}}
	c := newConf()
	tree, err := parser.ParseWithConfig(r.text(), c)
	if err != nil {
		if r.explain() {
			return nil, r.problems
		}
		return nil, []problem{problemOf(err)}
	}
	p = &program{source: source, typ: r.root(&tree.Node), used: r.used, accesses: r.accesses, spelling: r.spelling}
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	if p.plain = plainAccess(tree.Node, r.accesses); p.plain != nil && !condition {
		return p, nil
	}
	p.plain = nil
	if err := p.assemble(tree, c); err != nil {
		return nil, []problem{problemOf(err)}
	}
	return p, nil
}

// text is the source as the language's parser gets it.
func (r *resolver) text() string {
	if _, ok := r.schema.slots[ArgumentName]; ok {
		return renameArgument(r.source)
	}
	return r.source
}

// root resolves a whole expression.
func (r *resolver) root(n *ast.Node) Type {
	typ := r.node(n, r.in(modeKey))
	r.fill(n, typ, BoolType())
	return typ
}

// assemble makes the code of a resolved tree.
func (p *program) assemble(tree *parser.Tree, c *conf.Config) error {
	if _, err := checker.Check(tree, c); err != nil {
		return err
	}
	if p.typ.kind == kindAny {
		p.typ = refine(p.typ, tree.Node)
	}
	if err := optimizer.Optimize(&tree.Node, c); err != nil {
		return err
	}
	p.meter(&tree.Node, c)
	code, err := compiler.Compile(tree, c)
	if err != nil {
		return err
	}
	p.code = code
	return verify(code)
}

// newConf is the configuration of the language for one expression.
func newConf() *conf.Config {
	c := conf.CreateNew()
	c.MaxNodes = MaxNodes
	limitBuiltins(c)
	addInternal(c)
	addOwn(c)
	c.WithEnv(types.Map{evaluationName: types.Any})
	return c
}

// plainAccess returns the access if the whole expression is one reference.
func plainAccess(n ast.Node, accesses []*access) *access {
	call, ok := n.(*ast.CallNode)
	if !ok || len(call.Arguments) != 2 {
		return nil
	}
	callee, isName := call.Callee.(*ast.IdentifierNode)
	number, isNumber := call.Arguments[1].(*ast.IntegerNode)
	if !isName || !isNumber || !strings.HasPrefix(callee.Value, fnGet) {
		return nil
	}
	return accesses[number.Value]
}

// problemOf takes the position and the first line of an error of the language.
func problemOf(err error) problem {
	if positioned, ok := errors.AsType[*file.Error](err); ok {
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
var tokenKind = regexp.MustCompile(`(?:Operator|Bracket|Identifier|Number|String|Bytes)\((".*")\)`)

// constant reports whether the value is the same for all requests.
func (p *program) constant() bool { return len(p.used) == 0 }
