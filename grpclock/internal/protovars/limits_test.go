package protovars_test

import (
	"errors"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/keyexpr"
)

// largeMessage returns a message with long lists and large maps.
func (k kind) largeMessage(tb testing.TB) proto.Message {
	tb.Helper()
	var b strings.Builder
	for i := range 5_000 {
		n := strconv.Itoa(i)
		b.WriteString("ids: " + n + " tags: \"t" + n + "\" labels { key: \"k" + n + "\" value: \"v" + n + "\" } slots { key: " + n + " value { sku: \"s" + n + "\" } }\n")
	}
	return k.message(tb, b.String())
}

// A message may be as large as the server allows. An expression converts only the elements of a list or map
// that it uses, and it can use a whole list only if the list is small.
func TestCall_ConvertsOnlyUsedValues(t *testing.T) { //nolint:paralleltest // counts what the process allocates
	tests := []struct {
		template, key string
		reason        keyexpr.Reason
	}{
		{`#{req.ids[4000]}`, "4000", 0},
		{`#{req.tags[-1]}`, "t4999", 0},
		{`#{req.labels.k4000}`, "v4000", 0},
		{`#{req.slots["4000"].sku}`, "s4000", 0},
		{`#{req.slots[4000].sku}`, "s4000", 0},
		{`#{"k7" in req.labels ? "yes" : "no"}`, "yes", 0},
		{`#{"kx" in req.labels ? "yes" : "no"}`, "no", 0},
		{`#{req.slots["040"].sku}`, "", keyexpr.ReasonMissing},
		{`#{req.slots["x"].sku}`, "", keyexpr.ReasonMissing},
		{`#{req.slots["99999999999"].sku}`, "", keyexpr.ReasonMissing},
		{`#{req.ids[:]}`, "", keyexpr.ReasonTooMany},
		{`#{map(req.tags, upper(#))}`, "", keyexpr.ReasonTooMany},
		{`#{keys(req.labels)}`, "", keyexpr.ReasonTooMany},
		{`#{len(req.labels)}`, "", keyexpr.ReasonTooMany},
	}
	for _, k := range kinds(t) {
		message, v := k.largeMessage(t), k.variables(t)
		for _, tt := range tests {
			template, err := keyexpr.Compile(tt.template, v.Schema())
			if err != nil {
				t.Fatal(err)
			}
			var keys []string
			allocated := leastAllocated(func() { keys, err = template.Keys(v.Call(message, &host{})) })
			if allocated > 64<<10 {
				t.Errorf("%s: %s allocates %d bytes", k.name, tt.template, allocated)
			}
			failure, _ := errors.AsType[*keyexpr.EvalError](err)
			if tt.reason != 0 && (failure == nil || failure.Reason != tt.reason) || tt.reason == 0 && (err != nil || keys[0] != tt.key) {
				t.Errorf("%s: %s: got %q, %v", k.name, tt.template, keys, err)
			}
		}
	}
}

// A predicate over a repeated field has limits, whatever the size of the message.
func TestCall_Limits(t *testing.T) { //nolint:paralleltest // counts what the process allocates
	for _, k := range kinds(t) {
		v := k.variables(t)
		condition := compileCondition(t, v, `any(req.items, .sku in req.tags)`)
		lists := func(n int) string {
			return strings.Repeat(`items { sku: "a" } `, n) + strings.Repeat(`tags: "b" `, n)
		}
		tests := []struct {
			items, digest int
			refused       bool
		}{{50, 0, false}, {1000, 0, true}, {50, 16 << 20, false}, {300, 16 << 20, true}}
		for _, tt := range tests {
			message, refused := k.message(t, lists(tt.items)), tt.refused
			reflected := message.ProtoReflect()
			reflected.Set(reflected.Descriptor().Fields().ByName("digest"), protoreflect.ValueOfBytes(make([]byte, tt.digest)))
			var err error
			allocated := leastAllocated(func() { _, err = condition.Eval(v.Call(message, &host{})) })
			failure, _ := errors.AsType[*keyexpr.EvalError](err)
			if refused != (failure != nil && failure.Reason == keyexpr.ReasonTooLong) || !refused && err != nil {
				t.Errorf("%s: a message of %d bytes: got %v", k.name, proto.Size(message), err)
			}
			if refused && allocated > 4<<20 {
				t.Errorf("%s: a refused message allocates %d bytes", k.name, allocated)
			}
		}
	}
}

// leastAllocated calls f five times and returns the fewest bytes that the process allocated during a call,
// because a garbage collection and other goroutines only add bytes.
func leastAllocated(f func()) uint64 {
	least := uint64(math.MaxUint64)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}
