package keyexpr

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"regexp/syntax"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/vm"
)

// metering puts the meter into the tree of one expression, after the language has
// checked and optimized it. The machine cannot be interrupted, so everything is paid
// for before it runs: what each node costs by itself with the start of the program,
// the turns of a loop with its beginning, and an operation whose cost depends on its
// operands by the function that takes its place.
type metering struct {
	program *program
	conf    *conf.Config
	done    map[ast.Node]metered // the optimizer may use a node twice
	kept    price                // of what is made once and used again
}

// metered is what became of a node.
type metered struct {
	node  ast.Node
	price price
}

// meter makes the program pay for what it does.
func (p *program) meter(root *ast.Node, c *conf.Config) {
	x := &metering{program: p, conf: c, done: map[ast.Node]metered{}}
	p.price = x.node(root).plus(x.kept)
}

// node meters a node in place. It returns what one evaluation of it costs at least.
func (x *metering) node(n *ast.Node) price {
	if *n == nil {
		return price{}
	}
	if d, ok := x.done[*n]; ok {
		*n = d.node
		return d.price
	}
	before := *n
	cost := nodePrice(before)
	if b, ok := before.(*ast.BuiltinNode); ok && loops[b.Name] {
		cost = cost.plus(x.loop(b))
	} else {
		for _, child := range children(before) {
			cost = cost.plus(x.node(child))
		}
		*n = x.operation(before)
	}
	x.done[before] = metered{*n, cost}
	x.done[*n] = metered{*n, cost}
	return cost
}

// loop makes a loop pay for its turns when it begins. It returns the cost of what
// runs once.
func (x *metering) loop(b *ast.BuiltinNode) price {
	once, turn := x.node(&b.Arguments[0]), loopTurn(b)
	if len(b.Arguments) > 1 {
		predicate, ok := b.Arguments[1].(*ast.PredicateNode)
		if !ok {
			return once.plus(price{dearest, 0}) // no program of the language
		}
		turn = turn.plus(x.node(&predicate.Node))
		if b.Name == "sortBy" {
			predicate.Node = x.call("sorted", predicate.Node, predicate.Node)
		}
	}
	turn = turn.plus(x.node(&b.Map))
	if len(b.Arguments) > 2 {
		once = once.plus(x.node(&b.Arguments[2]))
	}
	x.program.turns = append(x.program.turns, turn)
	b.Arguments[0] = x.call("loop", b.Arguments[0], number(len(x.program.turns)-1), b.Arguments[0])
	return once
}

// operation is the function that takes the place of an operation whose cost depends
// on its operands, or the node itself.
func (x *metering) operation(n ast.Node) ast.Node {
	switch n := n.(type) {
	case *ast.BinaryNode:
		return x.binary(n)
	case *ast.BuiltinNode:
		if _, ok := meteredFunctions[n.Name]; ok && !(n.Name == "len" && n.Arguments[0].Type().Kind() == reflect.Slice) {
			return x.call(n.Name, n, n.Arguments...)
		}
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); ok && ownFunctions[callee.Value].call != nil {
			return x.call(callee.Value, n, n.Arguments...)
		}
	}
	return n
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
	if _, ok := meteredFunctions[n.Operator]; !ok {
		return n
	}
	return x.call(n.Operator, n, left, right)
}

// matches keeps the pattern with the program; the resolver sees to it that it is a
// literal, and the language's checker that it is a pattern.
func (x *metering) matches(n *ast.BinaryNode) ast.Node {
	text, ok := n.Right.(*ast.StringNode)
	if !ok {
		return n
	}
	p, err := newPattern(text.Value)
	if err != nil {
		return n
	}
	x.program.patterns = append(x.program.patterns, p)
	x.kept = x.kept.plus(p.machine())
	return x.call(n.Operator, n, number(len(x.program.patterns)-1), n.Left)
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

func newPattern(text string) (pattern, error) {
	compiled, err := regexp.Compile(text)
	if err != nil {
		return pattern{}, err
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return pattern{}, err
	}
	code, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return pattern{}, err
	}
	return pattern{compiled, len(code.Inst)}, nil
}

// call returns the call of a metered function in the place of a node.
func (x *metering) call(name string, place ast.Node, args ...ast.Node) ast.Node {
	name = "$" + name
	if x.conf.Functions[name] == nil {
		x.conf.Functions[name] = &builtin.Function{Name: name, Func: meteredCall(meteredFunctions[name[1:]])}
	}
	call := &ast.CallNode{
		Callee:    &ast.IdentifierNode{Value: name},
		Arguments: append([]ast.Node{&ast.IdentifierNode{Value: evaluationName}}, args...),
	}
	call.SetNature(*place.Nature())
	call.SetLocation(place.Location())
	return call
}

func number(n int) ast.Node { return &ast.IntegerNode{Value: n} }

// children are the nodes below one that is no loop.
func children(n ast.Node) []*ast.Node {
	switch n := n.(type) {
	case *ast.UnaryNode:
		return []*ast.Node{&n.Node}
	case *ast.BinaryNode:
		return []*ast.Node{&n.Left, &n.Right}
	case *ast.SliceNode:
		return []*ast.Node{&n.Node, &n.From, &n.To}
	case *ast.CallNode:
		return pointers(n.Arguments)
	case *ast.BuiltinNode:
		return pointers(n.Arguments)
	case *ast.VariableDeclaratorNode:
		return []*ast.Node{&n.Value, &n.Expr}
	case *ast.SequenceNode:
		return pointers(n.Nodes)
	case *ast.ConditionalNode:
		return []*ast.Node{&n.Cond, &n.Exp1, &n.Exp2}
	case *ast.ArrayNode:
		return pointers(n.Nodes)
	case *ast.MapNode:
		return pointers(n.Pairs)
	case *ast.PairNode:
		return []*ast.Node{&n.Key, &n.Value}
	}
	return nil
}

func pointers(nodes []ast.Node) []*ast.Node {
	all := make([]*ast.Node, len(nodes))
	for i := range nodes {
		all[i] = &nodes[i]
	}
	return all
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

// meteredCall makes a function of the language of a metered one.
func meteredCall(f meteredFunction) func(...any) (any, error) {
	return func(args ...any) (any, error) {
		e, ok := args[0].(*evaluation)
		if !ok {
			return nil, errors.New("no evaluation")
		}
		return f(e, args[1:])
	}
}

// spend pays on behalf of the running expression.
func (e *evaluation) spend(work, bytes int) error {
	if e.meter.spend(e.env, price{work, bytes}) {
		return nil
	}
	e.failure = tooCostly("")
	return e.failure
}
