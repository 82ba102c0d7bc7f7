package keyexpr

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// binary checks an operator and its operands.
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
	return c.notHere(x, x.Operator)
}

func (c *checker) unary(x *ast.UnaryNode) node {
	if x.Operator == "not" || x.Operator == "!" {
		v := c.operand(x.Node, modeValue, x.Operator, kindBool)
		return node{typ: Type{kind: kindBool}, eval: func(e *evaluation) any { return !v.truth(e, x.Operator) }}
	}
	v := c.operand(x.Node, modeValue, x.Operator, kindInt, kindFloat)
	return node{typ: v.typ, eval: func(e *evaluation) any {
		n := v.eval(e)
		if _, ok := numberOf(n); !ok {
			e.failf("%s cannot take %s", x.Operator, describe(n))
		}
		if i, ok := n.(int); ok && x.Operator == "-" {
			return -i
		} else if f, ok := n.(float64); ok && x.Operator == "-" {
			return -f
		}
		return n
	}}
}

func (c *checker) logic(x *ast.BinaryNode) node {
	left, right := c.operand(x.Left, modeValue, x.Operator, kindBool), c.operand(x.Right, modeValue, x.Operator, kindBool)
	decides := x.Operator == "or" || x.Operator == "||"
	return node{typ: Type{kind: kindBool}, eval: func(e *evaluation) any {
		if left.truth(e, x.Operator) == decides {
			return decides
		}
		return right.truth(e, x.Operator)
	}}
}

// coalesce lets the left side be missing.
func (c *checker) coalesce(x *ast.BinaryNode, m mode) node {
	left, right := c.node(x.Left, modeLenient), c.node(x.Right, m)
	typ := left.typ
	if !isNil(x.Right) {
		typ = c.either(left.typ, right.typ)
	}
	return node{typ: typ, eval: func(e *evaluation) any {
		if v := left.eval(e); v != nil {
			return v
		}
		return right.eval(e)
	}}
}

func (c *checker) equality(x *ast.BinaryNode) node {
	m := modeValue
	if isNil(x.Left) || isNil(x.Right) {
		m = modePresence
	}
	left, right := c.node(x.Left, m), c.node(x.Right, m)
	if m != modePresence && c.comparable(x, left.typ, right.typ) {
		left, right = c.filled(left, right.typ), c.filled(right, left.typ)
		c.meet(left.typ, right.typ)
	}
	unequal := x.Operator == "!="
	return both(Type{kind: kindBool}, left, right, func(e *evaluation, a, b any) any { return e.same(a, b) != unequal })
}

// both computes a value of two.
func both(typ Type, left, right node, do func(e *evaluation, a, b any) any) node {
	return node{typ: typ, eval: func(e *evaluation) any { return do(e, left.eval(e), right.eval(e)) }}
}

func isNil(n ast.Node) bool {
	_, ok := n.(*ast.NilNode)
	return ok
}

// comparable reports operands whose types say that comparing or adding them is a mistake.
func (c *checker) comparable(x *ast.BinaryNode, left, right Type) bool {
	for _, t := range []Type{left, right} {
		if t.kind == kindObject || t.kind == kindMap {
			c.report(x, "", "%s cannot take %s", x.Operator, t.describe())
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
		suggestion = textOf(x.Left) + " " + x.Operator + " " + asText(x.Right)
	case right.kind == kindString && (left.isNumber() || left.kind == kindBool):
		suggestion = asText(x.Left) + " " + x.Operator + " " + textOf(x.Right)
	}
	c.report(x, suggestion, "%s cannot take %s and %s", x.Operator, left.describe(), right.describe())
	return false
}

// asText is how an operand is written as a text.
func asText(n ast.Node) string {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return strconv.Quote(n.String())
	}
	return "string(" + textOf(n) + ")"
}

func (t Type) isNumber() bool { return t.kind == kindInt || t.kind == kindFloat }

// membership looks for a value in a list, or for a name in a map.
func (c *checker) membership(x *ast.BinaryNode) node {
	where := x.Right
	if call, ok := where.(*ast.BuiltinNode); ok && call.Name == "keys" && len(call.Arguments) == 1 {
		where = call.Arguments[0] // which knows all spellings of a name
	}
	left, right := c.node(x.Left, modeValue), c.operand(where, modeValue, "in", kindList, kindMap)
	if right.typ.kind != kindMap {
		c.comparable(x, left.typ, right.typ.element())
	}
	c.meet(left.typ, right.typ.element())
	return both(Type{kind: kindBool}, left, right, func(e *evaluation, needle, where any) any {
		list, ok := where.([]any)
		switch {
		case where == nil || needle == nil && !ok:
			return false
		case !ok && !isObject(where):
			e.failf("in needs a list or a map, not %s", describe(where))
		case !ok:
			_, found, _ := lookUp(where, e.text("in", needle))
			return found
		}
		return slices.ContainsFunc(list, func(element any) bool { return e.same(element, needle) })
	})
}

