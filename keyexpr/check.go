package keyexpr

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/interlock-go/interlock/failpolicy"
)

// checker builds the nodes of one expression from its syntax tree. It checks names against the
// schema, infers types and decides for each operand what happens if its value is missing.
type checker struct {
	schema    *Schema
	source    segment
	condition bool
	used      map[string]bool
	element   *Type // the type of the element in the enclosing predicate
	problems  []*Error
}

// check checks the syntax tree of an expression. The program is valid if there are no problems.
func check(tree ast.Node, source segment, schema *Schema, condition bool) (*program, []*Error) {
	c := &checker{schema: schema, source: source, condition: condition, used: map[string]bool{}}
	n := c.fill(c.node(tree, modeKey), Type{kind: kindBool})
	return &program{node: n, source: strings.TrimSpace(source.text), used: c.used}, c.problems
}

// report records a mistake at a node. It returns a replacement for the node.
func (c *checker) report(at ast.Node, m *mistake) node {
	if m != nil {
		problem := c.source.problem(byteOffset(c.source.text, at.Location().From), m.message, m.suggestion)
		problem.Unknown, problem.Of = m.unknown, m.of
		c.problems = append(c.problems, problem)
	}
	return literalNode(AnyType(), nil)
}

func (c *checker) reportf(at ast.Node, suggestion, format string, args ...any) node {
	return c.report(at, mistakef(suggestion, format, args...))
}

// reportUnknown reports a function or operator that the language does not have.
func (c *checker) reportUnknown(x ast.Node, name string) node {
	if name == "now" {
		return c.reportf(x, "", "now is not known here: one request must always have the same key")
	}
	return c.reportf(x, "", "%s is not known here: %s", name, adviseProgram(c.schema, "the value"))
}

// adapt returns the mode of an operand. A condition reads all operands under one mode, except
// for the lenient ones.
func (c *checker) adapt(m mode) mode {
	if c.condition && !m.isLenient() {
		return modeWhen
	}
	return m
}

// node checks a node of the syntax tree.
func (c *checker) node(n ast.Node, m mode) node {
	m = c.adapt(m)
	switch x := n.(type) {
	case *ast.IdentifierNode, *ast.MemberNode, *ast.ChainNode, *ast.PointerNode:
		return c.read(n, c.chain(n), m)
	case *ast.SliceNode:
		return c.slice(x, m)
	case *ast.StringNode:
		return literalNode(Type{kind: kindString, texts: &texts{literals: []*ast.StringNode{x}}}, x.Value)
	case *ast.IntegerNode:
		return literalNode(Type{kind: kindInt}, x.Value)
	case *ast.FloatNode:
		return literalNode(Type{kind: kindFloat}, x.Value)
	case *ast.BoolNode:
		return literalNode(Type{kind: kindBool}, x.Value)
	case *ast.NilNode:
		return literalNode(AnyType(), nil)
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
		return c.reportf(x, "", "methods cannot be called: .%s(): %s", methodOf(x.Callee), adviseProgram(c.schema, "the value"))
	}
	return c.reportf(n, "", "%s: write the value where it is used, or %s", describeForeign(n), adviseProgram(c.schema, "it"))
}

// describeForeign names syntax that the parser accepts but this language does not have.
func describeForeign(n ast.Node) string {
	switch n.(type) {
	case *ast.MapNode:
		return "a key or condition makes no objects"
	case *ast.BytesNode:
		return "bytes are not known here"
	}
	return "an expression is one value, without ;"
}

// Operands and their types.

// operand checks an operand that must have one of the given types. In a condition, a missing
// operand of unknown type has the empty value of the first of them.
func (c *checker) operand(n ast.Node, m mode, operation string, kinds ...kind) node {
	return c.fill(c.restrict(n, c.node(n, m), operation, kinds...), Type{kind: kinds[0]})
}

// comparableOperand checks an operand that must be a number or a text.
func (c *checker) comparableOperand(n ast.Node, operator string, m mode) node {
	return c.restrict(n, c.node(n, m), operator, kindString, kindInt, kindFloat)
}

// restrict reports a node that does not have one of the given types.
func (c *checker) restrict(n ast.Node, x node, operation string, kinds ...kind) node {
	if x.typ.kind != kindAny && !slices.Contains(kinds, x.typ.kind) {
		suggestion := ""
		if kinds[0] == kindBool && x.ref != nil {
			suggestion = suggestBool(sourceOf(n), x.typ)
		}
		return c.reportf(n, suggestion, "%s cannot take %s", operation, x.typ.describe())
	}
	return x
}

