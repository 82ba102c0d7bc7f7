package keyexpr

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// This file builds the nodes of operators. It depends on types and values, but not on the syntax
// tree: the checker has already checked the types of the operands.

// binaryNode returns the node that computes a value from two operands.
func binaryNode(typ Type, left, right node, compute func(e *evaluation, a, b any) any) node {
	return node{typ: typ, eval: func(e *evaluation) any { return compute(e, left.eval(e), right.eval(e)) }}
}

// notNode negates a bool.
func notNode(operator string, v node) node {
	return node{typ: Type{kind: kindBool}, eval: func(e *evaluation) any { return !v.evalBool(e, operator) }}
}

// signNode computes + or - of a number.
func signNode(operator string, v node) node {
	return node{typ: v.typ, eval: func(e *evaluation) any {
		n := v.eval(e)
		if _, ok := numberOf(n); !ok {
			e.failf("%s cannot take %s", operator, describe(n))
		}
		if i, ok := n.(int); ok && operator == "-" {
			return -i
		} else if f, ok := n.(float64); ok && operator == "-" {
			return -f
		}
		return n
	}}
}

// logicNode computes the operators "and" and "or". It evaluates the right operand only if the left one does not
// decide the result.
func logicNode(operator string, left, right node) node {
	decides := operator == "or" || operator == "||"
	return node{typ: Type{kind: kindBool}, eval: func(e *evaluation) any {
		if left.evalBool(e, operator) == decides {
			return decides
		}
		return right.evalBool(e, operator)
	}}
}

// coalesceNode computes left ?? right.
func coalesceNode(typ Type, left, right node) node {
	return node{typ: typ, eval: func(e *evaluation) any {
		if v := left.eval(e); v != nil {
			return v
		}
		return right.eval(e)
	}}
}

// choiceNode computes condition ? yes : no.
func choiceNode(typ Type, condition, yes, no node) node {
	return node{typ: typ, eval: func(e *evaluation) any {
		if condition.evalBool(e, "the condition of ? :") {
			return yes.eval(e)
		}
		return no.eval(e)
	}}
}

// listNode builds a list. A list of literals is built once for all requests.
func listNode(elem Type, elements []node) node {
	list := func(e *evaluation) any {
		list := make([]any, len(elements))
		for i := range elements {
			list[i] = elements[i].eval(e)
		}
		return list
	}
	if slices.ContainsFunc(elements, func(n node) bool { return !n.literal }) {
		return node{typ: ListType(elem), eval: list}
	}
	return literalNode(ListType(elem), list(nil))
}

// sliceNode computes v[from:to].
func sliceNode(v node, from, to int) node {
	return node{typ: v.typ, eval: func(e *evaluation) any {
		switch x := v.eval(e).(type) {
		case nil:
			return nil
		case string:
			a, b := clampBounds(from, to, len(x))
			return x[a:b]
		case []any:
			a, b := clampBounds(from, to, len(x))
			return x[a:b]
		default:
			e.failf("%s cannot be sliced, only a string or a list", describe(x))
			return nil
		}
	}}
}

// clampBounds limits bounds to a length. Negative bounds count from the end.
func clampBounds(from, to, length int) (int, int) {
	if from < 0 {
		from += length
	}
	if to < 0 {
		to += length
	}
	to = max(min(to, length), 0)
	return max(min(from, to), 0), to
}

// membershipNode computes "needle in list" and "name in map".
func membershipNode(needle, where node) node {
	return binaryNode(Type{kind: kindBool}, needle, where, func(e *evaluation, needle, where any) any {
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
		return slices.ContainsFunc(list, func(element any) bool { return e.equal(element, needle) })
	})
}

// orderNode computes <, <=, > and >= of two numbers, texts or times.
func orderNode(operator string, left, right node, times bool) node {
	return binaryNode(Type{kind: kindBool}, left, right, func(e *evaluation, a, b any) any {
		switch order := e.compare(a, b, times); operator {
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

// compare returns the order of two values. Texts of times are compared without the Z at their
// end, because Z sorts after the dot of a fraction. Without it, they sort like their instants.
func (e *evaluation) compare(a, b any, times bool) int {
	x, textA := a.(string)
	y, textB := b.(string)
	if textA && textB {
		e.spend(comparisonCost + min(len(x), len(y)))
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

// arithmeticNode computes +, -, *, / and %. + also joins texts.
func arithmeticNode(operator string, left, right node) node {
	typ := arithmeticType(operator, left.typ, right.typ)
	return binaryNode(typ, left, right, func(e *evaluation, a, b any) any {
		if text, ok := a.(string); ok && operator == "+" {
			if other, ok := b.(string); ok {
				return e.concat(text, other)
			}
		}
		if i, ok := a.(int); ok {
			j, ok := b.(int)
			switch {
			case ok && operator == "%" && j == 0:
				e.failf("an integer is divided by zero")
			case ok && operator == "%":
				return i % j
			case ok && operator != "/":
				return arithmetic(operator, i, j)
			}
		}
		f, okA := numberOf(a)
		g, okB := numberOf(b)
		if !okA || !okB || operator == "%" {
			e.failf("%s cannot take %s and %s", operator, describe(a), describe(b))
		}
		return arithmetic(operator, f, g)
	})
}

func arithmeticType(operator string, left, right Type) Type {
	switch {
	case operator == "/" || left.kind == kindFloat || right.kind == kindFloat:
		return Type{kind: kindFloat}
	case operator == "%":
		return Type{kind: kindInt}
	case left.kind == kindString || right.kind == kindString:
		return Type{kind: kindString}
	}
	return unify(left, right)
}

func (e *evaluation) concat(a, b string) string {
	if len(a)+len(b) > maxText {
		panic(tooLongError(e.source))
	}
	return e.spendText(a + b)
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

// equalityNode computes == and !=.
func equalityNode(left, right node, unequal bool) node {
	return binaryNode(Type{kind: kindBool}, left, right, func(e *evaluation, a, b any) any { return e.equal(a, b) != unequal })
}

// equal reports whether two values are equal. It refuses two comparisons, because handlers
// disagree about their result:
//
//   - of objects, because some handlers ignore the case of names;
//   - of 42 with "42", because json.Number reads them alike.
//
// It compares all elements of lists, so that the position of a difference does not decide
// whether a comparison is refused.
func (e *evaluation) equal(a, b any) bool {
	e.spend(comparisonCost)
	a, b = whole(normalize(a), e.source), whole(normalize(b), e.source)
	if text, ok := b.(string); ok {
		a, b = text, a
	}
	switch x := a.(type) {
	case string:
		return e.equalText(x, b)
	case []any:
		y, areLists := b.([]any)
		return areLists && e.equalLists(x, y)
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
		e.failf("objects are not compared, because handlers disagree about which ones are equal; compare their fields")
	}
	return false
}

func (e *evaluation) equalLists(x, y []any) bool {
	equal := len(x) == len(y)
	for i := range min(len(x), len(y)) {
		equal = e.equal(x[i], y[i]) && equal
	}
	return equal
}

// equalText compares a text with any value.
func (e *evaluation) equalText(text string, v any) bool {
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

// maxNumeral is the length of the longest text that readsLike parses as a number with a fraction.
const maxNumeral = 15

// readsLike reports whether a handler may read a text as the number or bool v. Parsing a text
// with an exponent, or a long text with a fraction, is slow. For these, readsLike returns true
// without parsing.
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
	case text == "" || strings.Trim(text, "0123456789+-.eE") != "": // not a number for any handler
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
