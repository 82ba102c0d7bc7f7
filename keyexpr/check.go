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
	findings  []finding
	reference ast.Node          // the reference that is being checked, with all its selectors
	outermost *ast.BinaryNode   // the || of which the next || is an operand
	withBool  map[ast.Node]bool // each outermost || that has a bool among its operands
}

func newChecker(source segment, schema *Schema, condition bool) *checker {
	return &checker{schema: schema, source: source, condition: condition, used: map[string]bool{}, withBool: map[ast.Node]bool{}}
}

// check checks the syntax tree of an expression. The program is valid if there are no problems.
func check(tree ast.Node, source segment, schema *Schema, condition bool) (*program, []*Error) {
	c := newChecker(source, schema, condition)
	p := c.program(tree)
	p.source = strings.TrimSpace(source.text)
	return p, c.suggest(tree)
}

// program builds the program of a tree. It has no source yet.
func (c *checker) program(tree ast.Node) *program {
	n := c.fill(c.node(tree, modeKey), Type{kind: kindBool})
	return &program{node: n, used: c.used}
}

// report records a mistake at a node. It returns a replacement for the node.
func (c *checker) report(at ast.Node, m *mistake) node {
	if m != nil {
		problem := c.source.problem(byteOffset(c.source.text, at.Location().From), m.message, m.form)
		problem.Unknown, problem.Of = m.unknown, m.of
		c.findings = append(c.findings, finding{problem, m.replacements, m.hint})
	}
	return literalNode(AnyType(), nil)
}

func (c *checker) reportf(at ast.Node, replacements []replacement, format string, args ...any) node {
	m := mistakef(format, args...)
	m.replacements = replacements
	return c.report(at, m)
}

// reportSelection reports a mistake in a selector. Its suggestions replace the selection, which is the reference up
// to and including the selector, or the whole reference.
func (c *checker) reportSelection(at, selection ast.Node, m *mistake) {
	if m == nil {
		return
	}
	if m.instead != "" {
		m.replacements = []replacement{{node: selection, text: m.instead}}
		if m.isName {
			m.replacements[0].reference = c.reference
		}
		if m.isWhole {
			m.replacements = append(m.replacements, replacement{node: c.reference, text: m.instead})
		}
	}
	if variable, names := pathOf(c.reference); variable != nil && !m.isWhole && !slices.Contains(names, "") {
		if found, ok := findReference(c.schema, strings.Join(append([]string{variableOf(variable)}, names...), ".")); ok {
			m.replacements = append([]replacement{{node: c.reference, text: found}}, m.replacements...)
		}
	}
	c.report(at, m)
}

// reportUnknown reports a function or operator that the language does not have.
func (c *checker) reportUnknown(x ast.Node, name string) node {
	if name == "now" {
		return c.reportf(x, nil, "now is not known here: one request must always have the same key")
	}
	return c.reportf(x, nil, "%s is not known here: %s", name, adviseProgram(c.schema, "the value"))
}

