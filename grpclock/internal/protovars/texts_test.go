package protovars_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	_ "google.golang.org/protobuf/types/known/durationpb" // slotFile imports its file
	_ "google.golang.org/protobuf/types/known/timestamppb"

	"github.com/interlock-go/interlock/keyexpr"
)

// slotFile contains fields whose values have several spellings, and an enum with two names for the number 1.
const slotFile = `name: "slot.proto" package: "slot" dependency: "google/protobuf/timestamp.proto" dependency: "google/protobuf/duration.proto"
	enum_type { name: "Level" options { allow_alias: true }
		value { name: "COLD" number: 0 } value { name: "WARM" number: 1 } value { name: "TEPID" number: 1 } value { name: "HOT" number: 2 } }
	message_type { name: "Slot"
		field { name: "level" number: 1 type: TYPE_ENUM type_name: ".slot.Level" label: LABEL_OPTIONAL }
		field { name: "levels" number: 2 type: TYPE_ENUM type_name: ".slot.Level" label: LABEL_REPEATED }
		field { name: "at" number: 3 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_OPTIONAL }
		field { name: "times" number: 4 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_REPEATED }
		field { name: "ttl" number: 5 type: TYPE_MESSAGE type_name: ".google.protobuf.Duration" label: LABEL_OPTIONAL }
		field { name: "digest" number: 6 type: TYPE_BYTES label: LABEL_OPTIONAL }
		field { name: "inner" number: 7 type: TYPE_MESSAGE type_name: ".slot.Slot" label: LABEL_OPTIONAL }
		field { name: "slots" number: 8 type: TYPE_MESSAGE type_name: ".slot.Slot" label: LABEL_REPEATED }
		field { name: "id" number: 9 type: TYPE_STRING label: LABEL_OPTIONAL }
		field { name: "by_id" number: 10 type: TYPE_MESSAGE type_name: ".slot.Slot.ByIdEntry" label: LABEL_REPEATED }
		nested_type { name: "ByIdEntry" options { map_entry: true }
			field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
			field { name: "value" number: 2 type: TYPE_ENUM type_name: ".slot.Level" label: LABEL_OPTIONAL } } }`

// firstMessage returns the first message of a file in the text form of its descriptor.
func firstMessage(tb testing.TB, file string) protoreflect.MessageDescriptor {
	tb.Helper()
	var d descriptorpb.FileDescriptorProto
	if err := prototext.Unmarshal([]byte(file), &d); err != nil {
		tb.Fatal(err)
	}
	made, err := protodesc.NewFile(&d, protoregistry.GlobalFiles)
	if err != nil {
		tb.Fatal(err)
	}
	return made.Messages().Get(0)
}

func slot(tb testing.TB) protoreflect.MessageDescriptor {
	tb.Helper()
	return firstMessage(tb, slotFile+` syntax: "proto3"`)
}

// evalCondition evaluates a condition for a message.
func evalCondition(tb testing.TB, d protoreflect.MessageDescriptor, expression, text string) (bool, error) {
	tb.Helper()
	v := variablesOf(tb, d)
	condition := compileCondition(tb, v, expression)
	return condition.Eval(v.Call(messageOf(tb, d, text), &host{}))
}

