package keyexpr

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
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
	typ      Type
	used     map[string]bool
	spelling spelling
	price    price     // of what runs once
	pool     sync.Pool // of *evaluation
}

// compileExpression compiles a part or condition: the language's
// parser, the resolver, the language's checker and compiler. Its optimizer is left out:
// what it makes would have to be paid for, too.
func compileExpression(s segment, schema *Schema, condition bool) (p *program, problems []*Error) {
	defer func() {
		if v := recover(); v != nil { // a defect of the language's checker
			p, problems = nil, []*Error{s.at(0, "the expression cannot be compiled: "+firstLine(fmt.Sprint(v)), "")}
		}
	}()
	c := newConf()
	r := &resolver{
		schema: schema, source: s, condition: condition, conf: c,
		plain: map[ast.Node]*access{}, used: map[string]bool{}, spelling: spelling{},
	}
	tree, err := parser.ParseWithConfig(r.text(), c)
	if err != nil {
		if r.explain() {
			return nil, r.problems
		}
		return nil, []*Error{s.failed(err)}
	}
	if size(tree.Node, map[ast.Node]int{}) > MaxNodes {
		return nil, []*Error{s.at(0, fmt.Sprintf("the expression has more than %d nodes; b of a < b < c counts twice", MaxNodes), "")}
	}
	p = &program{source: strings.TrimSpace(s.text), typ: r.root(&tree.Node), used: r.used, spelling: r.spelling}
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	if plain, ok := r.plain[tree.Node]; ok && !condition {
		p.plain = plain
		return p, nil
	}
	if err := p.assemble(tree, c); err != nil {
		return nil, []*Error{s.failed(err)}
	}
	return p, nil
}

// text is the source as the language's parser gets it.
func (r *resolver) text() string {
	if _, ok := r.schema.slots[ArgumentName]; ok {
		return renameArgument(r.source.text)
	}
	return r.source.text
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
		p.typ = fromGoType(tree.Node.Type())
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
	c.WithEnv(types.Map{evaluationName: types.Any})
	return c
}

// plainWords hides the names that the resolver gave to things, and what the language
// makes of none.
func plainWords(message string) string {
	message = strings.ReplaceAll(message, argumentAlias, ArgumentName)
	message = inWords.Replace(strings.ReplaceAll(message, "%!s(<nil>)", "nil"))
	message = strings.TrimPrefix(message, "compilation failed: ")
	if message == "unexpected token EOF" {
		return "the expression ends too early"
	}
	return tokenKind.ReplaceAllString(message, "$1")
}

// tokenKind is how the language's parser prints a token.
var tokenKind = regexp.MustCompile(`(?:Operator|Bracket|Identifier|Number|String|Bytes)\((".*")\)`)
