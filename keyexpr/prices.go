package keyexpr

import (
	"encoding/json"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"
)

// loops are the builtins that run a predicate for each element, and what a turn costs
// without it.
var loops = map[string]price{ //nolint:gochecknoglobals // a table that is only read
	"map": {80, 112}, "filter": {80, 112}, // the stack of the machine grows with the result
	"sortBy": {1500, 144}, // at most 20 comparisons
	"find":   {50, 16}, "findIndex": {50, 16}, "count": {50, 16}, "sum": {50, 16},
	"all": {50, 16}, "any": {50, 16}, "one": {50, 16}, "none": {50, 16},
}

// nodePrice is what a node costs by itself, whatever its operands are.
func nodePrice(n ast.Node) price {
	switch n := n.(type) {
	case *ast.CallNode:
		return price{160, 48 + 16*len(n.Arguments)}
	case *ast.BuiltinNode:
		if _, loop := loops[n.Name]; loop {
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

// longText is the length from which the text of a key is paid for. Parts are few, so
// that shorter ones are lost in the floor.
const longText = 4 << 10

// The prices of a key.
//
//nolint:gochecknoglobals // they are only read
var (
	partByte     = price{10, 8}   // of a value: it is encoded, and hashed if it is long
	elementByte  = price{14, 6}   // likewise of an element of a list, which is also looked up
	elementPrice = price{100, 48} // of an element without its text
	aroundByte   = price{4, 2}    // of what is around an element, which is copied for each
)

// payText pays for encoding a value, by its length before it is looked at: the same long
// one can be every element of a list.
func (m *meter) payText(env Env, v any, each price) bool {
	text := asText(v)
	cost := each.times(len(text))
	if number, ok := v.(json.Number); ok {
		cost = cost.plus(digitsPrice(number))
	}
	return m.spend(env, cost) && m.spend(env, price{16 * wide(text), 0})
}

// digitsPrice is that of finding out that a number is a long integer: the errors that tell
// have copies of it.
func digitsPrice(number json.Number) price { return price{8, 6}.times(len(number)) }
