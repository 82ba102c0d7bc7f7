package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/declared/orderspb"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

// showEffective prints the rule in force for rpc Pay. d.service.Rules().Dump().WriteText
// prints the whole rule file.
func showEffective(_ context.Context, d *demo) (string, error) {
	const method = orderspb.Orders_Pay_FullMethodName
	descriptor := orderspb.File_orders_proto.Services().ByName("Orders").Methods().ByName("Pay")
	options, problems := protorules.Of(descriptor)
	if err := ruleset.Invalid(problems...); err != nil {
		return "", err
	}
	rules, err := d.service.Rules().Overlay(ruleset.GRPC(method), options...)
	if err != nil {
		return "", err
	}
	if err := (ruleset.Dump{Rules: rules}).WriteText(d.out); err != nil {
		return "", err
	}
	return layersOf(rules[0])
}

// layersOf returns the layers of the fields without duplicates.
func layersOf(rule *ruleset.Resolved) (seen string, err error) {
	var wrong []error
	for _, field := range []struct {
		name string
		want ruleset.Layer
	}{
		{"wait_time", ruleset.LayerYAML},
		{"key", ruleset.LayerProto},
		{"lease_time", ruleset.LayerProfile},
		{"on_busy", ruleset.LayerDefault},
	} {
		layer := rule.Source(field.name).Layer
		if seen != "" {
			seen += ", "
		}
		seen += layer.String()
		if layer != field.want {
			wrong = append(wrong, fmt.Errorf("%s comes from %s, want %s", field.name, layer, field.want))
		}
	}
	return seen, errors.Join(wrong...)
}
