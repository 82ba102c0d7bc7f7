package main

import "github.com/invopop/jsonschema"

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
	}
}

// has requires fields.
func has(fields ...string) *jsonschema.Schema { return &jsonschema.Schema{Required: fields} }

// where requires a field with such a value.
func where(field string, value *jsonschema.Schema) *jsonschema.Schema {
	s := has(field)
	s.Properties = jsonschema.NewProperties()
	s.Properties.Set(field, value)
	return s
}
