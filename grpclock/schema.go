package grpclock

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/grpclock/internal/protovars"
	"github.com/interlock-go/interlock/keyexpr"
)

// Schema returns the variables that keys and conditions of a method can use: the request message, the
// standard variables, and the registered variables. Tests use it to compile templates without a server.
// A nil request leaves req out.
func Schema(request protoreflect.MessageDescriptor, registered ...keyexpr.Variable) (*keyexpr.Schema, error) {
	v, err := protovars.New(protovars.Config{Request: request, Registered: registered})
	if err != nil {
		return nil, err
	}
	return v.Schema(), nil
}
