package main

import (
	"reflect"
	"strings"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// typeSchema is the schema of a Go type that a file writes in its own way; nil for
// the others.
func typeSchema(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[ruleset.Endpoint]():
		return &jsonschema.Schema{Type: "object"} // becomes http, grpc and func
	case reflect.TypeFor[time.Duration]():
		return duration("such as 10s")
	case reflect.TypeFor[failpolicy.Strategy]():
		return enum(failpolicy.Strategies())
	case reflect.TypeFor[failpolicy.OnLost]():
		return enum(failpolicy.LossChoices())
	case reflect.TypeFor[ruleset.Kind]():
		return enum(ruleset.Kinds())
	case reflect.TypeFor[ruleset.KeyFormat]():
		return enum(ruleset.KeyFormats())
	case reflect.TypeFor[ruleset.Severity]():
		return enum(ruleset.Severities())
	case reflect.TypeFor[failpolicy.Statuses]():
		return statuses()
	default:
		return nil
	}
}

func enum[T any](words []T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, w := range words {
		s.Enum = append(s.Enum, w)
	}
	return s
}

// duration is a time that is not zero, or one of the words.
func duration(say string, words ...string) *jsonschema.Schema {
	const (
		unit    = `(ns|us|µs|μs|ms|s|m|h)`
		part    = `(\d+(\.\d*)?` + unit + `)*`
		nonzero = `(\d*[1-9]\d*(\.\d*)?|\d+\.\d*[1-9]\d*)` + unit
	)
	s := &jsonschema.Schema{Type: "string", Examples: []any{"10s"}}
	for _, w := range words {
		s.Examples = append(s.Examples, w)
	}
	return pattern(s, "^("+strings.Join(append(words, part+nonzero+part), "|")+")$", "Write a time "+say+".")
}

// pattern restricts a text. Editors show message; to others it is unknown.
func pattern(s *jsonschema.Schema, expression, message string) *jsonschema.Schema {
	s.Pattern = expression
	s.Extras = map[string]any{"patternErrorMessage": message}
	return s
}

// statuses has the causes that the Go type has.
func statuses() *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema, MinProperties: new(uint64(1)),
	}
	for field := range reflect.TypeFor[failpolicy.Statuses]().Fields() {
		cause := failpolicy.Cause(strings.ToLower(field.Name))
		s.Properties.Set(string(cause), status(cause))
	}
	return s
}

// status is the pair for one cause.
func status(cause failpolicy.Cause) *jsonschema.Schema {
	plain := cause.Status()
	s := &jsonschema.Schema{
		Type: "object", Description: cause.Title() + ".", Properties: jsonschema.NewProperties(),
		AdditionalProperties: jsonschema.FalseSchema, MinProperties: new(uint64(1)),
	}
	s.Properties.Set("http", &jsonschema.Schema{Ref: "#/$defs/http_status", Default: plain.HTTP})
	s.Properties.Set("grpc", &jsonschema.Schema{Ref: "#/$defs/grpc_code", Default: plain.GRPC.String()})
	return s
}

// statusParts are the definitions that status refers to.
func statusParts() jsonschema.Definitions {
	codes := &jsonschema.Schema{Type: "string", Description: "The gRPC code."}
	for code := failpolicy.Cancelled; code <= failpolicy.Unauthenticated; code++ {
		codes.Enum = append(codes.Enum, code.String())
	}
	return jsonschema.Definitions{
		"http_status": {Type: "integer", Description: "The HTTP status.", Minimum: "400", Maximum: "599"},
		"grpc_code":   codes,
	}
}

// fieldRefinements restrict fields beyond their types.
func fieldRefinements() map[string]func(*jsonschema.Schema) {
	return map[string]func(*jsonschema.Schema){
		"Rule.name": func(s *jsonschema.Schema) {
			notBlank(s, "Write a word such as pay-order, or leave it out.")
			label(s)
			s.MaxLength = new(uint64(100))
		},
		"Rule.key": template,
		"Rule.keys": func(s *jsonschema.Schema) {
			s.MinItems, s.MaxItems, s.UniqueItems = new(uint64(1)), new(uint64(100)), true
			template(s.Items)
		},
		"Rule.wait_time": func(s *jsonschema.Schema) {
			become(s, duration("such as 10s, none for a single attempt, or forever", "none", "forever"))
		},
		"Rule.lease_time": func(s *jsonschema.Schema) {
			become(s, duration("such as 30s, or watchdog for as long as the handler runs", "watchdog"))
		},
		"Rule.fallback":    func(s *jsonschema.Schema) { notBlank(s, "Write the name of a handler.") },
		"Rule.when":        condition,
		"Rule.max_waiters": func(s *jsonschema.Schema) { s.Minimum, s.Maximum = "0", "9223372036854775807" },
		"Rule.permits":     func(s *jsonschema.Schema) { s.Minimum, s.Maximum = "1", "2147483647" },
		"Rule.response": func(s *jsonschema.Schema) {
			s.ContentMediaType = "application/json"
			pattern(s, `\S`, "Write a JSON document, in single quotes.")
			s.Examples = []any{`{"status":"pending"}`}
		},
		"Rule.prefix": label,
		"Rule.profile": func(s *jsonschema.Schema) {
			for _, name := range ruleset.Profiles() {
				s.Examples = append(s.Examples, name)
			}
			notBlank(s, "Write the name of a profile.")
			s.Not = &jsonschema.Schema{Const: "default"} // these values are for every rule in any case
		},
	}
}

// become takes the restrictions of another schema over, but not its texts.
func become(s, other *jsonschema.Schema) {
	description, plain := s.Description, s.Default
	*s = *other
	s.Description, s.Default = description, plain
}

func template(s *jsonschema.Schema) {
	notBlank(s, "Write a template such as order:pay:#{path.id}.")
	s.Examples = []any{"order:pay:#{path.id}"}
}

// notBlank is a text of one line with something in it.
func notBlank(s *jsonschema.Schema, message string) {
	const control = `\x00-\x1f\x7f-\x9f`
	pattern(s, `^[^`+control+`]*[^\s`+control+`][^`+control+`]*$`, message)
}

// condition is an expression without the #{…} that it would have in a key.
func condition(s *jsonschema.Schema) {
	pattern(s, `^\s*([^\s#]|#[^{]|#$)`, "Write a bare expression such as query.mode == \"async\", without #{…}.")
}

// label is a text that is the same for every request.
func label(s *jsonschema.Schema) {
	s.Not = &jsonschema.Schema{Pattern: `#\{|\$\{|\{\{|[\x00-\x1f\x7f]`}
}
