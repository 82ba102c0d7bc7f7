package inspect

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/image"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/protorules"
	"github.com/interlock-go/interlock/keyexpr"
)

// grpc judges the rules of gRPC methods: laid over those of the .proto files where
// they are known, else by themselves.
func (i *inspector) grpc() {
	if i.in.Image != nil {
		for _, m := range i.in.Image.Methods {
			i.method(ruleset.GRPC(m.FullMethod), m)
		}
		judge := i.in.Image.Judge()
		judge.Judge(&i.findings.Report, i.in.Set)
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
		i.findings.add(report.Note, r.Problem("key", "not judged: there is none here, so it has to be in "+where))
	}
	return whole
}

// method judges the rules of one method.
func (i *inspector) method(e ruleset.Endpoint, m protorules.Method) {
	if len(i.in.Set.Lookup(e)) == 0 {
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
	}
}

// laidOver are the rules of a method over its options. Without options a key may be
// in Go, of which nothing is known here.
func (i *inspector) laidOver(e ruleset.Endpoint, m protorules.Method) ([]*ruleset.Resolved, error) {
	if image.HasOptions(m) {
		return image.Overlay(i.in.Set, m)
	}
	return i.whole(i.in.Set.Match(e), "the .proto or in the program"), nil
}

// grpcSite is a method; without a descriptor its request may have any field.
func grpcSite(e ruleset.Endpoint, d protoreflect.MethodDescriptor, rules []*ruleset.Resolved) *site {
	s := &site{endpoint: e, rules: rules, open: true}
	s.schema = func(more assumed) (*keyexpr.Schema, error) {
		var request protoreflect.MessageDescriptor
		if d != nil {
			request = d.Input()
		} else {
			more.variables = append(more.variables, "req")
		}
		registered := make([]keyexpr.Variable, len(more.variables))
		for i, name := range more.variables {
			registered[i] = keyexpr.Variable{Name: name, Type: keyexpr.TypeFor[any]()}
		}
		return grpclock.Schema(request, registered...)
	}
	return s
}

// responses compares the replies of rules with the method's.
func (i *inspector) responses(d protoreflect.MethodDescriptor, rules []*ruleset.Resolved) {
	for _, r := range rules {
		if r.Response == "" || strings.TrimSpace(r.Response) == "null" {
			continue
		}
		if d.IsStreamingServer() {
			i.findings.add(report.Error, r.Problem("response", "the method streams its replies, and ends without one: remove it"))
			continue
		}
		if err := protojson.Unmarshal([]byte(r.Response), dynamicpb.NewMessage(d.Output())); err != nil {
			i.findings.add(report.Error, r.Problem("response", fmt.Sprintf("no %s: %s", d.Output().FullName(), image.Plain(err))))
		}
	}
}
