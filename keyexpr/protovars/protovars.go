// Package protovars offers the variables of an RPC to key expressions. It
// needs protobuf reflection only: generated messages of the open and the opaque
// API and dynamic messages are all read through their descriptors.
//
//	req.order.id       a field of the request, by its name in the .proto file
//	metadata["x-id"]   a metadata value; the case of the name does not matter
//	method             the full method, /shop.v1.Orders/Pay
//	peer               the address of the caller
//
// and the registered ones of [Config.Registered]. A metadata value that a
// request repeats is an error: metadata.id[0] picks one, metadata.id[:] takes
// all of them.
//
// Each kind of field has one form, and its text is the key, as everywhere: the int64
// 42, the string "42" and 42 in a path of an HTTP route are one key.
//
//	string                   itself; not valid UTF-8 is percent-encoded
//	bool                     true, false
//	int32 … uint64           decimal, exact
//	enum                     the value's name, of aliases the first; the number if it
//	                         has no name. A condition has to write it so: another
//	                         name, an alias and a wrong name are errors at start-up
//	Timestamp                its instant in UTC, as a time.Time of a Go argument:
//	                         2006-01-02T15:04:05.5Z. req.at.seconds is there, too
//	Duration                 its nanoseconds, as a time.Duration
//	bytes                    lower-case hexadecimal, also where they hold text: 3432
//	                         for the bytes "42". JSON writes bytes in base64, which
//	                         is another text: use a string for an id that both have
//	float, double            conditions only, never a key part
//	message                  its fields; unset is missing
//	wrappers, …              like any message: req.note.value
//	repeated                 a list: req.ids, map(req.items, .sku), req.items[0].sku
//	map                      req.labels.k, req.labels["k"]; absent is missing
//
// Presence: an unset message, optional field or member of a oneof is missing. A
// proto3 field without presence that holds an empty string, an integer zero or
// the enum's zero counts as missing; req.shard ?? 0 admits the zero. false is a
// value. The value field of a wrapper that is set may be zero. A Timestamp or Duration that
// is not valid is missing.
//
// A field with a default in proto2 or an edition is never missing: it has the default, as in
// its getter, also where the message around it is unset. Only req.shard == nil shows that it
// is unset. In a condition an unset enum is what its getter returns: the first value.
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
	Registered []Registered
}

// Registered declares a variable that the application computes from the call.
type Registered = keyexpr.Registered

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
