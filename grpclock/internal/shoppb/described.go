package shoppb

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/lockpb"
)

// Described returns the file of the service with the given rules as options of a method. It supports the
// fields that package adaptertest uses.
func Described(tb testing.TB, method string, rules ...ruleset.Rule) *protoregistry.Files {
	tb.Helper()
	raw := protodesc.ToFileDescriptorProto(File_shoppb_shop_proto)
	for _, m := range raw.GetService()[0].GetMethod() {
		if m.GetName() == method {
			m.Options = &descriptorpb.MethodOptions{}
			proto.SetExtension(m.GetOptions(), lockpb.E_Lock, optionsOf(tb, rules))
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

// optionOf returns a rule as the text of an option.
func optionOf(r *ruleset.Rule) string {
	var text strings.Builder
	for field, value := range map[string]string{"key": r.Key, "fallback": r.Fallback, "wait_time": wordOf(r.WaitTime), "debounce": wordOf(r.Debounce)} {
		if value != "" {
			fmt.Fprintf(&text, "%s: %q ", field, value)
		}
	}
	for field, s := range map[string]failpolicy.Strategy{"busy": r.OnBusy, "backend": r.OnBackend, "key": r.OnKey, "overload": r.OnOverload} {
		if s != "" {
			fmt.Fprintf(&text, "on_%s: STRATEGY_%s ", field, strings.ToUpper(string(s)))
		}
	}
	if r.MaxWaiters > 0 {
		fmt.Fprintf(&text, "max_waiters: %d", r.MaxWaiters)
	}
	return text.String()
}

func wordOf(d time.Duration) string {
	switch {
	case d == ruleset.NoWait:
		return "none"
	case d > 0:
		return d.String()
	default:
		return ""
	}
}
