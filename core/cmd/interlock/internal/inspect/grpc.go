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

// checkGRPC checks the rules of each gRPC method in the descriptors, merged with the options in its .proto file. If the
// descriptors are not known, it checks the rules of each method in the set.
func checkGRPC(i *inspector) {
	if i.in.Image != nil {
		for _, m := range i.in.Image.Methods {
			checkMethod(i, ruleset.GRPC(m.FullMethod), m)
		}
		judge := i.in.Image.Judge()
		judge.Judge(&i.findings.Report, i.in.Set)
		return
	}
	for _, rules := range byEndpoint(i.in.Set, ruleset.TransportGRPC) {
		if rules = i.withKey(rules, "the .proto (pass --descriptors) or in the program"); len(rules) > 0 {
			i.check(grpcSite(rules[0].Endpoint, nil, rules))
		}
	}
}

// checkMethod checks the rules of the method m, whose endpoint is e.
func checkMethod(i *inspector, e ruleset.Endpoint, m protorules.Method) {
	if len(i.in.Set.Lookup(e)) == 0 {
		i.protoRules += len(m.Rules)
	}
	rules, err := mergeOptions(i, e, m)
	s := grpcSite(e, m.Descriptor, rules)
	switch {
	case err != nil:
		s.report(err, &i.findings)
	case len(rules) > 0:
		if i.check(s) {
			i.methods = append(i.methods, rules...)
		}
		checkResponses(m.Descriptor, rules, &i.findings)
	}
}

// mergeOptions returns the rules of a method, merged with the options in its .proto file. If the method has no options, the
// key may be in Go, so mergeOptions leaves out rules without a key.
func mergeOptions(i *inspector, e ruleset.Endpoint, m protorules.Method) ([]*ruleset.Resolved, error) {
	if image.HasOptions(m) {
		return image.Overlay(i.in.Set, m)
	}
	return i.withKey(i.in.Set.Match(e), "the .proto or in the program"), nil
}

// grpcSite returns the site of the method d. If d is nil, the request may have any field.
func grpcSite(e ruleset.Endpoint, d protoreflect.MethodDescriptor, rules []*ruleset.Resolved) *site {
	s := &site{endpoint: e, rules: rules, anyVariable: true}
	s.schema = func(more unknownNames) (*keyexpr.Schema, error) {
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

// checkResponses adds an error for each rule whose response the method d cannot send as its reply.
func checkResponses(d protoreflect.MethodDescriptor, rules []*ruleset.Resolved, found *findings) {
	for _, r := range rules {
		if r.Response == "" || strings.TrimSpace(r.Response) == "null" {
			continue
		}
		if d.IsStreamingServer() {
			found.add(report.Error, r.Problem("response", "the method streams its replies, and ends without one: remove it"))
			continue
		}
		if err := protojson.Unmarshal([]byte(r.Response), dynamicpb.NewMessage(d.Output())); err != nil {
			found.add(report.Error, r.Problem("response", fmt.Sprintf("not a %s: %s", d.Output().FullName(), image.Plain(err))))
		}
	}
}
