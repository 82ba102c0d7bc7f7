package keyexpr

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/parser"
)

// Limits of what one expression computes with. Every operation is linear in what it takes,
// and a predicate runs once per element, so that these bound its time and memory.
const (
	// maxText is the longest text in bytes that a function takes, and that becomes part of a key.
	maxText = 4 << 10
	// maxCollection is the most elements of a list.
	maxCollection = 1000
	// maxRoom is the most bytes of text that the expressions of one template or condition
	// take and make, all together: a predicate can use one text for each element.
	maxRoom = 256 << 10
)

// program is one compiled expression.
type program struct {
	node

	source string
	used   map[string]bool
}

// node is a part of an expression: its static type, and how to compute it.
type node struct {
	typ   Type
	eval  func(e *evaluation) any
	ref   *access // of a node that reads a variable and nothing else
	fixed bool    // for a literal
}

// evaluation is the state of one run of the expressions of a template or condition. What fails
// in it panics with an *[EvalError], which the template or condition returns. Package
// text/template does likewise.
type evaluation struct {
	env     Env
	source  string // of the program that runs
	room    int
	element any // of the list that a predicate runs over
}

func newEvaluation(env Env) *evaluation { return &evaluation{env: env, room: maxRoom} }

// run evaluates the program for a request.
func (p *program) run(e *evaluation) any {
	e.source = p.source
	return p.eval(e)
}

// spend takes bytes of text, or what takes as long, from the room of the evaluation.
func (e *evaluation) spend(n int) {
	if e.room -= n; e.room < 0 {
		panic(failed(ReasonTooLong, e.source, fmt.Sprintf("computes with more than %d KiB of text", maxRoom>>10)))
	}
}

// text returns the text that an operation takes.
func (e *evaluation) text(what string, v any) string {
	text, ok := v.(string)
	switch {
	case !ok:
		e.failf("%s needs a string, not %s", what, describe(v))
	case len(text) > maxText:
		panic(tooLong(e.source))
	}
	return e.made(text)
}

// made returns a text that an operation has made.
func (e *evaluation) made(text string) string {
	e.spend(len(text))
	return text
}

func tooLong(subject string) *EvalError {
	return failed(ReasonTooLong, subject, fmt.Sprintf("has a text of more than %d bytes", maxText))
}

// failf ends the evaluation because the expression has no value for this request. The message
// shows no value of the request.
func (e *evaluation) failf(format string, args ...any) {
	panic(failed(ReasonExpression, e.source, "cannot be computed for these values: "+fmt.Sprintf(format, args...)))
}

// compileExpression compiles a part or condition. Package expr parses it, with its own limits
// and messages. The checker makes nodes of the tree.
//
// meant is what to write where the expression has habits of another language.
func compileExpression(s segment, schema *Schema, condition bool) (p *program, meant string, problems []*Error) {
	c := &checker{schema: schema, source: s, condition: condition, used: map[string]bool{}}
	p = &program{source: strings.TrimSpace(s.text), used: c.used}
	tree, err := c.parse(s.text)
	switch {
	case err != nil:
		c.problems = []*Error{s.failed(err)}
	case isLarge(&tree.Node):
		return nil, "", []*Error{s.at(0, fmt.Sprintf("the expression has more than %d nodes; b of a < b < c counts twice", MaxNodes), "")}
	default:
		p.node = c.filled(c.node(tree.Node, modeKey), Type{kind: kindBool})
	}
	if len(c.problems) > 0 {
		meant, problems = c.translated()
		return nil, meant, problems
	}
	return p, "", nil
}

func (c *checker) parse(text string) (*parser.Tree, error) {
	config := conf.CreateNew()
	config.MaxNodes = MaxNodes
	return parser.ParseWithConfig(c.schema.renamed(text), config)
}

// nodeCount counts nodes. The parser shares b of a < b < c, so that a tree can have far more
// than it takes memory for.
type nodeCount int

// Visit implements [ast.Visitor].
func (n *nodeCount) Visit(*ast.Node) {
	if *n++; *n > MaxNodes {
		panic(n)
	}
}

func isLarge(root *ast.Node) (large bool) {
	n := new(nodeCount)
	defer func() { large = *n > MaxNodes; _ = large && recover() != nil }()
	ast.Walk(root, n)
	return false
}

