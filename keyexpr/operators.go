package keyexpr

import "github.com/expr-lang/expr/ast"

// binary resolves an operator and its operands.
func (r *resolver) binary(x *ast.BinaryNode, m mode) Type {
	if r.dashed(x) {
		return StringType()
	}
	switch x.Operator {
	case "??":
		return r.coalesce(x, m)
	case "==", "!=":
		return r.equality(x)
	case "+":
		return r.plus(x, m)
	}
	if _, literal := x.Right.(*ast.StringNode); x.Operator == "matches" && !literal {
		return r.report(x, textOf(x.Left)+` matches "^[a-z]+", or ==, contains, startsWith, endsWith for a text that is known later`,
			"the pattern of matches must be a literal text: one that comes with a request could cost any time")
	}
	left, right := r.node(&x.Left, modeValue), r.node(&x.Right, modeValue)
	if r.hasObject(x, left, right) {
		return AnyType()
	}
	switch x.Operator {
	case "and", "&&", "or", "||":
		r.fill(&x.Left, left, BoolType())
		r.fill(&x.Right, right, BoolType())
		return BoolType()
	case "contains", "startsWith", "endsWith", "matches":
		r.fill(&x.Left, left, StringType())
		r.fill(&x.Right, right, StringType())
		return BoolType()
	case "in":
		inNames(x)
		inRange(x, left)
		r.among(x, left, right)
		r.fill(&x.Right, right, ListType(AnyType()))
		return BoolType()
	case "<", "<=", ">", ">=":
		r.fillBoth(x, left, right)
		r.inOrder(x, left, right)
		return BoolType()
	case "..":
		return ListType(IntType())
	}
	r.fill(&x.Left, left, IntType())
	r.fill(&x.Right, right, IntType())
	return r.arithmetic(x, left, right)
}

// inNames makes name in keys(object) the same as name in object, which knows all
// spellings of a name.
func inNames(x *ast.BinaryNode) {
	if call, ok := x.Right.(*ast.BuiltinNode); ok && call.Name == "keys" && len(call.Arguments) == 1 {
		x.Right = call.Arguments[0]
	}
}

// among reports what is never among the elements of a list or the names of a map.
func (r *resolver) among(x *ast.BinaryNode, left, right Type) {
	if right.kind == kindList {
		right = right.element()
		r.hasObject(x, right)
	}
	r.meet(left, right)
}

// inRange makes n in 1..9 two comparisons, which need no list.
func inRange(x *ast.BinaryNode, left Type) {
	bounds, ok := x.Right.(*ast.BinaryNode)
	if ok && bounds.Operator == ".." && left.kind == kindInt && isInteger(bounds.Left) && isInteger(bounds.Right) {
		from := &ast.BinaryNode{Operator: ">=", Left: x.Left, Right: bounds.Left}
		to := &ast.BinaryNode{Operator: "<=", Left: x.Left, Right: bounds.Right}
		from.SetLocation(bounds.Location())
		to.SetLocation(bounds.Location())
		x.Operator, x.Left, x.Right = "and", from, to
	}
}

func isInteger(n ast.Node) bool {
	_, ok := n.(*ast.IntegerNode)
	return ok
}

func (r *resolver) arithmetic(x *ast.BinaryNode, left, right Type) Type {
	switch {
	case x.Operator == "/" || x.Operator == "**" || x.Operator == "^":
		return FloatType()
	case x.Operator == "%":
		return IntType()
	case left.kind == kindString || right.kind == kindString:
		return StringType()
	case left.kind == kindFloat || right.kind == kindFloat:
		return FloatType()
	}
	return unify(left, right)
}

// coalesce lets the left side be missing. A bad variable name there may be the
// habit of another language, but is an error like anywhere else.
func (r *resolver) coalesce(x *ast.BinaryNode, m mode) Type {
	left := r.node(&x.Left, modeLenient)
	right := r.node(&x.Right, m)
	if isNil(x.Right) {
		return left
	}
	return r.either(left, right)
}

func (r *resolver) equality(x *ast.BinaryNode) Type {
	m := modeValue
	if isNil(x.Left) || isNil(x.Right) {
		m = modePresence
	}
	left, right := r.node(&x.Left, m), r.node(&x.Right, m)
	if m != modePresence && !r.hasObject(x, left, right) {
		r.fillBoth(x, left, right)
		r.meet(left, right)
	}
	return BoolType()
}

func isNil(n ast.Node) bool {
	_, ok := n.(*ast.NilNode)
	return ok
}

// plus guards the operands of a concatenation in a key: an empty one would
// vanish in the text, and requests without it would share a lock.
func (r *resolver) plus(x *ast.BinaryNode, m mode) Type {
	inKey := m == modeKey || m == modeText
	m = modeValue
	if inKey {
		m = modeText
	}
	texts := [2]string{textOf(x.Left), textOf(x.Right)}
	left, right := r.node(&x.Left, m), r.node(&x.Right, m)
	if r.hasObject(x, left, right) {
		return AnyType()
	}
	if inKey {
		r.guard(&x.Left, left, texts[0])
		r.guard(&x.Right, right, texts[1])
	}
	r.fillBoth(x, left, right)
	return r.arithmetic(x, left, right)
}

// guard makes a computed operand of a concatenation an error if it is empty or
// nil. References are guarded by their mode, literals need it not.
func (r *resolver) guard(n *ast.Node, typ Type, text string) {
	switch x := (*n).(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode:
		return
	case *ast.BinaryNode:
		if x.Operator == "+" {
			return
		}
	}
	if typ.kind == kindString || typ.kind == kindAny {
		*n = r.invoke(*n, &access{text: text, mode: modeText}, typ, readText, *n)
	}
}

func (r *resolver) hasObject(x *ast.BinaryNode, operands ...Type) bool {
	for _, t := range operands {
		if t.kind == kindObject {
			r.report(x, "", "the operator %s cannot take %s", x.Operator, t.describe())
			return true
		}
	}
	return false
}

// fill gives an operand of unknown type its empty value in a condition.
func (r *resolver) fill(n *ast.Node, have, want Type) {
	if !r.condition || have.kind != kindAny || want.kind == kindMap {
		return
	}
	if empty := kinds[want.kind].empty; empty != nil {
		filled := &ast.BinaryNode{Operator: "??", Left: *n, Right: &ast.ConstantNode{Value: empty}}
		filled.SetLocation((*n).Location())
		*n = filled
	}
}

// fillBoth gives each operand the empty value of the other's type.
func (r *resolver) fillBoth(x *ast.BinaryNode, left, right Type) {
	r.fill(&x.Left, left, right)
	r.fill(&x.Right, right, left)
}
