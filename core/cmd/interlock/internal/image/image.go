// Package image reads compiled .proto files, as `buf build -o` and
// `protoc --include_imports --include_source_info -o` write them, and lays rules over their options.
//
// It handles descriptors and the options of methods. It depends on no rule file and no command. The
// commands and package inspect call it.
package image

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/input"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

// Image holds the content of compiled .proto files.
type Image struct {
	Files   *protoregistry.Files
	Methods []protorules.Method // the methods of all services, in the order of their names
}

// Load reads a file with a binary FileDescriptorSet.
func Load(path string) (*Image, error) {
	content, err := input.File(path, input.Descriptors)
	if err != nil {
		return nil, err
	}
	image, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return image, nil
}

func parse(content []byte) (*Image, error) {
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(content, set); err != nil || len(set.GetFile()) == 0 {
		return nil, fmt.Errorf("not a file of descriptors: write one with `buf build -o image.binpb`, or `protoc --include_imports --include_source_info -o image.binpb`")
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, fmt.Errorf("the descriptors are not complete (protoc needs --include_imports): %s", Plain(err))
	}
	return &Image{files, protorules.All(files)}, nil
}

// Judge returns a judge that compares rules with the methods.
func (i *Image) Judge() aspect.Judge {
	j := aspect.Judge{Transport: ruleset.TransportGRPC, Hint: "write a method of the descriptors, such as /shop.v1.Orders/Pay, or compile its .proto file too"}
	j.Below = func(e ruleset.Endpoint) bool { m, _ := i.Method(e.Path); return HasOptions(m) }
	j.Changes = func(e ruleset.Endpoint) bool {
		m, _ := i.Method(e.Path)
		return protorules.NeedsRule(m.FullMethod, m.Descriptor)
	}
	for _, m := range i.Methods {
		j.Endpoints = append(j.Endpoints, ruleset.GRPC(m.FullMethod))
	}
	return j
}

// HasOptions reports whether the .proto file has lock options for a method.
func HasOptions(m protorules.Method) bool { return len(m.Rules)+len(m.Problems) > 0 }

// Method returns the method with a full name.
func (i *Image) Method(fullMethod string) (protorules.Method, bool) {
	n := slices.IndexFunc(i.Methods, func(m protorules.Method) bool { return m.FullMethod == fullMethod })
	if n < 0 {
		return protorules.Method{}, false
	}
	return i.Methods[n], true
}

// Plain returns the text of an error of package proto with ordinary spaces, because package proto
// varies the spaces.
func Plain(err error) string {
	return strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
}

// Overlay lays the rules of a set over the options of a method. If neither names the method, the wildcards
// of the set apply. The error is a [*ruleset.InvalidError] with every problem.
func Overlay(set *ruleset.Set, m protorules.Method) ([]*ruleset.Resolved, error) {
	if err := ruleset.Invalid(m.Problems...); err != nil {
		return nil, err
	}
	return set.Overlay(ruleset.GRPC(m.FullMethod), m.Rules...)
}

// All returns the rules of a set in their order, laid over the options of their methods. The rules of
// methods that the set does not name follow.
func (i *Image) All(set *ruleset.Set) ([]*ruleset.Resolved, error) {
	laid := map[ruleset.Endpoint][]*ruleset.Resolved{} // the rules of the methods that have options
	var problems []*ruleset.Problem
	var order []*ruleset.Resolved // these rules, in the order of the methods
	for _, m := range i.Methods {
		if !HasOptions(m) {
			continue
		}
		rules, err := Overlay(set, m)
		if invalid, ok := errors.AsType[*ruleset.InvalidError](err); ok {
			problems = append(problems, invalid.Problems...)
		}
		if len(rules) > 0 {
			laid[ruleset.GRPC(m.FullMethod)] = rules
			order = append(order, rules...)
		}
	}
	var all []*ruleset.Resolved
	for _, r := range append(set.Rules(), order...) {
		rules, found := laid[r.Endpoint]
		if !found {
			all = append(all, r)
			continue
		}
		laid[r.Endpoint] = nil // so that the rules are added once
		all = append(all, rules...)
	}
	return all, ruleset.Invalid(problems...)
}
