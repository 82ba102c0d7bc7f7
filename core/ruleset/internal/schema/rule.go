package main

import (
	"maps"
	"slices"

	"github.com/invopop/jsonschema"

	"github.com/interlock-go/interlock/core/ruleset"
)

// endpoint is one of the ways to say where a rule applies.
type endpoint struct {
	name   string
	schema *jsonschema.Schema
}

func endpoints() []endpoint {
	text := func(description, expression, message string, examples ...any) *jsonschema.Schema {
		s := pattern(&jsonschema.Schema{Type: "string", Description: description, Examples: examples}, expression, message)
		label(s)
		return s
	}
	const segment = `(/([^/*\s][^/\s]*|\*[^/\s]+)?)`
	return []endpoint{
		{"http", text(
			"An HTTP method and the route as it was registered. * stands for any method, and at the end of a path for everything below it.",
			`^\s*(\*|[^\sa-z/]+ +(`+segment+`+(/\*)?|/?\*))\s*$`,
			"Write a method in capitals and a path, such as POST /orders/:id/pay.",
			"POST /orders/:id/pay", "POST /orders/*", "* /orders/:id", "*",
		)},
		{"grpc", text(
			"A full gRPC method. * stands for every method, of a service or of all.",
			`^(\*|/([^/*][^/]*|\*[^/]+)/[^/]+)$`, "Write a full method such as /shop.Orders/Pay.",
			"/shop.Orders/Pay", "/shop.Orders/*", "*",
		)},
		{"func", text("The name of a function that the program wraps.", `\S`, "Write a name such as close-day.", "close-day")},
	}
}

func servicesSchema() *jsonschema.Schema {
	program := &jsonschema.Schema{Type: "string"}
	notBlank(program, "Write the name of a program.")
	return &jsonschema.Schema{
		Type: "array", Description: "The programs that the rule is for, where several share the file. Default: all.",
		MinItems: new(uint64(1)), Items: program,
	}
}

// ruleConditions say which fields go together.
func ruleConditions() []*jsonschema.Schema {
	return []*jsonschema.Schema{
		{
			Comments: "Exactly one endpoint.",
			OneOf:    []*jsonschema.Schema{has("http"), has("grpc"), has("func")},
		},
		{
			Comments: "Not key and keys.",
			Not:      has("key", "keys"),
		},
		{
			Comments: "A rule that says that no lock is needed has nothing else; other rules have a key, unless the .proto or the program can have it.",
			If:       where("none", &jsonschema.Schema{Const: true}),
			Then:     &jsonschema.Schema{PropertyNames: &jsonschema.Schema{Enum: []any{"http", "grpc", "func", "services", "none"}}},
			Else: &jsonschema.Schema{
				If: &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
					has("http"),
					where("grpc", &jsonschema.Schema{Pattern: `\*$`}),
					where("func", &jsonschema.Schema{Pattern: `\*$`}),
				}},
				Then: &jsonschema.Schema{AnyOf: []*jsonschema.Schema{has("key"), has("keys")}},
			},
		},
		{
			Comments: "A debounced call does not wait, and its lock lives as long as the handler.",
			If:       has("debounce"),
			Then: only(map[string]*jsonschema.Schema{
				"wait_time":  {Const: "none"},
				"lease_time": {Const: "watchdog"},
				"on_busy":    {Not: &jsonschema.Schema{Const: "proceed"}},
			}),
		},
		{
			Comments: "Where nobody waits there are no waiters, and there is no overload.",
			If: &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
				has("debounce"),
				where("wait_time", &jsonschema.Schema{Const: "none"}),
			}},
			Then: only(map[string]*jsonschema.Schema{
				"max_waiters": {Maximum: "0"},
				"on_overload": {Const: "error"},
			}),
		},
	}
}

// kindConditions say what goes with which kind of lock.
func kindConditions() []*jsonschema.Schema {
	return []*jsonschema.Schema{
		{
			Comments: "Such a lock has one key.",
			If:       where("kind", enum(ofOneKey())),
			Then:     only(map[string]*jsonschema.Schema{"keys": {MaxItems: new(uint64(1))}}),
		},
		{
			Comments: "What several calls hold at a time has no token, and no window after the last of them.",
			If:       where("kind", enum(shared())),
			Then:     only(map[string]*jsonschema.Schema{"token": {Const: false}, "debounce": jsonschema.FalseSchema}),
		},
		{
			Comments: "Such a lock has a token in any case.",
			If:       where("kind", &jsonschema.Schema{Const: ruleset.Fenced}),
			Then:     only(map[string]*jsonschema.Schema{"token": {Const: true}}),
		},
		{
			Comments: "A token belongs to one key.",
			If:       where("token", &jsonschema.Schema{Const: true}),
			Then:     only(map[string]*jsonschema.Schema{"keys": {MaxItems: new(uint64(1))}}),
		},
		{
			Comments: "Only a semaphore has permits. They may come from a profile, a lower layer, or the program.",
			If:       where("kind", enum(withoutPermits())),
			Then:     only(map[string]*jsonschema.Schema{"permits": jsonschema.FalseSchema}),
		},
	}
}

// ofOneKey are the kinds that cannot be of several keys.
func ofOneKey() []ruleset.Kind { return slices.DeleteFunc(ruleset.Kinds(), ruleset.Kind.TakesSeveral) }

// shared are the kinds that several calls hold at a time.
func shared() []ruleset.Kind {
	return slices.DeleteFunc(ruleset.Kinds(), func(k ruleset.Kind) bool { return !k.Shared() })
}

// withoutPermits are all kinds but semaphores.
func withoutPermits() []ruleset.Kind {
	return slices.DeleteFunc(ruleset.Kinds(), func(k ruleset.Kind) bool { return k == ruleset.Semaphore })
}

// has requires fields.
func has(fields ...string) *jsonschema.Schema { return &jsonschema.Schema{Required: fields} }

// where requires a field with such a value.
func where(field string, value *jsonschema.Schema) *jsonschema.Schema {
	s := only(map[string]*jsonschema.Schema{field: value})
	s.Required = []string{field}
	return s
}

// only restricts fields where they are there.
func only(values map[string]*jsonschema.Schema) *jsonschema.Schema {
	s := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
	for _, field := range slices.Sorted(maps.Keys(values)) {
		s.Properties.Set(field, values[field])
	}
	return s
}