// checker makes nodes of one expression: it checks names against the schema, infers types, and
// says what becomes of a value that is missing.
type checker struct {
	schema    *Schema
	source    segment
	condition bool
	used      map[string]bool
	element   *Type // of the enclosing predicate
	problems  []*Error
}

// report notes a problem at a node. It returns a node in its place.
func (c *checker) report(at ast.Node, suggestion, format string, args ...any) node {
	offset := byteOffset(c.source.text, at.Location().From)
	c.problems = append(c.problems, c.source.at(offset, fmt.Sprintf(format, args...), suggestion))
	return literal(AnyType(), nil)
}

// unknown adds to the last problem which name it is about.
func (c *checker) unknown(name, of string) {
	last := c.problems[len(c.problems)-1]
	last.Unknown, last.Of = name, of
}

func literal(typ Type, v any) node {
	return node{typ: typ, fixed: true, eval: func(*evaluation) any { return v }}
}

// in returns the mode of a child: conditions have only one, and under ?? it is
// the lenient one.
func (c *checker) in(m mode) mode {
	if c.condition && !m.lenient() {
		return modeWhen
	}
	return m
}

// node checks a node of the tree.
func (c *checker) node(n ast.Node, m mode) node {
	m = c.in(m)
	switch x := n.(type) {
	case *ast.IdentifierNode, *ast.MemberNode, *ast.ChainNode, *ast.PointerNode:
		return c.materialize(n, c.chain(n), m)
	case *ast.SliceNode:
		return c.slice(x, m)
	case *ast.StringNode:
		return literal(Type{kind: kindString, texts: &texts{literals: []*ast.StringNode{x}}}, x.Value)
	case *ast.IntegerNode:
		return literal(Type{kind: kindInt}, x.Value)
	case *ast.FloatNode:
		return literal(Type{kind: kindFloat}, x.Value)
	case *ast.BoolNode:
		return literal(Type{kind: kindBool}, x.Value)
	case *ast.NilNode:
		return literal(AnyType(), nil)
	case *ast.UnaryNode:
		return c.unary(x)
	case *ast.BinaryNode:
		return c.binary(x, m)
	case *ast.ConditionalNode:
		return c.conditional(x, m)
	case *ast.ArrayNode:
		return c.array(x, m)
	case *ast.BuiltinNode:
		return c.call(x, x.Name, x.Arguments, m)
	case *ast.CallNode:
		if callee, ok := x.Callee.(*ast.IdentifierNode); ok {
			return c.call(x, callee.Value, x.Arguments, m)
		}
		return c.report(x, "", "methods cannot be called: .%s(): register a variable for the value", methodName(x.Callee))
	}
	return c.report(n, "", "%s: write the value where it is used, or register a variable", foreignNode(n))
}

// foreignNode names what the parser knows, and this language does not.
func foreignNode(n ast.Node) string {
	switch n.(type) {
	case *ast.MapNode:
		return "a key or condition makes no objects"
	case *ast.BytesNode:
		return "bytes are not known here"
	}
	return "an expression is one value, without ;"
}

// operand checks an operand of which the language knows which types it may have. In a
// condition, an operand of unknown type has the first of them if it is missing.
func (c *checker) operand(n ast.Node, m mode, what string, kinds ...kind) node {
	return c.filled(c.only(n, c.node(n, m), what, kinds...), Type{kind: kinds[0]})
}

// only reports a node of another type.
func (c *checker) only(n ast.Node, x node, what string, kinds ...kind) node {
	if x.typ.kind != kindAny && !slices.Contains(kinds, x.typ.kind) {
		return c.report(n, "", "%s cannot take %s", what, x.typ.describe())
	}
	return x
}

// filled gives an operand of unknown type its empty value in a condition.
func (c *checker) filled(x node, like Type) node {
	empty := kinds[like.kind].empty
	if !c.condition || x.typ.kind != kindAny || like.kind == kindMap || empty == nil {
		return x
	}
	return node{typ: x.typ, eval: func(e *evaluation) any {
		if v := x.eval(e); v != nil {
			return v
		}
		return empty
	}}
}

// truth evaluates a node that has to be a bool.
func (x node) truth(e *evaluation, what string) bool {
	v := x.eval(e)
	is, ok := v.(bool)
	if !ok {
		e.failf("%s needs a bool, not %s", what, describe(v))
	}
	return is
}

