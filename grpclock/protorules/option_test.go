package protorules_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/internal/protofile"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

// For the usage example in lock.proto, Of returns the same rule as the example in Go.
func TestOf_AllForms(t *testing.T) {
	t.Parallel()
	set := fileWith(t, lock(`key: "order_lock_#{req.order_id}" wait_time: "10s" on_busy: STRATEGY_NULL_RESPONSE`))
	forms := map[string]*protoregistry.Types{
		"generated type":        generatedType(t),
		"unknown fields":        new(protoregistry.Types),
		"type made at run time": dynamicType(t, set, "interlock.v1.lock"),
	}
	want := ruleset.Rule{
		Endpoint: ruleset.GRPC("/shop.v1.Orders/Pay"), Key: "order_lock_#{req.order_id}",
		WaitTime: 10 * time.Second, OnBusy: failpolicy.NullResponse,
	}
	for name, known := range forms {
		got := onlyRule(t, read(t, set, known))
		if diff := cmp.Diff(want, got.Rule); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOf_SeveralOptions(t *testing.T) {
	t.Parallel()
	rules, problems := protorules.Of(pay(t,
		lock(`name: "order" key: "order:#{req.order_id}"`),
		lock(`name: "stock" keys: ["stock:1", "stock:2"] disabled: false`),
	))
	if len(problems) != 0 || len(rules) != 2 {
		t.Fatalf("got %d rules, %v", len(rules), problems)
	}
	if rules[0].Rule.Name != "order" || rules[1].Rule.Name != "stock" || !slices.Equal(rules[1].Rule.Keys, []string{"stock:1", "stock:2"}) {
		t.Errorf("got %+v", rules)
	}
	if _, set := rules[1].Fields["disabled"]; !set {
		t.Error("disabled: false does not count as set")
	}
	if _, set := rules[0].Fields["disabled"]; set {
		t.Error("disabled counts as set although it is not written")
	}
}

func TestOf_WithoutOption(t *testing.T) {
	t.Parallel()
	for _, options := range [][]string{nil, {"option deprecated = true;"}} {
		if rules, problems := protorules.Of(pay(t, options...)); rules != nil || problems != nil {
			t.Errorf("%q: got %v, %v", options, rules, problems)
		}
	}
}

// report returns the messages of the problems of a method.
func report(problems []*ruleset.Problem) string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.Error())
	}
	return strings.Join(lines, "\n")
}

func TestOf_InvalidFields(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, option, want string }{
		{
			"duration", lock(`name: "pay" key: "k" wait_time: "10"`),
			`shop/v1/shop.proto:7:5: rule "pay" of grpc /shop.v1.Orders/Pay: wait_time: "10" has no unit: write "10s"`,
		},
		{"word", lock(`key: "k" wait_time: "forevr"`), `wait_time: "forevr" is not a time: write "forever"`},
		{"no word", lock(`key: "k" lease_time: "soon"`), `lease_time: "soon" is not a time: write a time such as "30s" or "watchdog"`},
		{
			"zero", lock(`key: "k" wait_time: "0s"`),
			`wait_time: "0s" has no meaning here: write "none"`,
		},
		{"zero lease", lock(`key: "k" lease_time: "0"`), `lease_time: "0" has no meaning here: write a time such as "30s" or "watchdog"`},
		{"fraction", lock(`key: "k" wait_time: "1.5"`), `wait_time: "1.5" has no unit: write "1.5s"`},
		{"seconds or not", lock(`key: "k" wait_time: "5000"`), `wait_time: "5000" has no unit: write "5000ms" or "5000s"`},
		{"milliseconds", lock(`key: "k" wait_time: "100000"`), `wait_time: "100000" has no unit: write "100000ms"`},
		{"no likely number", lock(`key: "k" debounce: "0.0001"`), `debounce: "0.0001" has no unit: write a time such as "5s"`},
		{"too long", lock(`key: "k" lease_time: "10000000000h"`), `lease_time: "10000000000h" is too long: write "87600h" at most`},
		{
			"status code", lock(`key: "k" status: {busy: {grpc: "ABORTD"}}`),
			`shop/v1/shop.proto:7:5: rule of grpc /shop.v1.Orders/Pay: status.busy.grpc: unknown grpc code "ABORTD": write "ABORTED"`,
		},
		{
			"status number", lock(`key: "k" status: {lost: {http: 0}}`),
			`status.lost.http: 0 is not a status: write one of 400 to 599, such as 500`,
		},
		{
			"enum", lock(`key: "k" on_busy: 99`),
			`on_busy: interlock.v1.Strategy number 99 is not known to this program: write one of <strategies>, or update`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rules, problems := protorules.Of(pay(t, tt.option))
			if len(problems) != 1 || !strings.Contains(rulesettest.WithoutLists(report(problems)), tt.want) {
				t.Errorf("got:\n%s\nwant one with:\n%s", report(problems), tt.want)
			}
			if len(rules) != 1 || rules[0].Rule.Key != "k" {
				t.Errorf("got rules %+v, want the one with its other fields", rules)
			}
		})
	}
}

