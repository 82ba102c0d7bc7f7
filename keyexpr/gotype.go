package keyexpr

import (
	"errors"
	"reflect"
)

// Names says which names the fields of Go structs have in expressions.
type Names uint8

const (
	// GoNames uses the names of the Go fields.
	GoNames Names = iota
	// JSONNames uses the names that encoding/json uses.
	JSONNames
)

// GoType returns the type of Go values of type t. Structs become objects by
// their exported fields, embedded ones included; pointers may be nil, which is
// missing; slices and arrays are lists (a []byte is refused), maps need string
// keys; a type that implements encoding.TextMarshaler is a string; interfaces
// are [AnyType]. Functions, channels and complex numbers are errors. Fields of
// unusable types are left out.
func GoType(t reflect.Type, names Names) (Type, error) {
	return Type{}, errors.New("not implemented")
}
