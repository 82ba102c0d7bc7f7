package keyexpr

import (
	"fmt"
	"reflect"
	"regexp"
	"regexp/syntax"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/vm"
)

// metering puts the meter into the tree of one expression, after the language has
// checked it. The machine cannot be interrupted, so everything is paid
// for before it runs: what each node costs by itself with the start of the program,
// the turns of a loop with its beginning, and an operation whose cost depends on its
// operands by the function that takes its place.
type metering struct {
	program *program
	conf    *conf.Config
	kept    price // of what is made once and used again
}

// meter makes the program pay for what it does.
func (p *program) meter(root *ast.Node, c *conf.Config) {
	x := &metering{program: p, conf: c}
	p.price = x.node(root).plus(x.kept)
}

// node meters a node in place. It returns what one evaluation of it costs at least.
func (x *metering) node(n *ast.Node) price {
	if *n == nil {
		return price{}
	}
	cost := nodePrice(*n)
	if b, ok := (*n).(*ast.BuiltinNode); ok {
		if turn, loop := loops[b.Name]; loop {
			return cost.plus(x.loop(b, turn))
		}
	}
	for _, child := range children(*n) {
		cost = cost.plus(x.node(child))
	}
	*n = x.operation(*n)
	return cost
}

// loop makes a loop pay for its turns when it begins. It returns the cost of what
// runs once.
func (x *metering) loop(b *ast.BuiltinNode, turn price) price {
	once := x.node(&b.Arguments[0])
	if len(b.Arguments) > 1 {
		predicate, ok := b.Arguments[1].(*ast.PredicateNode)
		if !ok {
			return once.plus(price{dearest, 0}) // no program of the language
		}
		turn = turn.plus(x.node(&predicate.Node))
		if b.Name == "sortBy" {
			predicate.Node = x.call(predicate.Node, sorting, predicate.Node)
		}
	}
	if len(b.Arguments) > 2 {
		once = once.plus(x.node(&b.Arguments[2]))
	}
	b.Arguments[0] = x.call(b.Arguments[0], looping(turn), b.Arguments[0])
	return once
}

// operation is the function that takes the place of an operation whose cost depends
// on its operands, or the node itself.
func (x *metering) operation(n ast.Node) ast.Node {
	switch n := n.(type) {
	case *ast.BinaryNode:
		return x.binary(n)
	case *ast.ArrayNode:
		return constant(n)
	case *ast.SliceNode:
		if n.Node.Type().Kind() == reflect.Interface {
			n.Node = x.call(n.Node, sliced, n.Node)
		}
	case *ast.PairNode:
		if _, literal := n.Key.(*ast.StringNode); !literal {
			n.Key = x.call(n.Key, naming.operation("a name in {…}"), n.Key)
		}
	case *ast.BuiltinNode:
		if m, ok := meteredNames[n.Name]; ok && !(n.Name == "len" && n.Arguments[0].Type().Kind() == reflect.Slice) {
			return x.call(n, m.operation(n.Name), n.Arguments...)
		}
	}
	return n
}

// constant makes a list of literals once for all requests.
func constant(n *ast.ArrayNode) ast.Node {
	list := make([]any, len(n.Nodes))
	for i, element := range n.Nodes {
		switch literal := element.(type) {
		case *ast.StringNode:
			list[i] = literal.Value
		case *ast.IntegerNode:
			list[i] = literal.Value
		default:
			return n
		}
	}
	made := &ast.ConstantNode{Value: list}
	made.SetNature(*n.Nature())
	return made
}

func (x *metering) binary(n *ast.BinaryNode) ast.Node {
	left, right := n.Left, n.Right
	switch n.Operator {
	case "+":
		if isNumber(left) || isNumber(right) {
			return n
		}
	case "==", "!=":
		if isNil(left) || isNil(right) || isKnown(left) && isKnown(right) && (isSmall(left) || isSmall(right)) {
			return n
		}
	case "<", "<=", ">", ">=":
		if isSmall(left) || isSmall(right) {
			return n
		}
	case "startsWith", "endsWith":
		if isSmall(right) {
			return n
		}
	case "matches":
		return x.matches(n)
	}
	if m, ok := meteredNames[n.Operator]; ok {
		return x.call(n, m.operation(n.Operator), left, right)
	}
	return n
}

// matches keeps the pattern with the program.
func (x *metering) matches(n *ast.BinaryNode) ast.Node {
	p := newPattern(n.Right)
	x.kept = x.kept.plus(p.machine())
	return x.call(n, matchingOf(p).operation(n.Operator), n.Left)
}

// pattern is a regular expression and the length of its program, which its time for
// a character grows with.
type pattern struct {
	regexp *regexp.Regexp
	length int
}

// machine is the price of the memory that matching takes, which package regexp keeps for
// the next time.
func (p pattern) machine() price { return price{0, 192 * p.length} }

// newPattern compiles a pattern. The resolver sees to it that it is a literal, and the
// language's checker that it is a pattern.
func newPattern(n ast.Node) pattern {
	text, _ := n.(*ast.StringNode)                   //nolint:errcheck // see above
	tree, _ := syntax.Parse(text.Value, syntax.Perl) //nolint:errcheck // see above
	code, _ := syntax.Compile(tree.Simplify())       //nolint:errcheck // see above
	return pattern{regexp.MustCompile(text.Value), len(code.Inst)}
}

// call returns the call of an operation in the place of a node.
func (x *metering) call(place ast.Node, do operation, args ...ast.Node) ast.Node {
	call := declare(x.conf, place, do, place.Type(), args...)
	call.SetNature(*place.Nature())
	return call
}

// isNumber reports whether a node is known to be a number.
func isNumber(n ast.Node) bool {
	switch n.Type().Kind() {
	case reflect.Int, reflect.Float64:
		return true
	}
	return false
}

// isKnown reports whether a node is known to be a text, a number or a bool.
func isKnown(n ast.Node) bool {
	switch n.Type().Kind() {
	case reflect.String, reflect.Bool:
		return true
	}
	return isNumber(n)
}

// isSmall reports whether comparing with a node takes no time to speak of: it is a
// literal, a number or a bool.
func isSmall(n ast.Node) bool {
	switch n.(type) {
	case *ast.StringNode, *ast.NilNode, *ast.BoolNode:
		return true
	}
	return isNumber(n) || n.Type().Kind() == reflect.Bool
}

// verify refuses code with an operation that has no price. It is what keeps a later
// version of the language from bringing one in unseen.
func verify(code *vm.Program) error {
	for _, op := range code.Bytecode {
		if !paidOpcodes[op] {
			return fmt.Errorf("the expression uses an operation that has no price (%d)", op)
		}
	}
	return nil
}

// pay pays on behalf of the running expression.
func (e *evaluation) pay(p price) error {
	if e.meter.spend(e.env, p) {
		return nil
	}
	e.failure = tooCostly("")
	return e.failure
}