// suggestBool returns a condition that is true if a value is not empty, or "".
func suggestBool(source string, t Type) string {
	switch t.kind {
	case kindString:
		return source + ` != ""`
	case kindInt:
		return source + " != 0"
	case kindList:
		return "len(" + source + ") > 0"
	}
	return ""
}

// fill sets the value of a missing operand of unknown type in a condition to the empty value of
// another type.
func (c *checker) fill(x node, like Type) node {
	empty := kinds[like.kind].empty
	if !c.condition || x.typ.kind != kindAny || like.kind == kindMap || empty == nil {
		return x
	}
	return x.withDefault(empty)
}

// list checks an argument that must be a list.
func (c *checker) list(n ast.Node, function string, m mode) node {
	x := c.restrict(n, c.node(n, m), function, kindList)
	if x.typ.kind == kindAny {
		return x.listOf(sourceOf(n), m)
	}
	return x
}

// areComparable reports a problem and returns false if two operands cannot be compared or added
// because of their types.
func (c *checker) areComparable(x *ast.BinaryNode, left, right Type) bool {
	for _, t := range []Type{left, right} {
		if t.kind == kindObject || t.kind == kindMap {
			advice := ": compare its fields"
			if x.Operator == "in" {
				advice = ""
			}
			c.reportf(x, compareFields(x, left, right), "%s cannot take %s%s", x.Operator, t.describe(), advice)
			return false
		}
	}
	if left.kind == right.kind || left.kind == kindAny || right.kind == kindAny || left.isNumber() && right.isNumber() {
		return true
	}
	suggestion := ""
	switch {
	case x.Operator == "in":
	case left.kind == kindString && (right.isNumber() || right.kind == kindBool):
		suggestion = sourceOf(x.Left) + " " + x.Operator + " " + textSourceOf(x.Right)
	case right.kind == kindString && (left.isNumber() || left.kind == kindBool):
		suggestion = textSourceOf(x.Left) + " " + x.Operator + " " + sourceOf(x.Right)
	}
	c.reportf(x, suggestion, "%s cannot take %s and %s", x.Operator, left.describe(), right.describe())
	return false
}

// compareFields returns the comparison of a field that two objects of one type have, or "".
func compareFields(x *ast.BinaryNode, left, right Type) string {
	if left.kind != kindObject || right.kind != kindObject || left.object.Name() != right.object.Name() {
		return ""
	}
	field := firstPartField(left.object)
	if x.Operator == "in" || field == "" {
		return ""
	}
	return sourceOf(x.Left) + "." + field + " " + x.Operator + " " + sourceOf(x.Right) + "." + field
}

// checkComparedTexts reports a literal text that is compared with a value that never has this
// text.
func (c *checker) checkComparedTexts(a, b Type) {
	for a.kind == kindList && b.kind == kindList {
		a, b = a.element(), b.element()
	}
	c.checkPossible(a.texts, b.texts)
	c.checkPossible(b.texts, a.texts)
}

func (c *checker) checkPossible(values, literals *texts) {
	if values == nil || literals == nil || len(values.vocabularies) == 0 || len(literals.vocabularies) > 0 {
		return
	}
	for _, l := range literals.literals {
		if values.contains(l.Value) || c.checkSpelling(values, l) {
			continue
		}
		v := values.vocabularies[0]
		message := "%q is not " + v.noun
		if len(v.names) > 0 {
			message += ": " + listForMessage(v.names)
		}
		suggestion := failpolicy.Nearest(l.Value, v.names)
		if suggestion != "" {
			suggestion = strconv.Quote(suggestion)
		}
		c.reportf(l, suggestion, message, l.Value)
	}
}

// either returns the type of a value that has one of two types. It reports a literal text of one
// type that is not the canonical text of a value of the other.
func (c *checker) either(a, b Type) Type {
	c.checkSpellings(a.texts, b.texts)
	c.checkSpellings(b.texts, a.texts)
	return unify(a, b)
}

func (c *checker) checkSpellings(values, literals *texts) {
	if values == nil || literals == nil {
		return
	}
	for _, l := range literals.literals {
		c.checkSpelling(values, l)
	}
}