// ordered checks an operand that is a number or a text.
func (c *checker) ordered(n ast.Node, operator string, m mode) node {
	return c.only(n, c.node(n, m), operator, kindString, kindInt, kindFloat)
}

// order compares two numbers, or two texts.
func (c *checker) order(x *ast.BinaryNode) node {
	left, right := c.ordered(x.Left, x.Operator, modeValue), c.ordered(x.Right, x.Operator, modeValue)
	c.comparable(x, left.typ, right.typ)
	left, right = c.filled(left, right.typ), c.filled(right, left.typ)
	times := left.typ.kind == kindString && right.typ.kind == kindString && (left.typ.texts.isTime() || right.typ.texts.isTime())
	if times {
		c.either(left.typ, right.typ)
	}
	return both(Type{kind: kindBool}, left, right, func(e *evaluation, a, b any) any {
		switch order := e.compare(a, b, times); x.Operator {
		case "<":
			return order < 0
		case "<=":
			return order <= 0
		case ">":
			return order > 0
		default:
			return order >= 0
		}
	})
}

// compare returns the order of two values. The Z at the end of a time sorts after the dot of a
// fraction; without it, texts sort as their instants do.
func (e *evaluation) compare(a, b any, times bool) int {
	x, textA := a.(string)
	y, textB := b.(string)
	if textA && textB {
		e.spend(comparison + min(len(x), len(y)))
		if times {
			x, y = strings.TrimSuffix(x, "Z"), strings.TrimSuffix(y, "Z")
		}
		return strings.Compare(x, y)
	}
	i, intA := a.(int)
	j, intB := b.(int)
	if intA && intB {
		return cmp.Compare(i, j)
	}
	f, okA := numberOf(a)
	g, okB := numberOf(b)
	if !okA || !okB {
		e.failf("%s and %s have no order", describe(a), describe(b))
	}
	return cmp.Compare(f, g)
}