func TestMessage_OneInstantOneKey(t *testing.T) {
	t.Parallel()
	const want = "2026-03-01T08%3A00%3A00Z"
	for _, tt := range []struct{ expression, text, want string }{
		{"req.at", "at { seconds: 1772352000 }", want},
		{"req.at", "at { seconds: 1772352000 nanos: 500000000 }", "2026-03-01T08%3A00%3A00.5Z"},
		{"req.at", "at {}", "1970-01-01T00%3A00%3A00Z"},
		{"req.at", "", "!missing"},
		{"req.at", "at { seconds: 9223372036854775807 }", "!missing"},
		{"req.at", "at { nanos: -1 }", "!missing"},
		{`req.at ?? "none"`, "", "none"},
		{"req.at.seconds", "at { seconds: 1772352000 }", "1772352000"},
		{"req.times[0]", "times { seconds: 1772352000 }", want},
		{"map(req.times, #)", "times { seconds: 1772352000 } times { seconds: 1772352000 }", want},
		{"map(req.times, .seconds)", "times { seconds: 1 } times { seconds: 2 }", "1 2"},
		{"map(req.slots, .at)", "slots { at { seconds: 1772352000 } }", want},
		{"req.ttl", "ttl { seconds: 90 }", "90000000000"},
		{"req.ttl", "ttl { seconds: -1 nanos: -500000000 }", "-1500000000"},
		{"req.ttl", "ttl { seconds: 315576000000 nanos: 1 }", "315576000000000000001"},
		{"req.ttl", "ttl { seconds: 1 nanos: -1 }", "!missing"},
		{"req.ttl", "ttl {}", "0"},
		{"req.ttl", "", "!missing"},
	} {
		if got := keysOf(t, slot(t), tt.expression, tt.text); got != tt.want {
			t.Errorf("%s of %s: got %q, want %q", tt.expression, tt.text, got, tt.want)
		}
	}
	for expression, want := range map[string]bool{
		`req.at == "2026-03-01T08:00:00Z"`: true, `req.at == req.slots[0].at`: true, `any(req.times, # == req.at)`: true, `req.at == nil`: false,
		`req.ttl > 60000000000`: true, `req.ttl == 90000000000`: true, `req.inner.at == ""`: true, `req.at.nanos == 0`: true,
		`req.at < "2026-03-01T08:00:00.5Z"`: true,
	} {
		const text = "at { seconds: 1772352000 } times { seconds: 1772352000 } slots { at { seconds: 1772352000 } } ttl { seconds: 90 }"
		if got, err := evalCondition(t, slot(t), expression, text); err != nil || got != want {
			t.Errorf("%s: got %t, %v", expression, got, err)
		}
	}
}

// An enum value with two names yields one key, whichever name the client sends.
func TestMessage_EnumAliases(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"WARM", "TEPID"} {
		if got := keysOf(t, slot(t), "req.level", "level: "+name); got != "WARM" {
			t.Errorf("%s: got %q, want WARM", name, got)
		}
	}
}