// adapt returns the mode of an operand. A condition reads every operand in modeWhen, unless the
// mode is lenient.
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
		return c.read(n, c.wholeChain(n), m)
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
		return c.reportf(x, nil, "methods cannot be called: .%s(): %s", quoteName(methodOf(x.Callee)), adviseProgram(c.schema, "the value"))
	}
	return c.reportf(n, nil, "%s: write the value where it is used, or %s", describeForeign(n), adviseProgram(c.schema, "it"))
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
		var replacements []replacement
		if kinds[0] == kindBool && !x.literal {
			replacements = []replacement{{node: n, text: suggestCondition(sourceOf(n), x.typ, false)}}
		}
		return c.reportf(n, replacements, "%s cannot take %s", operation, x.typ.describe())
	}
	return x
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
			c.reportf(x, []replacement{{node: x, text: compareFields(x, left, right)}}, "%s cannot take %s%s", x.Operator, t.describe(), advice)
			return false
		}
	}
	if left.kind == right.kind || left.kind == kindAny || right.kind == kindAny || left.isNumber() && right.isNumber() {
		return true
	}
	var replacements []replacement
	compare := func(l, r ast.Node) {
		if l != nil && r != nil {
			replacements = append(replacements, replacement{node: x, text: sourceOf(&ast.BinaryNode{Operator: x.Operator, Left: l, Right: r})})
		}
	}
	switch {
	case x.Operator == "in":
	case left.kind == kindString && (right.isNumber() || right.kind == kindBool):
		compare(x.Left, textNode(x.Right))
		compare(numberNode(x.Left), x.Right)
	case right.kind == kindString && (left.isNumber() || left.kind == kindBool):
		compare(textNode(x.Left), x.Right)
		compare(x.Left, numberNode(x.Right))
	}
	c.reportf(x, replacements, "%s cannot take %s and %s", x.Operator, left.describe(), right.describe())
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
	return operandSourceOf(x.Left) + "." + field + " " + x.Operator + " " + operandSourceOf(x.Right) + "." + field
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
		c.reportf(l, quotedReplacement(l, failpolicy.Nearest(l.Value, v.names)), message, l.Value)
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

func quotedReplacement(l *ast.StringNode, text string) []replacement {
	if text == "" {
		return nil
	}
	return []replacement{{node: l, text: strconv.Quote(text)}}
}

// checkSpelling reports a literal that is not the canonical text of the value that it spells.
func (c *checker) checkSpelling(values *texts, l *ast.StringNode) (reported bool) {
	text, ok := values.respelled(l.Value)
	if ok {
		c.reportf(l, quotedReplacement(l, text), "the text of %q is %q", l.Value, text)
	}
	return ok
}

// References.

// wholeChain checks a reference that no selector follows.
func (c *checker) wholeChain(n ast.Node) *chain {
	defer func(outer ast.Node) { c.reference = outer }(c.reference)
	c.reference = n
	return c.chain(n)
}

// chain checks the longest reference that ends in n.
func (c *checker) chain(n ast.Node) *chain {
	switch x := n.(type) {
	case *ast.ChainNode: // ?. means the same as . because a missing value stays missing
		return c.chain(x.Node)
	case *ast.IdentifierNode:
		return c.variable(x, x, "")
	case *ast.PointerNode:
		if x.Name != "" {
			return chainOfValue(c.reportf(x, nil, "#%s is not known here: # is the element, and .name a field of it", x.Name), "")
		}
		return chainOfValue(elementNode(*c.element), "")
	case *ast.MemberNode:
		if variable, names := pathOf(x); variable != nil && !c.isKnown(variable) {
			return c.variable(x, variable, strings.Join(names, "."))
		}
		return c.member(x)
	}
	return chainOfValue(c.node(n, modeLenient), operandSourceOf(n))
}

func (c *checker) isKnown(x *ast.IdentifierNode) bool {
	_, ok := c.schema.slots[variableOf(x)]
	return ok
}

// variable starts a chain at a variable. rest is the path of names after it in the reference, which helps to find a
// suggestion if the variable is unknown.
func (c *checker) variable(reference ast.Node, x *ast.IdentifierNode, rest string) *chain {
	name := variableOf(x)
	slot, ok := c.schema.slots[name]
	if !ok {
		return chainOfValue(c.reportUnknownVariable(reference, x, name, rest), name)
	}
	c.used[name] = true
	return chainOfVariable(&c.schema.variables[slot], slot)
}

