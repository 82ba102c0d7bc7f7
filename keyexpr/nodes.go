package keyexpr

import "github.com/expr-lang/expr/ast"

// children are the nodes below one.
func children(n ast.Node) []*ast.Node {
	switch n := n.(type) {
	case *ast.UnaryNode:
		return []*ast.Node{&n.Node}
	case *ast.ChainNode:
		return []*ast.Node{&n.Node}
	case *ast.PredicateNode:
		return []*ast.Node{&n.Node}
	case *ast.MemberNode:
		return []*ast.Node{&n.Node, &n.Property}
	case *ast.BinaryNode:
		return []*ast.Node{&n.Left, &n.Right}
	case *ast.SliceNode:
		return []*ast.Node{&n.Node, &n.From, &n.To}
	case *ast.CallNode:
		return pointers(n.Arguments)
	case *ast.BuiltinNode:
		return pointers(n.Arguments)
	case *ast.VariableDeclaratorNode:
		return []*ast.Node{&n.Value, &n.Expr}
	case *ast.SequenceNode:
		return pointers(n.Nodes)
	case *ast.ConditionalNode:
		return []*ast.Node{&n.Cond, &n.Exp1, &n.Exp2}
	case *ast.ArrayNode:
		return pointers(n.Nodes)
	case *ast.MapNode:
		return pointers(n.Pairs)
	case *ast.PairNode:
		return []*ast.Node{&n.Key, &n.Value}
	}
	return nil
}

// size is how many nodes the compiler meets. The parser uses b of a < b < c twice, so that
// a tree can have far fewer.
func size(n ast.Node, known map[ast.Node]int) int {
	if n == nil {
		return 0
	}
	if _, ok := known[n]; !ok {
		count := 1
		for _, child := range children(n) {
			count = min(count+size(*child, known), MaxNodes+1)
		}
		known[n] = count
	}
	return known[n]
}

func pointers(nodes []ast.Node) []*ast.Node {
	all := make([]*ast.Node, len(nodes))
	for i := range nodes {
		all[i] = &nodes[i]
	}
	return all
}