// The text of an enum number without a name is the number. The text of a number with two names is the first
// name. A comparison with any other text would never be true, so it is refused.
func TestMessage_ImpossibleTexts(t *testing.T) {
	t.Parallel()
	v := variablesOf(t, slot(t))
	for expression, suggestion := range map[string]string{
		`req.level == "WRAM"`:                                          `"WARM"`,
		`"WRAM" != req.level`:                                          `"WARM"`,
		`req.level == "warm"`:                                          `"WARM"`,
		`req.level == "TEPID"`:                                         `"WARM"`,
		`req.level == "1"`:                                             `"WARM"`,
		`req.level == "07"`:                                            `"7"`,
		`req.level == ""`:                                              ``,
		`req.level == "zzzzzzzz"`:                                      ``,
		`req.level in ["COLD", "WRAM"]`:                                `"WARM"`,
		`req.level not in ["WRAM"]`:                                    `"WARM"`,
		`req.level in (req.id == "a" ? ["WRAM"] : ["HOT"])`:            `"WARM"`,
		`"WRAM" in req.levels`:                                         `"WARM"`,
		`any(req.levels, # == "WRAM")`:                                 `"WARM"`,
		`len(filter(req.levels, # == "WRAM")) > 0`:                     `"WARM"`,
		`req.levels == ["WRAM"]`:                                       `"WARM"`,
		`req.inner.level == "WRAM"`:                                    `"WARM"`,
		`req.by_id["a"] == "WRAM"`:                                     `"WARM"`,
		`req.levels[0] == "WRAM"`:                                      `"WARM"`,
		`req.level == (req.id == "a" ? "WRAM" : "HOT")`:                `"WARM"`,
		`(req.level ?? "NONE") == "WRAM"`:                              `"WARM"`,
		`(req.id == "a" ? req.level : req.inner.level) == "WRAM"`:      `"WARM"`,
		`string(req.level) == "WRAM"`:                                  `"WARM"`,
		`first(req.levels) == "WRAM"`:                                  `"WARM"`,
		`(req.level == "COLD" ? 1 : req.level == "WRAM" ? 2 : 3) == 2`: `"WARM"`,
		`req.digest == "00FF"`:                                         `"00ff"`,
		`req.digest == "secret"`:                                       ``,
		`req.at == "2026-03-01T09:00:00+01:00"`:                        `"2026-03-01T08:00:00Z"`,
		`peer == "::FFFF:10.0.0.1"`:                                    `"10.0.0.1"`,
	} {
		_, err := keyexpr.CompileCondition(expression, v.Schema())
		problem, ok := errors.AsType[*keyexpr.Error](err)
		if !ok || problem.Suggestion != suggestion || strings.Count(err.Error(), "keyexpr:") != 1 {
			t.Errorf("%s: got %v, want the suggestion %s", expression, err, suggestion)
		}
	}
	for _, expression := range []string{
		`req.level == "WARM"`, `req.level == "7"`, `req.level == "-7"`, `(req.level ?? "NONE") == "NONE"`, `req.level == req.inner.level`,
		`req.level == req.id`, `req.levels[0] == ""`, `req.by_id["a"] == ""`, `lower(req.level) == "warm"`, `req.level[0:1] == "W"`, `req.digest == ""`, `req.digest == "00ff"`,
		`(req.id == "a" ? req.level : req.id) == "b"`, `peer == "bufconn"`, `req.level == (req.inner.level ?? "NONE")`, `"WARM" in req.levels`,
	} {
		if _, err := keyexpr.CompileCondition(expression, v.Schema()); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
	}
	for expression, suggestion := range map[string]string{
		`req.level ?? "TEPID"`: `"WARM"`, `req.id == "a" ? "1" : req.level`: `"WARM"`, `req.level == "WRAM" ? 1 : 2`: `"WARM"`, `req.digest ?? "AB"`: `"ab"`,
	} {
		_, err := keyexpr.Compile("#{"+expression+"}", v.Schema())
		if problem, ok := errors.AsType[*keyexpr.Error](err); !ok || problem.Suggestion != suggestion {
			t.Errorf("%s: got %v, want the suggestion %s", expression, err, suggestion)
		}
	}
	if _, err := keyexpr.CompileCondition(`"a" in req.slots`, v.Schema()); err == nil {
		t.Error("the search for a text among messages is accepted")
	}
	_, err := keyexpr.Compile(`#{req.times}`, v.Schema())
	if problem, ok := errors.AsType[*keyexpr.Error](err); !ok || problem.Suggestion != "map(req.times, #)" {
		t.Errorf("got %v", err)
	}
}

// defaultsFile returns a proto2 file or a file of an edition, with fields with and without defaults.
const defaultsFile = `name: "defaults.proto" package: "defaults"
	enum_type { name: "Level" value { name: "COLD" number: 1 } value { name: "WARM" number: 2 } }
	message_type { name: "Order"
		field { name: "express" number: 1 type: TYPE_BOOL label: LABEL_OPTIONAL default_value: "true" }
		field { name: "shard" number: 2 type: TYPE_INT64 label: LABEL_OPTIONAL default_value: "7" }
		field { name: "zone" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL default_value: "eu" }
		field { name: "level" number: 4 type: TYPE_ENUM type_name: ".defaults.Level" label: LABEL_OPTIONAL default_value: "WARM" }
		field { name: "digest" number: 5 type: TYPE_BYTES label: LABEL_OPTIONAL default_value: "\\377" }
		field { name: "huge" number: 6 type: TYPE_UINT64 label: LABEL_OPTIONAL default_value: "18446744073709551615" }
		field { name: "zero" number: 7 type: TYPE_INT32 label: LABEL_OPTIONAL default_value: "0" }
		field { name: "plain" number: 8 type: TYPE_INT32 label: LABEL_OPTIONAL }
		field { name: "other" number: 9 type: TYPE_ENUM type_name: ".defaults.Level" label: LABEL_OPTIONAL }
		field { name: "inner" number: 10 type: TYPE_MESSAGE type_name: ".defaults.Order" label: LABEL_OPTIONAL }
		field { name: "orders" number: 11 type: TYPE_MESSAGE type_name: ".defaults.Order" label: LABEL_REPEATED } }`