// reportUnknownVariable reports a name that is not a variable. rest is what follows the name in the reference.
func (c *checker) reportUnknownVariable(reference, at ast.Node, name, rest string) node {
	names := c.schema.Variables()
	m := mistakef("unknown name %s: %s", name, listForMessage(names))
	similar := failpolicy.Nearest(name, names)
	if similar == "" && (!adapterVariables[name] || c.schema.isArgument()) {
		m.message += c.schema.otherNames()
	}
	if found, ok := findReference(c.schema, name); ok && found != name {
		m = mistakef("unknown name %s", name)
		if whole, ok := findReference(c.schema, name+"."+rest); ok && rest != "" {
			m.replacements = []replacement{{node: reference, text: whole}}
		}
		m.replacements = append(m.replacements, replacement{node: at, text: found})
	} else {
		m.replacements = c.replaceVariable(reference, at, name, rest, similar)
	}
	for i := range m.replacements {
		m.replacements[i].reference = c.reference
	}
	m.unknown = name
	return c.report(at, m)
}

// replaceVariable returns the replacements for an unknown variable that no reference of the schema
// ends in. These are a variable with a similar name or, for a variable of another adapter, a
// reference with the names after the variable (req.order_id for path.order_id). In a function
// without such a reference, it is a field of the argument that can be a part.
func (c *checker) replaceVariable(reference, at ast.Node, name, rest, similar string) []replacement {
	if similar != "" {
		list := []replacement{{node: at, text: similar}}
		if v := c.schema.variables[c.schema.slots[similar]]; rest == "" && v.Type.kind == kindKeyed {
			list = append(list, replacement{node: at, text: similar + "." + exampleEntry(v.Type)})
		}
		return list
	}
	if !adapterVariables[name] {
		return nil
	}
	if found, ok := findReference(c.schema, rest); ok {
		return []replacement{{node: reference, text: found}}
	}
	if example := exampleReference(c.schema); c.schema.isArgument() && example != "…" {
		return []replacement{{node: reference, text: example}}
	}
	return nil
}

func (c *checker) member(x *ast.MemberNode) *chain {
	ch := c.chain(x.Node)
	if name, ok := x.Property.(*ast.StringNode); ok {
		c.reportSelection(name, x, ch.selectName(name.Value))
		return ch
	}
	if index, ok := integerOf(x.Property); ok {
		c.reportSelection(x.Property, x, ch.selectIndex(index))
		return ch
	}
	var quoted []replacement
	if name, ok := x.Property.(*ast.IdentifierNode); ok && slices.Contains(ch.typ.names(), name.Value) {
		quoted = []replacement{{node: x, text: ch.text + selectorOf(name.Value)}}
	}
	c.reportf(x.Property, quoted, "a name is a literal text and an index a literal integer: %s", adviseProgram(c.schema, "the value"))
	return chainOfValue(literalNode(AnyType(), nil), sourceOf(x))
}

// read returns the node that reads a chain.
func (c *checker) read(at ast.Node, ch *chain, m mode) node {
	n, mistake := ch.read(m)
	if mistake != nil {
		c.reportSelection(at, at, mistake)
		return literalNode(AnyType(), nil)
	}
	return n
}

// slice checks x[a:b], a part of a text or list, and x[:], all values.
func (c *checker) slice(x *ast.SliceNode, m mode) node {
	ch := c.wholeChain(x.Node)
	ch.selectAll()
	whole := c.read(x.Node, ch, m)
	from, to := c.bound(x.From, 0), c.bound(x.To, math.MaxInt)
	switch {
	case whole.typ.kind != kindAny && whole.typ.kind != kindList && whole.typ.kind != kindString:
		return c.reportf(x, nil, "%s is %s and cannot be sliced", ch.nameForMessage(), whole.typ.describe())
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
		c.reportf(n, nil, "a bound of [a:b] is a literal integer: %s", adviseProgram(c.schema, "the part"))
	}
	return value
}

// Operators.

func (c *checker) unary(x *ast.UnaryNode) node {
	if x.Operator == "not" || x.Operator == "!" {
		operand := c.node(x.Node, modeValue)
		if operand.typ.kind != kindBool && operand.typ.kind != kindAny {
			m := mistakef("%s cannot take %s", x.Operator, operand.typ.describe())
			if !operand.literal {
				m.replacements = []replacement{{node: x, text: suggestCondition(sourceOf(x.Node), operand.typ, true)}}
			}
			return c.report(x, m)
		}
		return notNode(x.Operator, c.fill(operand, Type{kind: kindBool}))
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
		return c.logic(x)
	case "in":
		return c.membership(x)
	case "<", "<=", ">", ">=":
		return c.order(x)
	case "-", "*", "/", "%":
		return c.arithmetic(x)
	}
	return c.reportUnknown(x, x.Operator)
}