// numberOf is the float next to a number that expressions compute with.
func numberOf(v any) (number float64, ok bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// plus adds numbers or joins texts. It guards the operands in a key: an empty one would
// vanish in the text, and requests without it would share a lock.
func (c *checker) plus(x *ast.BinaryNode, m mode) node {
	inKey := m == modeKey || m == modeText
	m = modeValue
	if inKey {
		m = modeText
	}
	left, right := c.ordered(x.Left, x.Operator, m), c.ordered(x.Right, x.Operator, m)
	if !c.comparable(x, left.typ, right.typ) {
		return literal(AnyType(), nil)
	}
	if inKey {
		left, right = c.guard(x.Left, left), c.guard(x.Right, right)
	}
	return c.compute(x, c.filled(left, right.typ), c.filled(right, left.typ))
}

// guard makes a computed operand of a concatenation an error if it is empty or
// nil. References are guarded by their mode.
func (c *checker) guard(n ast.Node, x node) node {
	if sum, ok := n.(*ast.BinaryNode); ok && sum.Operator == "+" || x.fixed || x.ref != nil || x.typ.kind != kindString && x.typ.kind != kindAny {
		return x
	}
	a := &access{text: textOf(n), mode: modeText}
	return node{typ: x.typ, eval: func(e *evaluation) any { return a.settle(x.eval(e)) }}
}

func (c *checker) arithmetic(x *ast.BinaryNode) node {
	left := c.operand(x.Left, modeValue, x.Operator, kindInt, kindFloat)
	right := c.operand(x.Right, modeValue, x.Operator, kindInt, kindFloat)
	if x.Operator == "%" && (left.typ.kind == kindFloat || right.typ.kind == kindFloat) {
		return c.report(x, "", "%% takes integers only")
	}
	return c.compute(x, left, right)
}

// compute applies an operator of arithmetic.
func (c *checker) compute(x *ast.BinaryNode, left, right node) node {
	typ := unify(left.typ, right.typ)
	switch {
	case x.Operator == "/" || left.typ.kind == kindFloat || right.typ.kind == kindFloat:
		typ = Type{kind: kindFloat}
	case x.Operator == "%":
		typ = Type{kind: kindInt}
	case left.typ.kind == kindString || right.typ.kind == kindString:
		typ = Type{kind: kindString}
	}
	return both(typ, left, right, func(e *evaluation, a, b any) any {
		if text, ok := a.(string); ok && x.Operator == "+" {
			if other, ok := b.(string); ok {
				return e.joined(text, other)
			}
		}
		if i, ok := a.(int); ok {
			j, ok := b.(int)
			switch {
			case ok && x.Operator == "%" && j == 0:
				e.failf("an integer is divided by zero")
			case ok && x.Operator == "%":
				return i % j
			case ok && x.Operator != "/":
				return arithmetic(x.Operator, i, j)
			}
		}
		f, okA := numberOf(a)
		g, okB := numberOf(b)
		if !okA || !okB || x.Operator == "%" {
			e.failf("%s cannot take %s and %s", x.Operator, describe(a), describe(b))
		}
		return arithmetic(x.Operator, f, g)
	})
}

func (e *evaluation) joined(a, b string) string {
	if len(a)+len(b) > maxText {
		panic(tooLong(e.source))
	}
	return e.made(a + b)
}

// arithmetic applies the operators that integers and floats share.
func arithmetic[N int | float64](operator string, a, b N) N {
	switch operator {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	}
	return a / b
}

// comparison is what comparing two values takes besides looking at their texts.
const comparison = 16

// same is what == means. Two answers are refused because handlers disagree about them: whether
// objects are equal, whose names count in any case for some, and whether 42 and "42" are, which
// json.Number reads alike. Lists are compared to their ends: what is refused must not depend on
// where they differ.
func (e *evaluation) same(a, b any) bool {
	e.spend(comparison)
	a, b = whole(normalize(a), e.source), whole(normalize(b), e.source)
	if text, ok := b.(string); ok {
		a, b = text, a
	}
	switch x := a.(type) {
	case string:
		return e.sameText(x, b)
	case []any:
		y, areLists := b.([]any)
		return areLists && e.sameLists(x, y)
	case int:
		f, ok := b.(float64)
		return a == b || ok && float64(x) == f
	case float64:
		f, ok := numberOf(b)
		return ok && x == f
	case nil, bool, uint64, json.Number:
		return a == b
	}
	if isObject(b) {
		e.failf("objects are not compared, because a handler may take different ones for the same; compare their fields")
	}
	return false
}

func isObject(v any) bool {
	switch v.(type) {
	case nil, string, bool, int, uint64, float64, json.Number, []any:
		return false
	}
	return true
}

func (e *evaluation) sameLists(x, y []any) bool {
	equal := len(x) == len(y)
	for i := range min(len(x), len(y)) {
		equal = e.same(x[i], y[i]) && equal
	}
	return equal
}

// sameText compares a text with anything.
func (e *evaluation) sameText(text string, v any) bool {
	if other, ok := v.(string); ok {
		e.spend(min(len(text), len(other)))
		return text == other
	}
	if v == nil || isObject(v) || isList(v) {
		return false
	}
	e.spend(len(text))
	if readsLike(text, v) {
		e.failf("a text is compared with a number or a bool that reads like it, and handlers disagree about whether these are " +
			"the same; write string(…) for both")
	}
	return false
}

// maxNumeral is the longest text that is read to find out which number with a fraction it is.
const maxNumeral = 15

// readsLike reports whether a text may be read as the number or bool. It says so of a text with
// an exponent, and of a long one with a fraction, without reading them, which takes long.
func readsLike(text string, v any) bool {
	var number string
	switch n := v.(type) {
	case bool:
		return text == strconv.FormatBool(n)
	case int:
		number = strconv.Itoa(n)
	case uint64:
		number = strconv.FormatUint(n, 10)
	case json.Number:
		number = n.String()
	case float64:
		number = strconv.FormatFloat(n, 'f', -1, 64)
	default:
		return false
	}
	digits := strings.TrimPrefix(text, "-")
	switch {
	case text == "" || strings.Trim(text, "0123456789+-.eE") != "": // no handler reads a number
		return false
	case strings.Trim(digits, "0123456789") == "":
		digits, isPositive := strings.TrimLeft(digits, "0"), digits == text
		return digits == strings.TrimLeft(number, "-0") && (digits == "" || isPositive == (number[0] != '-'))
	case len(text) > maxNumeral || strings.ContainsAny(text, "eE"):
		return true
	}
	read, err := strconv.ParseFloat(text, 64)
	return err == nil && strconv.FormatFloat(read, 'f', -1, 64) == number
}
