package protorules_test

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/interlock-go/interlock/grpclock/internal/protofile"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

const twoFiles = `syntax = "proto3";
package till.v1;
import "interlock/v1/lock.proto";
message Sum {}
service Till {
  rpc Open(Sum) returns (Sum) { option (interlock.v1.lock) = {key: "till" wait_time: "soon"}; }
  rpc Count(Sum) returns (Sum) { option idempotency_level = NO_SIDE_EFFECTS; }
  rpc Close(Sum) returns (stream Sum) { option idempotency_level = IDEMPOTENT; }
}`

func TestAll_DescriptorSet(t *testing.T) {
	t.Parallel()
	set := protofile.Compile(t, false, map[string]string{
		"till.proto": twoFiles,
		"a.proto":    `syntax = "proto3"; package z.v1; message M {} service S { rpc M(.z.v1.M) returns (.z.v1.M); }`,
	}, "../proto")
	methods := protorules.All(protofile.Read(t, set, new(protoregistry.Types)))
	want := []struct {
		name            string
		rules, problems int
		needs           bool
	}{
		{"/till.v1.Till/Close", 0, 0, true},
		{"/till.v1.Till/Count", 0, 0, false},
		{"/till.v1.Till/Open", 1, 1, true},
		{"/z.v1.S/M", 0, 0, true},
	}
	if len(methods) != len(want) {
		t.Fatalf("got %d methods, want %d", len(methods), len(want))
	}
	for i, m := range methods {
		if m.FullMethod != want[i].name || len(m.Rules) != want[i].rules || len(m.Problems) != want[i].problems ||
			protorules.FullMethod(m.Descriptor) != m.FullMethod {
			t.Errorf("got %+v, want %+v", m, want[i])
		}
		if got := protorules.NeedsRule(m.FullMethod, m.Descriptor); got != want[i].needs {
			t.Errorf("%s: NeedsRule: %v", m.FullMethod, got)
		}
	}
}

func TestNeedsRule(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]bool{
		"/grpc.health.v1.Health/Check":                                   false,
		"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": false,
		"/grpc.channelz.v1.Channelz/GetServers":                          false,
		"/grpc.healthy.v1.Farm/Feed":                                     true,
		"/shop.v1.Orders/Pay":                                            true,
	} {
		if got := protorules.NeedsRule(method, nil); got != want {
			t.Errorf("%s: got %v, want %v", method, got, want)
		}
	}
}