// checkSpelling reports a literal that is not the canonical text of the value that it spells.
func (c *checker) checkSpelling(values *texts, l *ast.StringNode) (reported bool) {
	text, ok := values.respelled(l.Value)
	if ok {
		suggestion := ""
		if text != "" {
			suggestion = strconv.Quote(text)
		}
		c.reportf(l, suggestion, "the text of %q is %q", l.Value, text)
	}
	return ok
}

// References.

// chain checks the longest reference that ends in n.
func (c *checker) chain(n ast.Node) *chain {
	switch x := n.(type) {
	case *ast.ChainNode: // ?. means the same as . because a missing value stays missing
		return c.chain(x.Node)
	case *ast.IdentifierNode:
		return c.variable(x, "")
	case *ast.PointerNode:
		if x.Name != "" {
			return chainOfValue(c.reportf(x, "", "#%s is not known here: # is the element, and .name a field of it", x.Name), "")
		}
		return chainOfValue(elementNode(*c.element), "")
	case *ast.MemberNode:
		if variable, names := pathOf(x); variable != nil && !c.isKnown(variable) {
			return c.variable(variable, strings.Join(names, "."))
		}
		return c.member(x)
	}
	return chainOfValue(c.node(n, modeLenient), sourceOf(n))
}

func (c *checker) isKnown(x *ast.IdentifierNode) bool {
	_, ok := c.schema.slots[variableOf(x)]
	return ok
}

// variable starts a chain at a variable. rest is the path of names after it, which helps to find
// a suggestion if the variable is unknown.
func (c *checker) variable(x *ast.IdentifierNode, rest string) *chain {
	name := variableOf(x)
	slot, ok := c.schema.slots[name]
	if !ok {
		return chainOfValue(c.reportUnknownVariable(x, name, rest), name)
	}
	c.used[name] = true
	return chainOfVariable(&c.schema.variables[slot], slot)
}

// reportUnknownVariable reports a name that is not a variable. It suggests, in this order, a
// reference that ends in the name, a variable with a similar name, and, for a variable of another
// adapter, a reference with the names after it: req.order_id for path.order_id. For the argument of a
// function it then suggests a field that can be a part.
func (c *checker) reportUnknownVariable(at ast.Node, name, rest string) node {
	names := c.schema.Variables()
	m := mistakef(failpolicy.Nearest(name, names), "unknown name %s: %s", name, listForMessage(names))
	if m.suggestion == "" && (!adapterVariables[name] || c.schema.isArgument()) {
		m.message += c.schema.otherNames()
	}
	if found, ok := findReference(c.schema, name); ok && found != name {
		m = mistakef(found, "unknown name %s", name)
	} else if found, ok := findReference(c.schema, rest); ok && m.suggestion == "" && adapterVariables[name] {
		m.suggestion = found
	} else if m.suggestion == "" && adapterVariables[name] && c.schema.isArgument() && exampleReference(c.schema) != "…" {
		m.suggestion = exampleReference(c.schema)
	}
	m.unknown = name
	return c.report(at, m)
}

func (c *checker) member(x *ast.MemberNode) *chain {
	ch := c.chain(x.Node)
	if name, ok := x.Property.(*ast.StringNode); ok {
		c.report(name, ch.selectName(name.Value))
		return ch
	}
	if index, ok := integerOf(x.Property); ok {
		c.report(x.Property, ch.selectIndex(index))
		return ch
	}
	quoted := ""
	if name, ok := x.Property.(*ast.IdentifierNode); ok && slices.Contains(ch.typ.names(), name.Value) {
		quoted = ch.text + selectorOf(name.Value)
	}
	c.reportf(x.Property, quoted, "a name is a literal text and an index a literal integer: %s", adviseProgram(c.schema, "the value"))
	return chainOfValue(literalNode(AnyType(), nil), sourceOf(x))
}

// read returns the node that reads a chain.
func (c *checker) read(at ast.Node, ch *chain, m mode) node {
	n, mistake := ch.read(m)
	if mistake != nil {
		return c.report(at, mistake)
	}
	return n
}

