package keyexpr

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"

	"github.com/interlock-go/interlock/failpolicy"
)

// resolver replaces the variable references of one expression by calls of
// functions that read them, checks their names against the schema, and infers
// the type of every node that it can. The language's own checker runs after it.
type resolver struct {
	schema    *Schema
	source    segment
	condition bool
	conf      *conf.Config
	plain     map[ast.Node]*access // the calls that read nothing but a variable
	used      map[string]bool
	spelling  spelling
	elements  []Type // of the enclosing predicates
	locals    []local
	problems  []*Error
}

type local struct {
	name string
	typ  Type
}

func (r *resolver) report(n ast.Node, suggestion, format string, args ...any) Type {
	offset := byteOffset(r.source.text, n.Location().From)
	r.problems = append(r.problems, r.source.at(offset, fmt.Sprintf(format, args...), suggestion))
	return AnyType()
}

// unknown adds to the last problem which name it is about.
func (r *resolver) unknown(name, of string) {
	last := r.problems[len(r.problems)-1]
	last.Unknown, last.Of = name, of
}

// in returns the mode of a child: conditions have only one, and under ?? it is
// the lenient one.
func (r *resolver) in(m mode) mode {
	if r.condition && !m.lenient() {
		return modeWhen
	}
	return m
}

// node resolves a node in place.
func (r *resolver) node(n *ast.Node, m mode) Type {
	m = r.in(m)
	switch x := (*n).(type) {
	case *ast.IdentifierNode, *ast.MemberNode, *ast.ChainNode, *ast.PointerNode:
		return r.materialize(n, r.chain(*n), m)
	case *ast.SliceNode:
		return r.slice(n, x, m)
	case *ast.StringNode:
		r.spelling.add(x.Value)
		return Type{kind: kindString, texts: &texts{literals: []*ast.StringNode{x}}}
	case *ast.IntegerNode:
		return IntType()
	case *ast.FloatNode:
		return FloatType()
	case *ast.BoolNode:
		return BoolType()
	case *ast.NilNode:
		return AnyType()
	case *ast.ConstantNode: // from an earlier visit, like the calls of call
		return fromGoType(reflect.TypeOf(x.Value))
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
		return r.each(x, m)
	case *ast.ArrayNode:
		return r.array(x, m)
	case *ast.MapNode:
		return r.object(x)
	case *ast.PairNode:
		name := r.node(&x.Key, modeValue)
		r.node(&x.Value, modeValue)
		return name
	}
	return r.report(*n, "", "this cannot be used in a key")
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
		if typ.kind == kindString { // a part of a text is any text
			return StringType()
		}
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
	return r.either(r.node(&x.Exp1, m), r.node(&x.Exp2, m))
}

func (r *resolver) declaration(x *ast.VariableDeclaratorNode, m mode) Type {
	typ := r.node(&x.Value, modeValue)
	r.locals = append(r.locals, local{x.Name, typ})
	result := r.node(&x.Expr, m)
	r.locals = r.locals[:len(r.locals)-1]
	return result
}

// each resolves what is below a node. It returns the type of the last.
func (r *resolver) each(n ast.Node, m mode) (last Type) {
	for _, child := range children(n) {
		last = r.node(child, m)
	}
	return last
}

func (r *resolver) array(x *ast.ArrayNode, m mode) Type {
	elem := AnyType()
	for i := range x.Nodes {
		typ := r.node(&x.Nodes[i], m)
		if i == 0 {
			elem = typ
			continue
		}
		elem = unify(elem, typ)
	}
	return ListType(elem)
}

func (r *resolver) object(x *ast.MapNode) Type {
	typ := MapType(AnyType())
	typ.texts = &texts{}
	for i := range x.Pairs {
		typ.texts = typ.texts.or(r.node(&x.Pairs[i], modeValue).texts)
	}
	return typ
}

// call reports a call of what is no builtin; there are no other functions and no methods.
func (r *resolver) call(x *ast.CallNode) Type {
	callee, ok := x.Callee.(*ast.IdentifierNode)
	if !ok {
		return r.method(x)
	}
	if f, resolved := r.conf.Functions[callee.Value]; resolved { // of b in a < b < c, which is visited twice
		return fromGoType(f.Types[0].Out(0))
	}
	if reason, off := offReasons[callee.Value]; off {
		return r.report(callee, "", "the function %s is off: %s", callee.Value, reason)
	}
	similar := failpolicy.Nearest(callee.Value, slices.Collect(maps.Keys(signatures)))
	if similar != "" {
		similar += "(…)"
	}
	return r.report(callee, similar, "unknown function %s", callee.Value)
}

// builtin resolves a call of a builtin of the language.
func (r *resolver) builtin(x *ast.BuiltinNode, m mode) Type {
	sig, ok := signatures[x.Name]
	if !ok {
		return r.report(x, "", "the function %s is off: %s", x.Name, offReasons[x.Name])
	}
	types := r.arguments(x, sig, m)
	if kinds, ok := accepted[x.Name]; ok && len(types) > 0 && !slices.Contains(kinds, types[0].kind) {
		return r.report(x, "", "%s cannot take %s", x.Name, types[0].describe())
	}
	if sig.result == nil {
		return languageResult(x.Name, types)
	}
	return sig.result(types)
}

func (r *resolver) arguments(x *ast.BuiltinNode, sig signature, m mode) []Type {
	switch {
	case sig.args == argText:
		m = modeKey
	case sig.args == argValue || m.lenient():
		m = r.in(modeValue)
	}
	inPredicate := modeValue
	if x.Name == "map" { // the values of other predicates do not go into a key
		inPredicate = m
	}
	types := make([]Type, len(x.Arguments))
	for i := range x.Arguments {
		if predicate, ok := x.Arguments[i].(*ast.PredicateNode); ok {
			types[i] = r.predicate(predicate, inPredicate, types[0].element())
			continue
		}
		types[i] = r.argument(&x.Arguments[i], sig.collection && (i == 0 || x.Name == "concat"), m)
		if accepted[x.Name] == nil { // of these none takes every text
			r.fill(&x.Arguments[i], types[i], StringType())
		}
	}
	return types
}

func (r *resolver) argument(n *ast.Node, collection bool, m mode) Type {
	text := textOf(*n)
	typ := r.node(n, m)
	if collection && typ.kind == kindAny {
		*n = r.asList(*n, text, m)
		return ListType(typ)
	}
	return typ
}

func (r *resolver) asList(n ast.Node, text string, m mode) ast.Node {
	list := ListType(AnyType())
	return r.invoke(n, &access{typ: list, text: text, mode: m}, list, readList, n)
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
	case a.kind == kindString:
		return Type{kind: kindString, texts: a.texts.or(b.texts)}
	case a.kind == kindList || a.kind == kindMap:
		elem := unify(*a.elem, *b.elem)
		return Type{kind: a.kind, elem: &elem}
	}
	return a
}
