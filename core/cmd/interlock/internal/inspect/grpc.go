package inspect

import (
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/overlay"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/protorules"
	"github.com/interlock-go/interlock/keyexpr"
	"github.com/interlock-go/interlock/keyexpr/protovars"
)

// grpc judges the rules of gRPC methods: laid over those of the .proto files where
// they are known, else by themselves.
func (i *inspector) grpc() {
	if i.in.Image != nil {
		for _, m := range i.in.Image.Methods() {
			i.method(ruleset.GRPC(m.FullMethod), m)
		}
		return
	}
	for _, rules := range byEndpoint(i.in.Set, ruleset.TransportGRPC) {
		if rules = i.whole(rules, "the .proto (--descriptors tells) or in the program"); len(rules) > 0 {
			i.judge(grpcSite(rules[0].Endpoint, nil, rules))
		}
	}
}

// whole leaves out the rules whose keys are elsewhere.
func (i *inspector) whole(rules []*ruleset.Resolved, where string) []*ruleset.Resolved {
	var whole []*ruleset.Resolved
	for _, r := range rules {
		if !r.Partial() {
			whole = append(whole, r)
			continue
		}
		i.findings.addOnce(report.Note, r.Problem("key", "not judged: there is none here, so it has to be in "+where))
	}
	return whole
}

// method judges the rules of one method.
func (i *inspector) method(e ruleset.Endpoint, m protorules.Method) {
	own := i.in.Set.Lookup(e)
	for _, r := range own {
		if len(m.Rules) == 0 || r.Endpoint == e {
			i.used[r] = true
		}
	}
	if len(own) == 0 {
		i.fromOptions += len(m.Rules)
	}
	rules, err := i.laidOver(e, m)
	s := grpcSite(e, m.Descriptor, rules)
	switch {
	case err != nil:
		s.report(err, &i.findings)
	case len(rules) > 0:
		if i.judge(s) {
			i.methods = append(i.methods, rules...)
		}
		i.responses(m.Descriptor, rules)
	case len(own) == 0 && len(m.Rules) == 0 && protorules.NeedsRule(m.FullMethod, m.Descriptor):
		i.uncovered(e, "method")
	}
}

// mixedKinds reports rules of methods that take one key as locks of different kinds, as the
// guard of the program does. What a rule file says by itself was judged when it was loaded.
func (i *inspector) mixedKinds() {
	for _, p := range ruleset.MixedKinds(i.methods) {
		i.findings.addOnce(report.Error, p)
	}
}

// laidOver are the rules of a method over its options. Without options a key may be
// in Go, of which nothing is known here.
func (i *inspector) laidOver(e ruleset.Endpoint, m protorules.Method) ([]*ruleset.Resolved, error) {
	if len(m.Rules) > 0 || len(m.Problems) > 0 {
		return overlay.At(i.in.Set, m)
	}
	return i.whole(i.in.Set.Match(e), "the .proto or in the program"), nil
}

// grpcSite is a method; without a descriptor its request may have any field.
func grpcSite(e ruleset.Endpoint, d protoreflect.MethodDescriptor, rules []*ruleset.Resolved) *site {
	c := protovars.Config{}
	if d == nil {
		c.Registered = []protovars.Registered{{Name: "req", Type: reflect.TypeFor[any]()}}
	} else {
		c.Request = d.Input()
	}
	return &site{
		endpoint: e, rules: rules, example: "req.order_id", open: true, fallbacks: fallbacksOf(rules),
		schema: func(more []string) (*keyexpr.Schema, error) { return grpcSchema(c, more) },
	}
}

func grpcSchema(c protovars.Config, more []string) (*keyexpr.Schema, error) {
	for _, name := range more {
		c.Registered = append(c.Registered, protovars.Registered{Name: name, Type: reflect.TypeFor[any]()})
	}
	v, err := protovars.New(c)
	if err != nil {
		return nil, err
	}
	return v.Schema(), nil
}

// responses compares the replies of rules with the method's.
func (i *inspector) responses(d protoreflect.MethodDescriptor, rules []*ruleset.Resolved) {
	for _, r := range rules {
		if r.Response == "" || strings.TrimSpace(r.Response) == "null" {
			continue
		}
		if d.IsStreamingServer() {
			i.findings.addAt(r.Endpoint, report.Error, r.Problem("response", "the method streams its replies, and ends without one: remove it"))
			continue
		}
		if err := protojson.Unmarshal([]byte(r.Response), dynamicpb.NewMessage(d.Output())); err != nil {
			i.findings.addAt(r.Endpoint, report.Error, r.Problem("response", fmt.Sprintf("no %s: %s", d.Output().FullName(), plain(err))))
		}
	}
}

// plain is the text of an error of package proto, which varies its spaces.
func plain(err error) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
}

// noMethod says that the .proto files lack a method, and which one may be meant.
func (i *inspector) noMethod(e ruleset.Endpoint) string {
	if near := nearestMethod(e.Path, i.in.Image.Names()); near != "" {
		return fmt.Sprintf("matches no method: did you mean %q?", near)
	}
	if strings.HasSuffix(e.Path, "*") {
		return "applies to no method: there is none below, or each has rules of its own: remove it"
	}
	return "matches no method of the descriptors: write one such as /shop.v1.Orders/Pay, or compile its .proto file too"
}

// nearestMethod looks among the methods of the service if there is such a service,
// else among the services: full methods have too much in common.
func nearestMethod(path string, names []string) string {
	cut := strings.LastIndexByte(path, '/') + 1
	service, method := path[:cut], path[cut:]
	var services, methods []string
	for _, name := range names {
		own := strings.LastIndexByte(name, '/') + 1
		services = append(services, name[:own])
		if name[:own] == service {
			methods = append(methods, name[own:])
		}
	}
	if len(methods) == 0 {
		if service = failpolicy.Nearest(service, services); service == "" {
			return ""
		}
		return service + method
	}
	if near := failpolicy.Nearest(method, methods); near != "" {
		return service + near
	}
	return ""
}
