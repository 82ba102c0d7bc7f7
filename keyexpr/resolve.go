package keyexpr

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// resolver replaces the variable references of one expression by calls of
// functions that read them, checks their names against the schema, and infers
// the type of every node that it can. The language's own checker runs after it.
type resolver struct {
	schema    *Schema
	source    string // of the expression, as written
	condition bool
	accesses  []*access
	used      map[string]bool
	spelling  spelling
	elements  []Type // of the enclosing predicates
	locals    []local
	problems  []problem
}

type local struct {
	name string
	typ  Type
}

// problem is an Error without the template around the expression.
type problem struct {
	offset              int // runes
	message, suggestion string
}

func (r *resolver) report(n ast.Node, suggestion, format string, args ...any) Type {
	r.problems = append(r.problems, problem{n.Location().From, fmt.Sprintf(format, args...), suggestion})
	return AnyType()
}

// in returns the mode of a child: conditions have only one, and under ?? it is
// the lenient one.
func (r *resolver) in(m mode) mode {
	if r.condition && m != modeLenient {
		return modeWhen
	}
	return m
}

// node resolves a node in place.
func (r *resolver) node(n *ast.Node, m mode) Type {
	m = r.in(m)
	switch x := (*n).(type) {
	case *ast.IdentifierNode, *ast.MemberNode, *ast.ChainNode, *ast.PointerNode:
		return r.reference(n, m)
	case *ast.SliceNode:
		return r.slice(n, x, m)
	case *ast.StringNode:
		r.spelling.add(x.Value)
		return StringType()
	case *ast.IntegerNode:
		return IntType()
	case *ast.FloatNode:
		return FloatType()
	case *ast.BoolNode:
		return BoolType()
	case *ast.NilNode:
		return AnyType()
	case *ast.UnaryNode:
		return r.unary(x)
	case *ast.BinaryNode:
		return r.binary(x, m)
	case *ast.ConditionalNode:
		return r.conditional(x, m)
	case *ast.CallNode:
		return r.call(x)
	case *ast.BuiltinNode:
		return r.builtin(x, m)
	case *ast.VariableDeclaratorNode:
		return r.declaration(x, m)
	case *ast.SequenceNode:
		return r.sequence(x, m)
	case *ast.ArrayNode:
		return r.array(x, m)
	case *ast.MapNode:
		return r.mapping(x)
	}
	return r.report(*n, "", "this cannot be used in a key")
}

func (r *resolver) reference(n *ast.Node, m mode) Type {
	c := r.chain(*n)
	return r.materialize(n, c, m)
}

// slice makes x[:] the list of all values, and other slices what the language
// makes of them.
func (r *resolver) slice(n *ast.Node, x *ast.SliceNode, m mode) Type {
	c := r.chain(x.Node)
	if c.item != nil && c.item.index == oneValue && c.keyed.Repeatable {
		c.item.index = allValues
		c.typ = ListType(StringType())
		c.text += "[:]"
	}
	typ := r.materialize(&x.Node, c, m)
	for _, bound := range []*ast.Node{&x.From, &x.To} {
		if *bound != nil {
			r.node(bound, modeValue)
		}
	}
	if x.From != nil || x.To != nil {
		return typ
	}
	if typ.kind == kindAny {
		*n = r.asList(x.Node, c.text, m)
		return ListType(typ)
	}
	if typ.kind != kindList && typ.kind != kindString {
		return r.report(x, "", "%s is %s and cannot be sliced", c.text, typ.describe())
	}
	*n = x.Node
	return typ
}

func (r *resolver) unary(x *ast.UnaryNode) Type {
	typ := r.node(&x.Node, modeValue)
	if x.Operator == "not" || x.Operator == "!" {
		r.fill(&x.Node, typ, BoolType())
		return BoolType()
	}
	return typ
}

func (r *resolver) conditional(x *ast.ConditionalNode, m mode) Type {
	if x.Cond == x.Exp1 { // a ?: b takes the second value for false, not for a missing one
		return r.report(x.Cond, textOf(x.Cond)+" ?? "+textOf(x.Exp2), "?: is not known here")
	}
	r.fill(&x.Cond, r.node(&x.Cond, modeValue), BoolType())
	return unify(r.node(&x.Exp1, m), r.node(&x.Exp2, m))
}

func (r *resolver) declaration(x *ast.VariableDeclaratorNode, m mode) Type {
	typ := r.node(&x.Value, modeValue)
	r.locals = append(r.locals, local{x.Name, typ})
	result := r.node(&x.Expr, m)
	r.locals = r.locals[:len(r.locals)-1]
	return result
}

func (r *resolver) sequence(x *ast.SequenceNode, m mode) Type {
	var typ Type
	for i := range x.Nodes {
		typ = r.node(&x.Nodes[i], m)
	}
	return typ
}

