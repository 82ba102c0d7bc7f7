package protovars

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/keyexpr"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The slots of the standard variables. The request, if there is one, and the registered variables
// follow.
const (
	slotMetadata = iota
	slotMethod
	slotPeer
	slotRegistered
)

// Variables is a checked [Config]. It is immutable and safe for concurrent use.
type Variables struct {
	schema     *keyexpr.Schema
	message    protoreflect.FullName // the type of req
	request    int                   // the slot of req, or -1
	registered int                   // the slot of the first registered variable
}

// New checks a config. Its error joins one error for each invalid name, each clash with a standard
// variable, and each type that expressions cannot use.
func New(c Config) (*Variables, error) {
	metadata := &keyexpr.Keyed{Noun: "metadata key", Open: true, Repeatable: true, Canonical: strings.ToLower, Caseless: ":authority"}
	variables := []keyexpr.Variable{
		slotMetadata: {Name: "metadata", Keyed: metadata},
		slotMethod:   {Name: "method", Type: keyexpr.TypeFor[string]()},
		slotPeer:     {Name: "peer", Type: keyexpr.AddressType()},
	}
	v := &Variables{request: -1, registered: slotRegistered}
	if c.Request != nil {
		v.message, v.request, v.registered = c.Request.FullName(), slotRegistered, slotRegistered+1
		variables = append(variables, keyexpr.Variable{Name: "req", Type: keyexpr.ObjectType(objectOf(c.Request))})
	}
	for _, r := range c.Registered {
		r.Registered = true
		variables = append(variables, r)
	}
	var err error
	v.schema, err = keyexpr.NewSchema(variables...)
	return v, err
}

// RequestSlot returns the slot of req. ok is false if the variables have no req.
func (v *Variables) RequestSlot() (slot int, ok bool) { return v.request, v.request >= 0 }

// Schema returns the schema to compile templates against.
func (v *Variables) Schema() *keyexpr.Schema { return v.schema }

// Call returns the values of one call. req is nil for a call without a message. An expression fails if the
// type of the message is not Config.Request. Only one goroutine may use the Call at a time. It serves any
// number of templates.
func (v *Variables) Call(req proto.Message, host Host) *Call {
	return &Call{variables: v, req: req, host: host}
}

// Call is the [keyexpr.Env] of one RPC.
type Call struct {
	variables  *Variables
	req        proto.Message
	host       Host
	registered map[int]result
}

type result struct {
	value any
	err   error
}

// Value implements [keyexpr.Env].
func (c *Call) Value(slot int) (any, error) {
	switch slot {
	case slotMethod:
		return c.host.Method(), nil
	case slotPeer:
		return c.host.Peer(), nil
	case c.variables.request:
		return c.message()
	}
	return c.registeredValue(slot - c.variables.registered)
}

func (c *Call) message() (any, error) {
	if c.req == nil {
		return nil, nil //nolint:nilnil // nil is missing
	}
	m := c.req.ProtoReflect()
	if got := m.Descriptor().FullName(); got != c.variables.message {
		return nil, fmt.Errorf("the message is a %s, not a %s", got, c.variables.message)
	}
	if !m.IsValid() {
		return nil, nil //nolint:nilnil // nil is missing
	}
	return m, nil
}

func (c *Call) registeredValue(i int) (any, error) {
	if r, ok := c.registered[i]; ok {
		return r.value, r.err
	}
	value, err := c.host.Registered(i)
	if c.registered == nil {
		c.registered = make(map[int]result)
	}
	c.registered[i] = result{value, err}
	return value, err
}

// Items implements [keyexpr.Env].
func (c *Call) Items(_ int, key string) ([]string, error) { return c.host.Metadata(key), nil }

var _ keyexpr.Env = (*Call)(nil)
