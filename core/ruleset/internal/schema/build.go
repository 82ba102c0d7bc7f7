package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/invopop/jsonschema"

	"github.com/interlock-go/interlock/core/ruleset"
)

const (
	pkg = "github.com/interlock-go/interlock/core/ruleset"
	id  = "https://raw.githubusercontent.com/interlock-go/interlock/main/core/ruleset/locks.schema.json"
)

// builder makes the schema of a file of those of the Go types.
type builder struct {
	rule, settings *jsonschema.Schema
	refinements    map[string]func(*jsonschema.Schema)
	defaults       map[string]any // by owner and field
	defs           jsonschema.Definitions
	errs           []error
}

// build makes the schema with the comments of the current folder.
func build() (*jsonschema.Schema, error) {
	reflector := &jsonschema.Reflector{
		FieldNameTag: "rule", Anonymous: true, DoNotReference: true, Mapper: typeSchema,
	}
	if err := reflector.AddGoComments(pkg, "."); err != nil {
		return nil, err
	}
	values, err := defaults()
	if err != nil {
		return nil, err
	}
	b := &builder{
		rule: reflector.Reflect(ruleset.Rule{}), settings: reflector.Reflect(ruleset.Settings{}),
		refinements: fieldRefinements(), defaults: values, defs: statusParts(),
	}
	document := b.document()
	for name := range b.refinements {
		b.errs = append(b.errs, fmt.Errorf("%s is refined but is no field", name))
	}
	return document, errors.Join(b.errs...)
}

// document is the file as a whole.
func (b *builder) document() *jsonschema.Schema {
	top := b.object("Rules for locks around HTTP routes, gRPC methods and functions.")
	for pair := b.settings.Properties.Oldest(); pair != nil; pair = pair.Next() {
		b.describe("Settings", pair.Key, pair.Value)
		b.refine("Settings", pair.Key, pair.Value)
		top.Properties.Set(pair.Key, pair.Value)
	}
	top.Properties.Set("profiles", b.profiles())
	top.Properties.Set("rules", &jsonschema.Schema{
		Type: "array", Description: "The rules. The locks of one endpoint are taken in this order.",
		Items: b.ref("Rule", b.ruleEntry()),
	})
	top.Required = []string{"rules"}
	top.Version, top.ID, top.Title = jsonschema.Version, id, "Interlock rules"
	top.Definitions = b.defs
	return top
}

// ref adds a definition and refers to it.
func (b *builder) ref(name string, s *jsonschema.Schema) *jsonschema.Schema {
	b.defs[name] = s
	return &jsonschema.Schema{Ref: "#/$defs/" + name}
}

// object is an object without other members than those that are put into it.
func (b *builder) object(description string) *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object", Description: description,
		Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema,
	}
}

// ruleEntry is an element of rules: the fields of a Rule, with the three ways to
// write its endpoint.
func (b *builder) ruleEntry() *jsonschema.Schema {
	rule := b.object("A lock around an endpoint.")
	for pair := b.rule.Properties.Oldest(); pair != nil; pair = pair.Next() {
		if pair.Key != "endpoint" {
			b.describe("Rule", pair.Key, pair.Value)
			b.refine("Rule", pair.Key, pair.Value)
			rule.Properties.Set(pair.Key, b.ref(pair.Key, pair.Value))
			continue
		}
		for _, e := range endpoints() {
			rule.Properties.Set(e.name, b.ref(e.name, e.schema))
		}
		rule.Properties.Set("services", b.ref("services", servicesSchema()))
	}
	rule.AllOf = append(ruleConditions(), kindConditions()...)
	return rule
}

// profiles are sets of values for many rules: what belongs to a single rule is not
// among them.
func (b *builder) profiles() *jsonschema.Schema {
	profile := b.object("Values for the rules that name this profile, and for all rules if its name is default.")
	for pair := b.rule.Properties.Oldest(); pair != nil; pair = pair.Next() {
		if !slices.Contains([]string{"endpoint", "name", "key", "keys", "profile", "none"}, pair.Key) {
			profile.Properties.Set(pair.Key, b.ref(pair.Key, pair.Value))
		}
	}
	return &jsonschema.Schema{
		Type:                 "object",
		Description:          "Values for several rules, by name. A rule takes a profile with profile: name; the values of default are for every rule.",
		PropertyNames:        &jsonschema.Schema{Type: "string", MinLength: new(uint64(1))},
		AdditionalProperties: b.ref("Profile", profile),
	}
}

// describe gives a field its description in the words of a file, and its default.
func (b *builder) describe(owner, field string, s *jsonschema.Schema) {
	text, err := describe(owner+"."+field, s.Description)
	b.errs = append(b.errs, err)
	s.Description = text
	s.Default = b.defaults[owner+"."+field]
}

// refine applies what is known of a field beyond its type.
func (b *builder) refine(owner, field string, s *jsonschema.Schema) {
	name := owner + "." + field
	if change, ok := b.refinements[name]; ok {
		change(s)
		delete(b.refinements, name)
	}
}