// slice checks x[a:b], a part of a text or list, and x[:], all values.
func (c *checker) slice(x *ast.SliceNode, m mode) node {
	ch := c.chain(x.Node)
	ch.selectAll()
	whole := c.read(x.Node, ch, m)
	from, to := c.bound(x.From, 0), c.bound(x.To, math.MaxInt)
	switch {
	case whole.typ.kind != kindAny && whole.typ.kind != kindList && whole.typ.kind != kindString:
		return c.reportf(x, "", "%s is %s and cannot be sliced", ch.text, whole.typ.describe())
	case x.From == nil && x.To == nil && whole.typ.kind == kindAny:
		return whole.listOf(ch.text, m)
	case x.From == nil && x.To == nil:
		return whole
	case whole.typ.kind == kindString: // a part of a text may be any text
		whole.typ = Type{kind: kindString}
	}
	return sliceNode(whole, from, to)
}

// bound returns a bound of a slice, or the default if the expression does not have the bound.
func (c *checker) bound(n ast.Node, byDefault int) int {
	if n == nil {
		return byDefault
	}
	value, ok := integerOf(n)
	if !ok {
		c.reportf(n, "", "a bound of [a:b] is a literal integer: %s", adviseProgram(c.schema, "the part"))
	}
	return value
}

// Operators.

func (c *checker) unary(x *ast.UnaryNode) node {
	if x.Operator == "not" || x.Operator == "!" {
		return notNode(x.Operator, c.operand(x.Node, modeValue, x.Operator, kindBool))
	}
	return signNode(x.Operator, c.operand(x.Node, modeValue, x.Operator, kindInt, kindFloat))
}

func (c *checker) binary(x *ast.BinaryNode, m mode) node {
	switch x.Operator {
	case "??":
		return c.coalesce(x, m)
	case "==", "!=":
		return c.equality(x)
	case "+":
		return c.plus(x, m)
	case "and", "&&", "or", "||":
		return logicNode(x.Operator, c.operand(x.Left, modeValue, x.Operator, kindBool), c.operand(x.Right, modeValue, x.Operator, kindBool))
	case "in":
		return c.membership(x)
	case "<", "<=", ">", ">=":
		return c.order(x)
	case "-", "*", "/", "%":
		return c.arithmetic(x)
	}
	return c.reportUnknown(x, x.Operator)
}

// coalesce checks a ?? b. The left side may be missing.
func (c *checker) coalesce(x *ast.BinaryNode, m mode) node {
	left, right := c.node(x.Left, modeLenient), c.node(x.Right, m)
	typ := left.typ
	if !isNilNode(x.Right) {
		typ = c.either(left.typ, right.typ)
	}
	return coalesceNode(typ, left, right)
}

func (c *checker) equality(x *ast.BinaryNode) node {
	m := modeValue
	if isNilNode(x.Left) || isNilNode(x.Right) {
		m = modePresence
	}
	left, right := c.node(x.Left, m), c.node(x.Right, m)
	if m != modePresence && c.areComparable(x, left.typ, right.typ) {
		left, right = c.fill(left, right.typ), c.fill(right, left.typ)
		c.checkComparedTexts(left.typ, right.typ)
	}
	return equalityNode(left, right, x.Operator == "!=")
}

// membership checks "a in list" and "name in map".
func (c *checker) membership(x *ast.BinaryNode) node {
	where := x.Right
	if call, ok := where.(*ast.BuiltinNode); ok && call.Name == "keys" && len(call.Arguments) == 1 {
		where = call.Arguments[0] // the map finds every spelling of a name; its keys do not
	}
	left, right := c.node(x.Left, modeValue), c.operand(where, modeValue, "in", kindList, kindMap)
	if right.typ.kind != kindMap {
		c.areComparable(x, left.typ, right.typ.element())
	}
	c.checkComparedTexts(left.typ, right.typ.element())
	return membershipNode(left, right)
}

func (c *checker) order(x *ast.BinaryNode) node {
	left, right := c.comparableOperand(x.Left, x.Operator, modeValue), c.comparableOperand(x.Right, x.Operator, modeValue)
	c.areComparable(x, left.typ, right.typ)
	left, right = c.fill(left, right.typ), c.fill(right, left.typ)
	times := left.typ.kind == kindString && right.typ.kind == kindString && (left.typ.texts.isTime() || right.typ.texts.isTime())
	if times {
		c.either(left.typ, right.typ)
	}
	return orderNode(x.Operator, left, right, times)
}

