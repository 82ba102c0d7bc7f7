// Package protovars offers the variables of an RPC to key expressions, as package keyexpr
// documents them. It needs protobuf reflection only: generated messages of the open and the
// opaque API and dynamic messages are all read through their descriptors.
package protovars

import (
	"github.com/interlock-go/interlock/keyexpr"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Config says which variables a method offers.
type Config struct {
	// Request describes the request message. Nil leaves req out, for streams
	// whose key must not wait for a message.
	Request protoreflect.MessageDescriptor
	// Registered are the application's own variables.
	Registered []keyexpr.Variable
}

// Host answers what only the server of a call knows. Its methods are called on
// the goroutine that builds the key, only if an expression needs them.
type Host interface {
	// Metadata returns the values of a lower-case metadata key.
	Metadata(key string) []string
	// Method returns the full method name, with the leading slash.
	Method() string
	// Peer returns the caller's address without a port.
	Peer() string
	// Registered returns the value of Config.Registered[i]; nil or an empty
	// string is unset.
	Registered(i int) (any, error)
}
