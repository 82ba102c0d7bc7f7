package methodrules

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Fallback is a handler for unary calls. Empty names fit every method.
type Fallback struct {
	request, reply protoreflect.FullName

	// Run runs it. It gives a [*MisconfiguredError] for a request of another type.
	Run func(ctx context.Context, req any) (any, error)
}

// AddFallback is WithFallback.
func AddFallback[Req, Res proto.Message](c *Config, name string, fn func(ctx context.Context, req Req) (Res, error)) error {
	_, twice := c.Fallbacks[name]
	if err := c.checkFallback("WithFallback", name, fn == nil, twice); err != nil {
		return err
	}
	c.Fallbacks[name] = Fallback{
		request: messageName[Req](),
		reply:   messageName[Res](),
		Run: func(ctx context.Context, req any) (any, error) {
			typed, ok := req.(Req)
			if !ok {
				return nil, &MisconfiguredError{c.errorf("fallback %q takes %T, the call has %T", name, typed, req)}
			}
			reply, err := fn(ctx, typed)
			if err == nil && any(reply) == nil {
				return nil, &MisconfiguredError{c.errorf("fallback %q gave no reply", name)}
			}
			return reply, err
		},
	}
	return nil
}

// StreamFallback is WithStreamFallback for a handler of a library.
func (c *Config) StreamFallback(name string, handler any, isNil bool) error {
	err := c.checkFallback("WithStreamFallback", name, isNil, c.StreamFallbacks[name] != nil)
	if err == nil {
		c.StreamFallbacks[name] = handler
	}
	return err
}

func (c *Config) checkFallback(option, name string, missing, twice bool) error {
	switch {
	case name == "":
		return c.errorf("%s: no name: write %s(\"queue\", …)", option, option)
	case missing:
		return c.errorf("%s(%q): the handler is nil", option, name)
	case twice:
		return c.errorf("%s(%q): given twice: remove one", option, name)
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
