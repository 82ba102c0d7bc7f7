package shoppb

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/lockpb"
)

// Described is the file of the service as if its .proto had options around a method that
// say what rules do, of the fields that package adaptertest uses.
func Described(tb testing.TB, method string, rules ...ruleset.Rule) *protoregistry.Files {
	tb.Helper()
	raw := protodesc.ToFileDescriptorProto(File_interlock_test_shop_proto)
	for _, m := range raw.GetService()[0].GetMethod() {
		if m.GetName() == method {
			m.Options = &descriptorpb.MethodOptions{}
			proto.SetExtension(m.Options, lockpb.E_Lock, optionsOf(tb, rules))
		}
	}
	file, err := protodesc.NewFile(raw, protoregistry.GlobalFiles)
	files := new(protoregistry.Files)
	if err == nil {
		err = files.RegisterFile(file)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return files
}

func optionsOf(tb testing.TB, rules []ruleset.Rule) []*lockpb.Lock {
	tb.Helper()
	var locks []*lockpb.Lock
	for i := range rules {
		lock := new(lockpb.Lock)
		if err := prototext.Unmarshal([]byte(optionOf(&rules[i])), lock); err != nil {
			tb.Fatal(err)
		}
		locks = append(locks, lock)
	}
	return locks
}

// optionOf is a rule as the text of an option.
func optionOf(r *ruleset.Rule) string {
	text := fmt.Sprintf("key: %q", r.Key)
	for field, value := range map[string]string{
		"on_busy": string(r.OnBusy), "on_backend": string(r.OnBackend), "on_key": string(r.OnKey), "on_overload": string(r.OnOverload),
	} {
		if value != "" {
			text += fmt.Sprintf(" %s: STRATEGY_%s", field, strings.ToUpper(value))
		}
	}
	switch {
	case r.WaitTime == ruleset.NoWait:
		text += ` wait_time: "none"`
	case r.WaitTime > 0:
		text += fmt.Sprintf(" wait_time: %q", r.WaitTime)
	}
	if r.Debounce > 0 {
		text += fmt.Sprintf(" debounce: %q", r.Debounce)
	}
	if r.MaxWaiters > 0 {
		text += fmt.Sprintf(" max_waiters: %d", r.MaxWaiters)
	}
	if r.Fallback != "" {
		text += fmt.Sprintf(" fallback: %q", r.Fallback)
	}
	return text
}