// logic checks the operators "and" and "or". A user who joins the values of a key with them means
// ?? or several parts.
func (c *checker) logic(x *ast.BinaryNode) node {
	outermost := c.outermost // of a || b || c
	c.outermost = nil
	if outermost == nil || !isOr(x) {
		outermost = x
	}
	left, right := c.logicOperand(x.Left, x.Operator, outermost), c.logicOperand(x.Right, x.Operator, outermost)
	return logicNode(x.Operator, left, right)
}

func (c *checker) logicOperand(n ast.Node, operator string, outermost *ast.BinaryNode) node {
	if inner, ok := n.(*ast.BinaryNode); ok && isOr(inner) && isOr(outermost) {
		c.outermost = outermost
	}
	isNested := c.outermost != nil
	v := c.node(n, modeValue)
	if v.typ.kind == kindBool && !isNested {
		c.withBool[outermost] = true
	}
	if v.typ.kind == kindBool || v.typ.kind == kindAny {
		return c.fill(v, Type{kind: kindBool})
	}
	m := mistakef("%s cannot take %s", operator, v.typ.describe())
	if !v.literal {
		m.replacements = append(m.replacements, replacement{node: n, text: suggestCondition(sourceOf(n), v.typ, false)})
	}
	if isOr(outermost) {
		m.replacements = append(m.replacements, replacement{node: outermost, text: strings.Join(alternatives(outermost), " ?? ")})
	} else {
		m.hint = "; write one part for each value"
	}
	return c.report(n, m)
}

func isOr(x *ast.BinaryNode) bool { return x.Operator == "or" || x.Operator == "||" }

// alternatives returns the sources of a, b and c for a || b || c.
func alternatives(n ast.Node) []string {
	if x, ok := n.(*ast.BinaryNode); ok && isOr(x) {
		return append(alternatives(x.Left), alternatives(x.Right)...)
	}
	return []string{operandSourceOf(n)}
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

// plus checks a sum of numbers or texts. In a key, an empty operand is an error, because all
// requests in which the operand is empty would share a lock.
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
// nil. A reference fails by its mode.
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
		return c.reportf(x, nil, "%% takes integers only")
	}
	return arithmeticNode(x.Operator, left, right)
}

func (c *checker) conditional(x *ast.ConditionalNode, m mode) node {
	switch {
	case !x.Ternary:
		return c.reportf(x, nil, "if is not known here: write condition ? value : otherwise")
	case x.Cond == x.Exp1: // a ?: b takes the second value if the first is false, not if it is missing
		return c.reportf(x.Cond, []replacement{{node: x, text: sourceOf(&ast.BinaryNode{Operator: "??", Left: x.Cond, Right: x.Exp2})}}, "?: is not known here")
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
		m := mistakef("%s cannot take %d arguments", name, len(args))
		m.form = name + "(" + f.usage + ")"
		return c.report(x, m)
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
		return c.split(x, args, m)
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
		return c.reportf(x, nil, "%s(…) cannot be inside another predicate: %s", name, adviseProgram(c.schema, "the inner list"))
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

func (c *checker) split(x ast.Node, args []ast.Node, m mode) node {
	separator, ok := args[1].(*ast.StringNode)
	if !ok || separator.Value == "" {
		return c.reportf(args[1], []replacement{{node: x, text: "split(" + sourceOf(args[0]) + `, ",")`}}, "the separator of split is a literal text that is not empty")
	}
	return splitNode(c.operand(args[0], m, "split", kindString), separator.Value)
}
