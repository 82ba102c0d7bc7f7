package grpclock

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// unaryFallback is a handler for unary calls. Empty names fit every method.
type unaryFallback struct {
	request, reply protoreflect.FullName
	run            func(ctx context.Context, req any) (any, error)
}

type streamFallback = grpc.StreamHandler

// WithFallback registers a handler for unary methods, of the form of a method of a
// generated server. It runs in place of the handler where a rule's strategy is
// fallback and its Fallback is name; no lock is held then. [aspect.OutcomeFrom] of
// its context tells the cause. The types must be those of the method, which
// [Guard.Check] compares; with proto.Message in their place any method fits.
//
// One name may have a handler for unary methods and one for streams.
func WithFallback[Req, Res proto.Message](name string, fn func(ctx context.Context, req Req) (Res, error)) Option {
	return func(c *config) error {
		_, twice := c.unaryFallbacks[name]
		if err := checkFallback("WithFallback", name, fn == nil, twice); err != nil {
			return err
		}
		c.unaryFallbacks[name] = unaryFallback{
			request: messageName[Req](),
			reply:   messageName[Res](),
			run: func(ctx context.Context, req any) (any, error) {
				typed, ok := req.(Req)
				if !ok {
					return nil, misconfigured(fmt.Errorf("grpclock: fallback %q takes %T, the call has %T", name, typed, req))
				}
				return fn(ctx, typed)
			},
		}
		return nil
	}
}

// WithStreamFallback registers a handler for streaming methods; otherwise as
// [WithFallback]. It gets the server's implementation and the stream, from which it
// receives all messages, a first one that was needed for the key included.
func WithStreamFallback(name string, handler grpc.StreamHandler) Option {
	return func(c *config) error {
		_, twice := c.streamFallbacks[name]
		if err := checkFallback("WithStreamFallback", name, handler == nil, twice); err != nil {
			return err
		}
		c.streamFallbacks[name] = handler
		return nil
	}
}

func checkFallback(option, name string, missing, twice bool) error {
	switch {
	case name == "":
		return errors.New("grpclock: " + option + ": no name: write " + option + `("queue", …)`)
	case missing:
		return fmt.Errorf("grpclock: %s(%q): the handler is nil", option, name)
	case twice:
		return fmt.Errorf("grpclock: %s(%q): given twice: remove one", option, name)
	default:
		return nil
	}
}

// messageName is the name of a generated message type; empty for an interface and
// for dynamic messages, whose types do not tell.
func messageName[M proto.Message]() protoreflect.FullName {
	var none M
	switch any(none).(type) {
	case nil, *dynamicpb.Message:
		return ""
	default:
		return none.ProtoReflect().Descriptor().FullName()
	}
}