func TestMessage_Defaults(t *testing.T) {
	t.Parallel()
	for name, syntax := range map[string]string{
		"proto2": ``, "edition 2023": ` options { features { enum_type: CLOSED } } syntax: "editions" edition: EDITION_2023`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := firstMessage(t, defaultsFile+syntax)
			for _, tt := range []struct{ expression, text, want string }{
				{"req.express", "", "true"},
				{"req.express", "express: false", "false"},
				{"req.shard", "", "7"},
				{"req.shard", "shard: 7", "7"},
				{"req.shard ?? 0", "", "7"},
				{"req.shard + 1", "", "8"},
				{"req.shard", "shard: 0", "0"},
				{"req.zone", "", "eu"},
				{`"z" + req.zone`, "", "zeu"},
				{"req.zone", `zone: ""`, "!empty"},
				{"req.level", "", "WARM"},
				{"req.level", "level: COLD", "COLD"},
				{"req.digest", "", "ff"},
				{"req.huge", "", "18446744073709551615"},
				{"req.zero", "", "0"},
				{"req.plain", "", "!missing"},
				{"req.plain ?? 3", "", "3"},
				{"req.other", "", "!missing"},
				{`req.other ?? "none"`, "", "none"},
				{"req.inner.shard", "", "7"},
				{"req.inner.inner.shard ?? 1", "", "7"},
				{"req.inner.plain", "", "!missing"},
				{"req.orders[0].shard", "", "!missing"},
				{"req.orders[0].shard", "orders {}", "7"},
				{"req.orders[0].inner.shard", "orders {}", "7"},
				{"map(req.orders, .shard)", "orders {} orders { shard: 8 }", "7 8"},
				{"first(req.orders).shard", "orders {}", "7"},
			} {
				if got := keysOf(t, d, tt.expression, tt.text); got != tt.want {
					t.Errorf("%s of %s: got %q, want %q", tt.expression, tt.text, got, tt.want)
				}
			}
			for _, tt := range []struct {
				expression, text string
				want             bool
			}{
				{`req.express`, "", true},
				{`req.express`, "express: false", false},
				{`not req.express`, "", false},
				{`req.shard == 7`, "", true},
				{`req.zone == "eu"`, "", true},
				{`req.level == "WARM"`, "", true},
				{`req.inner.express`, "", true},
				{`req.plain == 0`, "", true},
				{`req.other == "COLD"`, "", true}, // what GetOther returns
				{`req.other == "COLD"`, "other: WARM", false},
				{`req.inner.other == "COLD"`, "", true},
				{`any(req.orders, .express)`, "orders {}", true},
				{`req.orders[0].express`, "", false}, // the list is empty
				{`req.shard == nil`, "", true},       // a comparison with nil shows presence
				{`nil != req.shard`, "shard: 7", true},
				{`req.inner.shard == nil`, "", true},
				{`any(req.orders, .shard == nil)`, "orders {}", true},
				{`(req.express ? req.shard : req.zero) == nil`, "", true},
				{`(req.shard ?? 1) == 7`, "", true},
				{`req.other == nil`, "", true},
			} {
				if got, err := evalCondition(t, d, tt.expression, tt.text); err != nil || got != tt.want {
					t.Errorf("%s of %s: got %t, %v", tt.expression, tt.text, got, err)
				}
			}
		})
	}
}

func TestCall_OneAuthorityOneKey(t *testing.T) {
	t.Parallel()
	v := kinds(t)[0].variables(t)
	for _, name := range []string{"shop.example", "Shop.EXAMPLE"} {
		h := &host{metadata: map[string][]string{":authority": {name}, "x-id": {"Ab"}}}
		if got, err := compile(t, v, `#{metadata[":authority"]}/#{metadata["x-id"]}`).Key(v.Call(nil, h)); err != nil || got != "shop.example/Ab" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	_, err := keyexpr.CompileCondition(`metadata[":authority"] == "Shop.example"`, v.Schema())
	if problem, ok := errors.AsType[*keyexpr.Error](err); !ok || problem.Suggestion != `"shop.example"` {
		t.Errorf("got %v", err)
	}
}
