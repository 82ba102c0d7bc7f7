package simulate

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/image"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/protorules"
	"github.com/interlock-go/interlock/keyexpr/protovars"
)

// GRPC tells what the rules do with a call of a full method, such as
// "/shop.v1.Orders/Pay". message is the request as JSON, of a stream its first
// message. Without the method's descriptor there is no message. The error is a
// [*NoMatchError] if no rule concerns the call.
func (p *Program) GRPC(fullMethod string, metadata map[string][]string, message []byte) ([]Answer, error) {
	m, err := p.method(fullMethod)
	if err != nil {
		return nil, err
	}
	e := ruleset.GRPC(fullMethod)
	if !image.HasOptions(m) {
		where := "the .proto (--descriptors tells) or in the program"
		if p.Image != nil {
			where = "the program: its .proto has none either"
		}
		if err := p.elsewhere(e, where); err != nil {
			return nil, err
		}
	}
	rules, err := image.Overlay(p.Set, m)
	if err != nil {
		return nil, err
	}
	if len(rules) == 0 {
		return nil, p.noRule(e, m)
	}
	req, err := requestOf(m.Descriptor, message)
	if err != nil {
		return nil, err
	}
	host := &grpcHost{metadata: metadata, method: fullMethod, peer: p.Variables["peer"]}
	c := protovars.Config{}
	if m.Descriptor != nil {
		c.Request = m.Descriptor.Input()
	}
	for _, name := range p.names("peer") {
		c.Registered = append(c.Registered, protovars.Registered{Name: name})
		host.values = append(host.values, p.Variables[name])
	}
	v, err := protovars.New(c)
	if err != nil {
		return nil, err
	}
	return answers(aspect.Site{Endpoint: e, Schema: v.Schema()}, rules, v.Call(req, host))
}

// noRule says why a method takes no lock.
func (p *Program) noRule(e ruleset.Endpoint, m protorules.Method) error {
	if own := p.Set.Lookup(e); len(own) > 0 && own[0].None {
		return unlocked(e, own[0].Source("none"))
	}
	for _, d := range m.Rules {
		if d.Rule.None {
			return unlocked(e, d.Source)
		}
	}
	return noMatchf("no rule is for %s", e)
}

// method finds a method; without an image it has a name only.
func (p *Program) method(fullMethod string) (protorules.Method, error) {
	if p.Image == nil {
		return protorules.Method{FullMethod: fullMethod}, nil
	}
	if m, ok := p.Image.Method(fullMethod); ok {
		return m, nil
	}
	judge := p.Image.Judge()
	judge.Noun = "method of the descriptors"
	return protorules.Method{}, noMatchf("%s %s", fullMethod, judge.Missing(ruleset.GRPC(fullMethod)))
}

// requestOf reads the request; of an unknown method there is none.
func requestOf(d protoreflect.MethodDescriptor, message []byte) (proto.Message, error) {
	if d == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	m := dynamicpb.NewMessage(d.Input())
	if len(message) == 0 {
		return m, nil
	}
	if err := protojson.Unmarshal(message, m); err != nil {
		return nil, fmt.Errorf("the data is no %s: %s", d.Input().FullName(), image.Plain(err))
	}
	return m, nil
}

// names are the variables that have a value, sorted, but for one that is no
// registered one.
func (p *Program) names(standard string) []string {
	names := slices.Sorted(maps.Keys(p.Variables))
	return slices.DeleteFunc(names, func(name string) bool { return name == standard })
}

// grpcHost is what a server knows of the call: the [protovars.Host].
type grpcHost struct {
	metadata map[string][]string
	method   string
	peer     string
	values   []any // of the registered variables
}

func (h *grpcHost) Metadata(key string) []string  { return h.metadata[key] }
func (h *grpcHost) Method() string                { return h.method }
func (h *grpcHost) Peer() string                  { return h.peer }
func (h *grpcHost) Registered(i int) (any, error) { return h.values[i], nil }
