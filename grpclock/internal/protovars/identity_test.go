package protovars_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/interlock-go/interlock/grpclock/internal/protovars"
	"github.com/interlock-go/interlock/keyexpr"
)

// keysOfCall returns the keys of a call that contains the same id in every place.
func keysOfCall(tb testing.TB, template string, req proto.Message, claims any, format ...keyexpr.Format) ([]string, error) {
	tb.Helper()
	claimed := keyexpr.Variable{Name: "claims", Type: keyexpr.TypeFor[map[string]any]()}
	v, err := protovars.New(protovars.Config{Request: req.ProtoReflect().Descriptor(), Registered: []keyexpr.Variable{claimed}})
	if err != nil {
		tb.Fatal(err)
	}
	compiled, err := cmp.Or(format...).Compile(template, v.Schema())
	if err != nil {
		tb.Fatal(err)
	}
	return compiled.Keys(v.Call(req, &host{metadata: map[string][]string{"id": {"42"}}, registered: []any{claims}}))
}

// One id yields one key, whatever its place in a call and its type.
func TestCall_OneIDOneKey(t *testing.T) {
	t.Parallel()
	for _, format := range []keyexpr.Format{{}, {Strict: true}} {
		if got, err := keysOfCall(t, `order:#{metadata.id}:x`, wrapperspb.Bool(true), nil, format); err != nil || !slices.Equal(got, []string{"order:42:x"}) {
			t.Errorf("metadata: got %q, %v, want order:42:x alone", got, err)
		}
		for _, req := range []proto.Message{wrapperspb.Int64(42), wrapperspb.UInt32(42), wrapperspb.String("42"), wrapperspb.Bytes([]byte{0x42})} {
			if got, err := keysOfCall(t, `order:#{req.value}:x`, req, nil, format); err != nil || !slices.Equal(got, []string{"order:42:x"}) {
				t.Errorf("%T: got %q, %v, want order:42:x alone", req, got, err)
			}
		}
		for _, claim := range []any{"42", 42, uint64(42), 42.0, json.Number("42")} {
			got, err := keysOfCall(t, `order:#{claims["id"]}:x`, &wrapperspb.BoolValue{}, map[string]any{"id": claim}, format)
			if err != nil || !slices.Equal(got, []string{"order:42:x"}) {
				t.Errorf("a claim, %T: got %q, %v, want order:42:x alone", claim, got, err)
			}
		}
	}
}

// A bool and an enum have only one text, too.
func TestCall_OneTextOneKey(t *testing.T) {
	t.Parallel()
	enum := &descriptorpb.FieldDescriptorProto{Type: descriptorpb.FieldDescriptorProto_TYPE_BOOL.Enum(), Name: new("true")}
	nameless := &descriptorpb.FieldDescriptorProto{Type: descriptorpb.FieldDescriptorProto_Type(-7).Enum()}
	for _, tt := range []struct {
		template string
		req      proto.Message
		want     string
	}{
		{`#{req.value}`, wrapperspb.Bool(true), "true"},
		{`#{req.name}`, enum, "true"},
		{`#{req.type}`, enum, "TYPE_BOOL"},
		{`#{req.type}`, nameless, "-7"},
	} {
		if got, err := keysOfCall(t, tt.template, tt.req, nil); err != nil || !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s: got %q, %v, want %s", tt.template, got, err, tt.want)
		}
	}
}