func (r *resolver) array(x *ast.ArrayNode, m mode) Type {
	elem := AnyType()
	for i := range x.Nodes {
		typ := r.node(&x.Nodes[i], m)
		if i == 0 {
			elem = typ
		}
		elem = unify(elem, typ)
	}
	return ListType(elem)
}

func (r *resolver) mapping(x *ast.MapNode) Type {
	for _, n := range x.Pairs {
		if pair, ok := n.(*ast.PairNode); ok {
			r.node(&pair.Key, modeValue)
			r.node(&pair.Value, modeValue)
		}
	}
	return MapType(AnyType())
}

// call resolves a call of one of this package's functions; there are no others
// and no methods.
func (r *resolver) call(x *ast.CallNode) Type {
	callee, ok := x.Callee.(*ast.IdentifierNode)
	if !ok {
		return r.method(x)
	}
	f, ok := ownFunctions[callee.Value]
	if !ok {
		return r.unknownFunction(callee)
	}
	if len(x.Arguments) != 1 {
		return r.report(callee, "", "%s takes one argument", callee.Value)
	}
	typ := r.node(&x.Arguments[0], f.mode)
	if !slices.Contains(f.accepts, typ.kind) {
		return r.report(callee, "", "%s cannot take %s", callee.Value, typ.describe())
	}
	return f.result
}

func (r *resolver) unknownFunction(callee *ast.IdentifierNode) Type {
	name := callee.Value
	if reason, off := offReasons[name]; off {
		return r.report(callee, "", "the function %s is off: %s", name, reason)
	}
	names := append(slices.Collect(maps.Keys(signatures)), slices.Collect(maps.Keys(ownFunctions))...)
	if similar := nearest(name, names); similar != "" {
		return r.report(callee, similar+"(…)", "unknown function %s", name)
	}
	return r.report(callee, "", "unknown function %s", name)
}

// builtin resolves a call of a builtin of the language.
func (r *resolver) builtin(x *ast.BuiltinNode, m mode) Type {
	sig, ok := signatures[x.Name]
	if !ok {
		return r.report(x, "", "the function %s is off: %s", x.Name, offReasons[x.Name])
	}
	if sig.args == argValue || m == modeLenient {
		m = r.in(modeValue)
	}
	types := make([]Type, len(x.Arguments))
	for i := range x.Arguments {
		switch arg := x.Arguments[i].(type) {
		case *ast.PredicateNode:
			types[i] = r.predicate(arg, r.predicateMode(x.Name, m), types[0].element())
		default:
			types[i] = r.argument(&x.Arguments[i], sig.collection && (i == 0 || x.Name == "concat"), m)
		}
	}
	return sig.result.of(types)
}

// predicateMode is that of the values a predicate returns: only those of map
// go into a key.
func (r *resolver) predicateMode(name string, m mode) mode {
	if name == "map" {
		return m
	}
	return modeValue
}

func (r *resolver) argument(n *ast.Node, collection bool, m mode) Type {
	text := textOf(*n)
	typ := r.node(n, m)
	if collection && typ.kind == kindAny {
		*n = r.asList(*n, text, m)
		return ListType(typ)
	}
	if r.condition && typ.kind == kindAny {
		r.fill(n, typ, StringType())
	}
	return typ
}

func (r *resolver) predicate(x *ast.PredicateNode, m mode, element Type) Type {
	if len(r.elements) == maxPredicates {
		return r.report(x, "", "predicates can be nested %d deep", maxPredicates)
	}
	r.elements = append(r.elements, element)
	defer func() { r.elements = r.elements[:len(r.elements)-1] }()
	return r.node(&x.Node, m)
}

// textOf is how messages name an operand. It must not be resolved yet.
func textOf(n ast.Node) string {
	return strings.ReplaceAll(n.String(), argumentAlias, ArgumentName)
}

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
	case a.kind == kindList || a.kind == kindMap:
		elem := unify(*a.elem, *b.elem)
		return Type{kind: a.kind, elem: &elem}
	}
	return a
}

func (k resultKind) of(args []Type) Type {
	first := AnyType()
	if len(args) > 0 {
		first = args[0]
	}
	switch k {
	case resultString:
		return StringType()
	case resultBool:
		return BoolType()
	case resultInt:
		return IntType()
	case resultFloat:
		return FloatType()
	case resultStrings:
		return ListType(StringType())
	case resultSame:
		return first
	case resultElement:
		return first.element()
	case resultMapped:
		return ListType(args[len(args)-1])
	case resultUnified:
		for _, a := range args {
			first = unify(first, a)
		}
		return first
	case resultAnything:
		return ListType(AnyType())
	}
	return AnyType()
}
