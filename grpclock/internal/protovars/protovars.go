// Package protovars supplies the variables of an RPC to key expressions. Package keyexpr documents the
// variables.
//
// The package depends on protobuf reflection and keyexpr. It reads generated messages of the open and the
// opaque API, and dynamic messages, through their descriptors. It does not depend on servers, rules or
// locks: a server supplies its values through [Host]. Packages methodrules, methodcall and grpclock, and
// command interlock, call it.
package protovars

import (
	"github.com/interlock-go/interlock/keyexpr"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Config selects the variables of a method.
type Config struct {
	// Request describes the request message. Nil leaves req out. A stream whose key must not
	// wait for a message has no req.
	Request protoreflect.MessageDescriptor
	// Registered are the variables that the application registers.
	Registered []keyexpr.Variable
}

// Host supplies the values that only the server of a call can provide. Call calls its methods on
// the goroutine that builds the key, and only if an expression needs them.
type Host interface {
	// Metadata returns the values of a lower-case metadata key.
	Metadata(key string) []string
	// Method returns the full method name, with the leading slash.
	Method() string
	// Peer returns the address of the caller without a port.
	Peer() string
	// Registered returns the value of Config.Registered[i]. Nil and the empty string mean
	// unset.
	Registered(i int) (any, error)
}
