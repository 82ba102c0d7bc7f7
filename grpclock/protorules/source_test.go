package protorules_test

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/internal/protofile"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

func TestOf_SourceLines(t *testing.T) {
	t.Parallel()
	set := fileWith(t, "option deprecated = true;", lock("key: \"k\"\n      wait_time: \"1s\""))
	got := onlyRule(t, read(t, set, generatedType(t)))
	want := ruleset.Source{Layer: ruleset.LayerProto, File: "shop/v1/shop.proto", Line: 8, Column: 5}
	if got.Source != want || got.Fields["key"] != want || got.Fields["wait_time"] != want || len(got.Fields) != 2 {
		t.Errorf("got %v and %v, want %v for all", got.Source, got.Fields, want)
	}

	for _, file := range set.GetFile() {
		file.SourceCodeInfo = nil
	}
	got = onlyRule(t, read(t, set, generatedType(t)))
	want.Line, want.Column = 0, 0
	if got.Source != want || got.Fields["key"] != want {
		t.Errorf("without source information: got %v and %v, want %v", got.Source, got.Fields, want)
	}
}

func TestOf_SourcesOfFields(t *testing.T) {
	t.Parallel()
	set := protofile.Compile(t, true, map[string]string{"shop/v1/shop.proto": `syntax = "proto3";
package shop.v1;
import "interlock/v1/lock.proto";
message Order {}
service Orders {
  rpc Pay(Order) returns (Order) {
    option (interlock.v1.lock) = {name: "a" key: "k"};
    option (interlock.v1.lock) = {
      name: "b"
      keys: ["k", "l"]
      wait_time: "soon"
      status: {
        busy: {grpc: "NO"}
        lost: {http: 500}
      }
    };
  }
}`}, "../proto")
	rules, problems := protorules.Of(read(t, set, generatedType(t)))
	if len(rules) != 2 || rules[0].Source.Line != 7 || rules[1].Source.Line != 8 {
		t.Fatalf("got %+v", rules)
	}
	got := rules[1].Fields
	for field, want := range map[string]string{
		"name": "shop/v1/shop.proto:9:7", "keys": "shop/v1/shop.proto:10:14", "keys[1]": "shop/v1/shop.proto:10:19",
		"status": "shop/v1/shop.proto:12:7", "status.lost": "shop/v1/shop.proto:14:9", "status.lost.http": "shop/v1/shop.proto:14:16",
	} {
		if got[field].String() != want {
			t.Errorf("%s: got %s, want %s", field, got[field], want)
		}
	}
	wants := []string{"shop/v1/shop.proto:11:7: ", "shop/v1/shop.proto:13:16: "}
	for i, p := range problems {
		if !strings.HasPrefix(p.Error(), wants[i]) {
			t.Errorf("got %v, want the source %s", p, wants[i])
		}
	}
	if len(problems) != len(wants) {
		t.Errorf("got %d problems, want %d", len(problems), len(wants))
	}
}