// slice makes x[:] the list of all values, and x[a:b] a part of a text or list.
func (c *checker) slice(x *ast.SliceNode, m mode) node {
	ch := c.chain(x.Node)
	if ch.item != nil && ch.item.index == oneValue && ch.keyed.Repeatable {
		ch.item.index = allValues
		ch.typ = ListType(Type{kind: kindString})
		ch.text += "[:]"
	}
	whole := c.materialize(x.Node, ch, m)
	from, to := c.bound(x.From, 0), c.bound(x.To, math.MaxInt)
	switch {
	case whole.typ.kind != kindAny && whole.typ.kind != kindList && whole.typ.kind != kindString:
		return c.report(x, "", "%s is %s and cannot be sliced", ch.text, whole.typ.describe())
	case x.From == nil && x.To == nil && whole.typ.kind == kindAny:
		return c.asList(whole, ch.text, m)
	case x.From == nil && x.To == nil:
		return whole
	case whole.typ.kind == kindString: // a part of a text is any text
		whole.typ = Type{kind: kindString}
	}
	return node{typ: whole.typ, eval: func(e *evaluation) any {
		switch x := whole.eval(e).(type) {
		case nil:
			return nil
		case string:
			a, b := within(from, to, len(x))
			return x[a:b]
		case []any:
			a, b := within(from, to, len(x))
			return x[a:b]
		default:
			e.failf("%s cannot be sliced, only a string or a list", describe(x))
			return nil
		}
	}}
}

// bound is a bound of a slice, and what it is where it is not written.
func (c *checker) bound(n ast.Node, absent int) int {
	if n == nil {
		return absent
	}
	value, ok := integerOf(n)
	if !ok {
		c.report(n, "", "a bound of [a:b] is a literal integer: register a variable for a part that is chosen otherwise")
	}
	return value
}

// within keeps bounds inside of a length. Negative ones count from the end.
func within(from, to, length int) (int, int) {
	if from < 0 {
		from += length
	}
	if to < 0 {
		to += length
	}
	to = max(min(to, length), 0)
	return max(min(from, to), 0), to
}

func (c *checker) conditional(x *ast.ConditionalNode, m mode) node {
	switch {
	case !x.Ternary:
		return c.report(x, "", "if is not known here: write condition ? value : otherwise")
	case x.Cond == x.Exp1: // a ?: b takes the second value for false, not for a missing one
		return c.report(x.Cond, textOf(x.Cond)+" ?? "+textOf(x.Exp2), "?: is not known here")
	}
	cond := c.operand(x.Cond, modeValue, "the condition of ? :", kindBool)
	yes, no := c.node(x.Exp1, m), c.node(x.Exp2, m)
	return node{typ: c.either(yes.typ, no.typ), eval: func(e *evaluation) any {
		if cond.truth(e, "the condition of ? :") {
			return yes.eval(e)
		}
		return no.eval(e)
	}}
}

// array makes a list. One of literals is made once for all requests.
func (c *checker) array(x *ast.ArrayNode, m mode) node {
	elem, fixed := AnyType(), true
	elements := make([]node, len(x.Nodes))
	for i := range x.Nodes {
		elements[i] = c.node(x.Nodes[i], m)
		fixed = fixed && elements[i].fixed
		if i == 0 {
			elem = elements[i].typ
			continue
		}
		elem = unify(elem, elements[i].typ)
	}
	made := func(e *evaluation) any {
		list := make([]any, len(elements))
		for i := range elements {
			list[i] = elements[i].eval(e)
		}
		return list
	}
	if fixed {
		return literal(ListType(elem), made(nil))
	}
	return node{typ: ListType(elem), eval: made}
}

// textOf is how messages name an operand.
func textOf(n ast.Node) string {
	return strings.ReplaceAll(n.String(), argumentAlias, argumentName)
}

// element is the type of what is in a list or map.
func (t Type) element() Type {
	if t.kind == kindList || t.kind == kindMap {
		return *t.elem
	}
	return AnyType()
}

// unify is the type of a value that is either a or b.
func unify(a, b Type) Type {
	switch {
	case a.kind != b.kind:
		return AnyType()
	case a.kind == kindObject && a.object.Name() != b.object.Name():
		return AnyType()
	case a.kind == kindString:
		return Type{kind: kindString, texts: a.texts.or(b.texts)}
	case a.kind == kindList || a.kind == kindMap:
		elem := unify(*a.elem, *b.elem)
		return Type{kind: a.kind, elem: &elem}
	}
	return a
}
