package keyexpr

import (
	"reflect"
	"strconv"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"
)

// evaluationName is what the running evaluation is called in code. A user cannot write
// it, nor the names of operations.
const evaluationName = "$evaluation"

// operation is what this package does in the place of the language's machine: reading a
// reference, or work that has to be paid for.
type operation func(e *evaluation, args []any) (any, error)

// declare adds an operation to the functions of one expression. It returns a call of it
// in the place of a node, with the result that the language's checker is told.
func declare(c *conf.Config, place ast.Node, do operation, result reflect.Type, args ...ast.Node) *ast.CallNode {
	name := "$" + strconv.Itoa(len(c.Functions))
	signature := reflect.FuncOf([]reflect.Type{reflect.TypeFor[[]any]()}, []reflect.Type{result}, true)
	c.Functions[name] = &builtin.Function{Name: name, Func: do.call, Types: []reflect.Type{signature}}
	callee, self := &ast.IdentifierNode{Value: name}, &ast.IdentifierNode{Value: evaluationName}
	call := &ast.CallNode{Callee: callee, Arguments: append([]ast.Node{self}, args...)}
	for _, n := range []ast.Node{callee, self, call} {
		n.SetLocation(place.Location())
	}
	return call
}

// call does it for the running evaluation, which keeps its error: unlike those of the
// machine, it is one of this package.
func (do operation) call(args ...any) (any, error) {
	e, _ := args[0].(*evaluation) //nolint:errcheck // as declare has it
	v, err := do(e, args[1:])
	if err != nil && e.failure == nil {
		e.failure = e.program.failed(err.Error())
	}
	return v, err
}