// A later version of lock.proto may have fields that this program does not know. They are an error at each
// level, because the lock would not behave as its author wrote.
func TestOf_FieldsOfLaterVersion(t *testing.T) {
	t.Parallel()
	later := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)
	wrap := func(number protowire.Number, text []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), text)
	}
	for name, text := range map[string][]byte{
		"number 99 of interlock.v1.Lock":                  later,
		"status: field number 99 of interlock.v1.Status":  wrap(17, later),
		"status.busy: field number 99 of interlock.v1.St": wrap(17, wrap(1, later)),
	} {
		set := fileWith(t)
		options := &descriptorpb.MethodOptions{}
		options.ProtoReflect().SetUnknown(wrap(75625, text))
		file := set.GetFile()[len(set.GetFile())-1]
		file.GetService()[0].GetMethod()[0].Options = options
		_, problems := protorules.Of(read(t, set, generatedType(t)))
		if len(problems) != 1 || !strings.Contains(report(problems), name) {
			t.Errorf("got %q, want one about %q", report(problems), name)
		}
	}
}

func TestOf_UnparsableOption(t *testing.T) {
	t.Parallel()
	set := fileWith(t)
	options := &descriptorpb.MethodOptions{}
	options.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 75625, protowire.BytesType), []byte{0xff}))
	set.GetFile()[len(set.GetFile())-1].GetService()[0].GetMethod()[0].Options = options
	m := read(t, set, new(protoregistry.Types))
	rules, problems := protorules.Of(m)
	if len(rules) != 0 || len(problems) != 1 || !strings.Contains(report(problems), "the option interlock.v1.lock cannot be read") {
		t.Errorf("got %v, %q", rules, report(problems))
	}
}

func TestOf_OtherOptionWithSameNumber(t *testing.T) {
	t.Parallel()
	set := protofile.Compile(t, false, map[string]string{"shop/v1/shop.proto": `syntax = "proto3";
package shop.v1;
import "google/protobuf/descriptor.proto";
extend google.protobuf.MethodOptions { string owner = 75625; }
message Order {}
service Orders {
  rpc Pay(Order) returns (Order) { option (owner) = "payments"; }
}`})
	rules, problems := protorules.Of(read(t, set, dynamicType(t, set, "shop.v1.owner")))
	if len(rules) != 0 || len(problems) != 1 || !strings.Contains(report(problems), "shop.v1.owner has the number 75625 of interlock.v1.lock") {
		t.Errorf("got %v, %q", rules, report(problems))
	}
}

// Options are also read if a loader creates their type at run time.
func TestOf_DynamicType(t *testing.T) {
	t.Parallel()
	m := dynamicOptions{pay(t, lock(`key: "k"`), "option idempotency_level = NO_SIDE_EFFECTS;")}
	if got := onlyRule(t, m); got.Rule.Key != "k" {
		t.Errorf("got %+v", got.Rule)
	}
	if protorules.NeedsRule("/shop.v1.Orders/Pay", m) {
		t.Error("the idempotency_level was not read")
	}
}

func TestOf_InvalidOptions(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]proto.Message{"nil": nil, "typed nil": (*descriptorpb.MethodOptions)(nil)} {
		m := givenOptions{pay(t), options}
		if rules, problems := protorules.Of(m); rules != nil || problems != nil {
			t.Errorf("%s: got %v, %v", name, rules, problems)
		}
		if !protorules.NeedsRule("/shop.v1.Orders/Pay", m) {
			t.Errorf("%s: needs no rule", name)
		}
	}
}
