package keyexpr

import (
	"reflect"

	"github.com/expr-lang/expr/ast"
)

// refine takes the type that the language's checker found where the resolver
// knows none.
func refine(t Type, n ast.Node) Type {
	switch n.Type().Kind() {
	case reflect.String:
		return StringType()
	case reflect.Bool:
		return BoolType()
	case reflect.Int:
		return IntType()
	case reflect.Float64:
		return FloatType()
	case reflect.Slice:
		return ListType(AnyType())
	case reflect.Map:
		return MapType(AnyType())
	}
	return t
}