// plus checks a sum of numbers or texts. In a key, an empty operand is an error, because it would
// vanish from the text: all requests without it would share a lock.
func (c *checker) plus(x *ast.BinaryNode, m mode) node {
	inKey := m == modeKey || m == modeText
	m = modeValue
	if inKey {
		m = modeText
	}
	left, right := c.comparableOperand(x.Left, x.Operator, m), c.comparableOperand(x.Right, x.Operator, m)
	if !c.areComparable(x, left.typ, right.typ) {
		return literalNode(AnyType(), nil)
	}
	if inKey {
		left, right = requirePresent(x.Left, left), requirePresent(x.Right, right)
	}
	return arithmeticNode(x.Operator, c.fill(left, right.typ), c.fill(right, left.typ))
}

// requirePresent returns a node that fails if a computed operand of a concatenation is empty or
// nil. For a reference, its mode does so.
func requirePresent(n ast.Node, x node) node {
	if sum, ok := n.(*ast.BinaryNode); ok && sum.Operator == "+" || x.literal || x.ref != nil || x.typ.kind != kindString && x.typ.kind != kindAny {
		return x
	}
	return x.mandatory(sourceOf(n))
}

func (c *checker) arithmetic(x *ast.BinaryNode) node {
	left := c.operand(x.Left, modeValue, x.Operator, kindInt, kindFloat)
	right := c.operand(x.Right, modeValue, x.Operator, kindInt, kindFloat)
	if x.Operator == "%" && (left.typ.kind == kindFloat || right.typ.kind == kindFloat) {
		return c.reportf(x, "", "%% takes integers only")
	}
	return arithmeticNode(x.Operator, left, right)
}

func (c *checker) conditional(x *ast.ConditionalNode, m mode) node {
	switch {
	case !x.Ternary:
		return c.reportf(x, "", "if is not known here: write condition ? value : otherwise")
	case x.Cond == x.Exp1: // a ?: b takes the second value if the first is false, not if it is missing
		return c.reportf(x.Cond, sourceOf(x.Cond)+" ?? "+sourceOf(x.Exp2), "?: is not known here")
	}
	condition := c.operand(x.Cond, modeValue, "the condition of ? :", kindBool)
	yes, no := c.node(x.Exp1, m), c.node(x.Exp2, m)
	return choiceNode(c.either(yes.typ, no.typ), condition, yes, no)
}

func (c *checker) array(x *ast.ArrayNode, m mode) node {
	elem := AnyType()
	elements := make([]node, len(x.Nodes))
	for i := range x.Nodes {
		elements[i] = c.node(x.Nodes[i], m)
		if i == 0 {
			elem = elements[i].typ
			continue
		}
		elem = unify(elem, elements[i].typ)
	}
	return listNode(elem, elements)
}

// Functions.

func (c *checker) call(x ast.Node, name string, args []ast.Node, m mode) node {
	f, ok := functions[name]
	if !ok {
		return c.reportUnknown(x, name)
	}
	if len(args) != f.arguments() {
		return c.reportf(x, name+"("+f.usage+")", "%s cannot take %d arguments", name, len(args))
	}
	switch {
	case f.mode == argText:
		m = modeKey
	case f.mode == argValue || m.isLenient():
		m = modeValue
	}
	m = c.adapt(m)
	switch name {
	case "map", "filter", "any", "all":
		return c.loop(x, name, args, m)
	case "split":
		return c.split(args, m)
	}
	if f.takes[0] == kindList {
		return callNode(name, f, c.list(args[0], name, m))
	}
	return callNode(name, f, c.operand(args[0], m, name, f.takes...))
}

// loop checks map, filter, any and all, which compute a predicate for each element of a list.
func (c *checker) loop(x ast.Node, name string, args []ast.Node, m mode) node {
	predicate, ok := args[1].(*ast.PredicateNode)
	if c.element != nil || !ok {
		return c.reportf(x, "", "%s(…) cannot be inside another predicate: %s", name, adviseProgram(c.schema, "the inner list"))
	}
	list := c.list(args[0], name, m)
	element := list.typ.element()
	c.element = &element
	defer func() { c.element = nil }()
	if name == "map" {
		return loopNode(name, list, c.node(predicate.Node, m))
	}
	return loopNode(name, list, c.operand(predicate.Node, modeValue, "the predicate of "+name, kindBool))
}

func (c *checker) split(args []ast.Node, m mode) node {
	separator, ok := args[1].(*ast.StringNode)
	if !ok || separator.Value == "" {
		return c.reportf(args[1], "split("+sourceOf(args[0])+`, ",")`, "the separator of split is a literal text that is not empty")
	}
	return splitNode(c.operand(args[0], m, "split", kindString), separator.Value)
}
