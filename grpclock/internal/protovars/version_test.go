package protovars_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/interlock-go/interlock/keyexpr"
)

const (
	labelField = ` label: LABEL_OPTIONAL`
	entryType  = `nested_type { name: "LabelsEntry" options { map_entry: true }
		field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } field { name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL } }`
	states = `enum_type { name: "State" value { name: "NONE" number: 0 } value { name: "PAID" number: 1 } }`
)

// version returns a message shop.Order with the given fields.
func version(tb testing.TB, name, more, fields string) protoreflect.MessageDescriptor {
	tb.Helper()
	return firstMessage(tb, `name: "order.proto" package: "shop" syntax: "proto3" `+more+` message_type { name: "`+name+`" `+fields+` } message_type { name: "Item" field { name: "sku" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } }`)
}

func reasonOf(tb testing.TB, err error) keyexpr.Reason {
	tb.Helper()
	failure, ok := errors.AsType[*keyexpr.EvalError](err)
	if !ok {
		tb.Fatalf("got %v, want an *EvalError", err)
	}
	return failure.Reason
}

// messageOf returns a message from its text form.
func messageOf(tb testing.TB, d protoreflect.MessageDescriptor, text string) *dynamicpb.Message {
	tb.Helper()
	m := dynamicpb.NewMessage(d)
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return m
}

// A message of the same name may come from another version of its file. A field is found by its number if it
// has the same kind, whatever its name is.
func TestMessage_OtherVersion(t *testing.T) {
	t.Parallel()
	known := version(t, "Order", states, entryType+`
		field { name: "id" number: 1 type: TYPE_STRING`+labelField+` } field { name: "n" number: 2 type: TYPE_INT64`+labelField+` }
		field { name: "tags" number: 3 type: TYPE_STRING label: LABEL_REPEATED } field { name: "state" number: 4 type: TYPE_ENUM type_name: ".shop.State"`+labelField+` }
		field { name: "item" number: 5 type: TYPE_MESSAGE type_name: ".shop.Item"`+labelField+` }
		field { name: "labels" number: 6 type: TYPE_MESSAGE type_name: ".shop.Order.LabelsEntry" label: LABEL_REPEATED }`)
	v := variablesOf(t, known)
	renamed := version(t, "Order", `enum_type { name: "State" value { name: "NONE" number: 0 } value { name: "SETTLED" number: 1 } }`, entryType+`
		field { name: "order_id" number: 1 type: TYPE_STRING`+labelField+` } field { name: "count" number: 2 type: TYPE_INT64`+labelField+` }
		field { name: "words" number: 3 type: TYPE_STRING label: LABEL_REPEATED } field { name: "status" number: 4 type: TYPE_ENUM type_name: ".shop.State"`+labelField+` }
		field { name: "first" number: 5 type: TYPE_MESSAGE type_name: ".shop.Item"`+labelField+` }
		field { name: "labels" number: 6 type: TYPE_MESSAGE type_name: ".shop.Order.LabelsEntry" label: LABEL_REPEATED }`)
	changed := version(t, "Order", "", `
		field { name: "id" number: 1 type: TYPE_INT64`+labelField+` } field { name: "n" number: 2 type: TYPE_INT64 label: LABEL_REPEATED }
		field { name: "tags" number: 3 type: TYPE_STRING`+labelField+` } field { name: "state" number: 4 type: TYPE_INT32`+labelField+` }
		field { name: "item" number: 5 type: TYPE_MESSAGE type_name: ".shop.Order"`+labelField+` }
		field { name: "labels" number: 6 type: TYPE_MESSAGE type_name: ".shop.Item" label: LABEL_REPEATED }`)
	messages := []protoreflect.ProtoMessage{
		messageOf(t, known, `id: "7" n: 3 tags: "a" tags: "b" state: PAID item { sku: "s" } labels { key: "k" value: "v" }`),
		messageOf(t, renamed, `order_id: "7" count: 3 words: "a" words: "b" status: SETTLED first { sku: "s" } labels { key: "k" value: "v" }`),
		messageOf(t, changed, `id: 7 n: 3 tags: "a" state: 1 item { id: 8 } labels { sku: "s" }`),
		dynamicpb.NewMessage(changed),
	}
	for template, want := range map[string][4]string{
		`#{req.id}`:              {"7", "7", "!missing", "!missing"},
		`#{req.n}`:               {"3", "3", "!missing", "!missing"},
		`#{req.tags[1]}`:         {"b", "b", "!missing", "!missing"},
		`#{req.tags}`:            {"a b", "a b", "!missing", "!missing"},
		`#{req.state}`:           {"PAID", "SETTLED", "!missing", "!missing"},
		`#{req.item.sku}`:        {"s", "s", "!missing", "!missing"},
		`#{req.labels.k}`:        {"v", "v", "!wrong_type", "!wrong_type"},
		`#{req.id ?? "none"}`:    {"7", "7", "none", "none"},
		`#{len(req.tags ?? [])}`: {"2", "2", "0", "0"},
	} {
		compiled := compile(t, v, template)
		for i, m := range messages {
			keys, err := compiled.Keys(v.Call(m, &host{}))
			got := strings.Join(keys, " ")
			if err != nil {
				got = "!" + reasonOf(t, err).String()
			}
			if got != want[i] {
				t.Errorf("%s of message %d: got %q (%v), want %q", template, i, got, err, want[i])
			}
		}
	}
}

// A message of another name is a mistake of the program.
func TestMessage_OtherName(t *testing.T) {
	t.Parallel()
	field := `field { name: "id" number: 1 type: TYPE_STRING` + labelField + ` }`
	v := variablesOf(t, version(t, "Order", "", field))
	other := messageOf(t, version(t, "Refund", "", field), `id: "7"`)
	for _, template := range []string{`#{req.id}`, `#{req.id ?? "none"}`, `#{lower(req.id)}`} {
		_, err := compile(t, v, template).Key(v.Call(other, &host{}))
		if reasonOf(t, err) != keyexpr.ReasonInternal || !strings.Contains(err.Error(), "the message is a shop.Refund, not a shop.Order") {
			t.Errorf("%s: got %v", template, err)
		}
	}
	if got, err := compileCondition(t, v, `req.id == ""`).Eval(v.Call(other, &host{})); err == nil {
		t.Errorf("the condition is %v", got)
	}
	if key, err := compile(t, v, `#{method}`).Key(v.Call(other, &host{})); err != nil || key != "%2Fshop.v1.Orders%2FPay" && key != "/shop.v1.Orders/Pay" {
		t.Errorf("a template that does not use the message: got %q, %v", key, err)
	}
}
