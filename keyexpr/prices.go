package keyexpr

import (
	"math/bits"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"
)

// loops are the builtins that run a predicate for each element.
var loops = map[string]bool{ //nolint:gochecknoglobals // a table that is only read
	"map": true, "filter": true, "sortBy": true, "find": true, "findLast": true, "findIndex": true, "findLastIndex": true,
	"all": true, "any": true, "one": true, "none": true, "count": true, "sum": true,
}

// constantBuiltins take the same time for any operands; nodePrice has it.
var constantBuiltins = map[string]bool{ //nolint:gochecknoglobals // a table that is only read
	"abs": true, "ceil": true, "floor": true, "round": true, "first": true, "last": true, "take": true,
	"bitand": true, "bitor": true, "bitxor": true, "bitnand": true, "bitshl": true, "bitshr": true, "bitushr": true, "bitnot": true,
}

// constantOperators likewise. Comparisons and + of operands that may be long are in
// meteredFunctions, too.
var constantOperators = map[string]bool{ //nolint:gochecknoglobals // a table that is only read
	"and": true, "&&": true, "or": true, "||": true, "not": true, "!": true, "??": true,
	"-": true, "*": true, "/": true, "%": true, "**": true, "^": true,
}

// nodePrice is what a node costs by itself, whatever its operands are.
func nodePrice(n ast.Node) price {
	switch n := n.(type) {
	case *ast.CallNode:
		return price{160, 48 + 16*len(n.Arguments)}
	case *ast.BuiltinNode:
		if loops[n.Name] {
			return price{400, 1024} // the machine allocates a scope for each beginning
		}
		return price{160, 64 + 16*len(n.Arguments)}
	case *ast.BinaryNode:
		return price{80, 64}
	case *ast.SliceNode:
		return price{150, 48}
	case *ast.ArrayNode:
		return price{60 + 10*len(n.Nodes), 32 + 16*len(n.Nodes)}
	case *ast.MapNode:
		return price{300 + 100*len(n.Pairs), 400 + 128*len(n.Pairs)}
	case *ast.PointerNode:
		return price{20, 16}
	}
	return price{20, 8}
}

// loopTurn is what a turn of a loop costs without its predicate.
func loopTurn(b *ast.BuiltinNode) price {
	switch b.Name {
	case "map", "filter":
		return price{80, 112} // the stack of the machine grows with the result
	case "sortBy":
		return price{1500, 144} // at most 20 comparisons
	}
	return price{50, 16}
}

// paidOpcodes are the operations of the machine that code may have: those whose time
// does not depend on operands, comparisons and additions where the tree says so, and
// calls, which pay themselves. A test knows all the others.
var paidOpcodes = map[vm.Opcode]bool{ //nolint:gochecknoglobals // a table that is only read
	vm.OpPush: true, vm.OpInt: true, vm.OpPop: true, vm.OpStore: true, vm.OpLoadVar: true, vm.OpLoadConst: true, vm.OpLoadFast: true,
	vm.OpLoadFunc: true, vm.OpTrue: true, vm.OpFalse: true, vm.OpNil: true, vm.OpNegate: true, vm.OpNot: true, vm.OpDeref: true,
	vm.OpJump: true, vm.OpJumpIfTrue: true, vm.OpJumpIfFalse: true, vm.OpJumpIfNil: true, vm.OpJumpIfNotNil: true,
	vm.OpJumpIfEnd: true, vm.OpJumpBackward: true, vm.OpAnd: true, vm.OpOr: true,
	vm.OpEqual: true, vm.OpEqualInt: true, vm.OpEqualString: true, vm.OpLess: true, vm.OpMore: true,
	vm.OpLessOrEqual: true, vm.OpMoreOrEqual: true, vm.OpStartsWith: true, vm.OpEndsWith: true,
	vm.OpAdd: true, vm.OpSubtract: true, vm.OpMultiply: true, vm.OpDivide: true, vm.OpModulo: true, vm.OpExponent: true,
	vm.OpSlice: true, vm.OpLen: true, vm.OpArray: true, vm.OpMap: true, vm.OpThrow: true,
	vm.OpCall1: true, vm.OpCall2: true, vm.OpCall3: true, vm.OpCallN: true, vm.OpCallBuiltin1: true,
	vm.OpBegin: true, vm.OpEnd: true, vm.OpIncrementIndex: true, vm.OpDecrementIndex: true, vm.OpIncrementCount: true,
	vm.OpGetIndex: true, vm.OpGetCount: true, vm.OpGetLen: true, vm.OpGetAcc: true, vm.OpSetAcc: true, vm.OpSetIndex: true,
	vm.OpPointer: true, vm.OpCreate: true, vm.OpSortBy: true, vm.OpSort: true,
}

// searchPrice is that of looking for part in a text. Comparing can begin at every
// position and fail at the end of part each time, so a long part costs more.
func searchPrice(text, part string) int {
	return 20 + len(text)*(2+len(part)/64)
}

// wide counts the bytes of characters outside ASCII, which cost more to look at.
func wide(text string) int {
	count := 0
	for i := range len(text) {
		count += int(text[i] >> 7)
	}
	return count
}

// numberPrice is that of reading a text as a float. A few bytes can take long: those of
// a number in between two of the smallest floats are multiplied out to 700 digits.
func numberPrice(text string) int {
	switch {
	case !isDecimal(text):
		return len(text)
	case len(text) > 40 || strings.ContainsAny(text, "eE"):
		return 40_000 + 6*len(text)
	case len(text) > 15:
		return 2_000
	}
	return 100
}

// isDecimal reports whether a text has nothing but the characters of a decimal number.
func isDecimal(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9', c == '+', c == '-', c == '.', c == 'e', c == 'E':
		default:
			return false
		}
	}
	return text != ""
}

// rounds is how often sorting n elements looks at each of them.
func rounds(n int) int { return bits.Len(uint(max(n, 1))) }

// longText is the length from which the text of a key is paid for. Parts are few, so
// that shorter ones are lost in the floor.
const longText = 4 << 10

// textPrice is that of encoding a value.
func textPrice(text string) price {
	return price{6*len(text) + 16*wide(text), 6 * len(text)}.plus(keyPrice(len(text)))
}

// keyPrice is that of copying what is around the value in a key, and of the hash that
// a long key ends in.
func keyPrice(size int) price { return price{4 * size, 2 * size} }

// elementsPrice is that of making texts of the elements of a list.
func elementsPrice(v any) price {
	cost := price{100, 48}.times(listLength(v))
	texts := 0
	_ = each(v, func(element any) error { //nolint:errcheck // what is no list is refused by who asks
		if text, ok := element.(string); ok {
			texts += len(text) + wide(text)
		}
		return nil
	})
	return cost.plus(price{16 * texts, 2 * texts})
}
