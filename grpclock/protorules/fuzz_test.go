package protorules_test

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/lockpb"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

// FuzzOf reads any bytes as an option. Every problem has a message, and every rule has the method as its
// endpoint.
func FuzzOf(f *testing.F) {
	for _, row := range rows {
		f.Add(optionBytes(f, pay(f, lock(row.written)).Options()))
	}
	m := pay(f)
	f.Fuzz(func(t *testing.T, option []byte) {
		options := &descriptorpb.MethodOptions{}
		options.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, lockpb.E_Lock.TypeDescriptor().Number(), protowire.BytesType), option))
		rules, problems := protorules.Of(givenOptions{m, options})
		if len(rules) == 0 && len(problems) == 0 {
			t.Error("the option was ignored")
		}
		for _, r := range rules {
			if r.Rule.Endpoint != ruleset.GRPC("/shop.v1.Orders/Pay") || r.Source.Layer != ruleset.LayerProto {
				t.Errorf("got %+v", r)
			}
		}
		for _, p := range problems {
			if p.Message == "" || p.Source.File == "" {
				t.Errorf("got %+v", p)
			}
		}
	})
}

// optionBytes returns the bytes of the only option.
func optionBytes(f *testing.F, options proto.Message) []byte {
	f.Helper()
	text, err := proto.Marshal(options)
	if err != nil {
		f.Fatal(err)
	}
	_, _, tag := protowire.ConsumeTag(text)
	value, _ := protowire.ConsumeBytes(text[tag:])
	return value
}
