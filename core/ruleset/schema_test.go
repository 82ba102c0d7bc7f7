package ruleset_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(ruleset.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertContent()
	if err := compiler.AddResource("locks.schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("locks.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// instance is a rule file as a validator wants it. The error is that it is no YAML.
func instance(text string) (any, error) {
	var value any
	if err := yaml.Load([]byte(text), &value, yaml.WithUniqueKeys(false)); err != nil {
		return nil, err
	}
	document, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(document))
}

func TestSchema_AcceptsEveryValidSample(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	for name, text := range samples(t, "valid") {
		value, err := instance(text)
		if err == nil {
			err = schema.Validate(value)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSchema_RefusesEveryInvalidSampleThatItCan(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	unseen, known := unseenBySchema(), map[string]bool{}
	for file, text := range samples(t, "invalid") {
		_, name, _ := strings.Cut(file, "-")
		known[name] = true
		value, err := instance(text)
		if err == nil {
			err = schema.Validate(value)
		}
		switch reason, listed := unseen[name]; {
		case err == nil && !listed:
			t.Errorf("%s is valid for the schema: restrict the schema, or say in unseenBySchema why it cannot know\n%s", file, text)
		case err != nil && listed:
			t.Errorf("%s is refused by the schema after all (%q): take it out of unseenBySchema\n%v", file, reason, err)
		}
	}
	for name := range unseen {
		if !known[name] {
			t.Errorf("unseenBySchema has %s, which is no sample", name)
		}
	}
}

func TestSchema_AcceptsDumps(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	value, err := instance(dumpText(t, layered(t).Dump()))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Error(err)
	}
}

// schemaObject is what this test looks at.
type schemaObject struct {
	ID          string                  `json:"$id"`
	Ref         string                  `json:"$ref"`
	Defs        map[string]schemaObject `json:"$defs"`
	Properties  map[string]schemaObject `json:"properties"`
	Type        string                  `json:"type"`
	Examples    []string                `json:"examples"`
	Description string                  `json:"description"`
	Default     any                     `json:"default"`
	Enum        []string                `json:"enum"`
}

func parsedSchema(t *testing.T) schemaObject {
	t.Helper()
	var schema schemaObject
	if err := json.Unmarshal(ruleset.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestSchema_HasEveryField(t *testing.T) {
	t.Parallel()
	schema := parsedSchema(t)
	for _, field := range ruleset.Fields() {
		names := []string{field}
		if field == "endpoint" {
			names = []string{"http", "grpc", "func"}
		}
		for _, name := range names {
			ref := schema.Defs["Rule"].Properties[name].Ref
			def, ok := schema.Defs[strings.TrimPrefix(ref, "#/$defs/")]
			if !ok || def.Description == "" {
				t.Errorf("no %s in a rule, or without a description", name)
			}
		}
		_, inProfile := schema.Defs["Profile"].Properties[field]
		single := slices.Contains([]string{"endpoint", "name", "key", "keys", "profile", "none"}, field)
		if inProfile == single {
			t.Errorf("%s in a profile: got %v", field, inProfile)
		}
	}
	for _, name := range settingNames() {
		if schema.Properties[name].Description == "" {
			t.Errorf("no %s at the top, or without a description", name)
		}
	}
}

func TestSchema_SpeaksOfFilesOnly(t *testing.T) {
	t.Parallel()
	text := string(ruleset.Schema())
	for _, word := range []string{"ruleset.", "failpolicy.", "WaitTime", "NoWait", "time.Second", "[", "]"} {
		for _, def := range parsedSchema(t).Defs {
			if strings.Contains(def.Description, word) {
				t.Errorf("%q in a description: %s", word, def.Description)
			}
		}
	}
	if !strings.HasPrefix(parsedSchema(t).ID, "https://") || !strings.HasSuffix(text, "}\n") {
		t.Errorf("got the ID %s", parsedSchema(t).ID)
	}
}

// TestSchema_HasTheDefaults holds the defaults of the schema against a rule that sets
// nothing but its key.
func TestSchema_HasTheDefaults(t *testing.T) {
	t.Parallel()
	rules, err := ruleset.Resolve([]ruleset.Rule{{Key: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(ruleset.Dump{Rules: rules, NoSources: true})
	if err != nil {
		t.Fatal(err)
	}
	var plain struct {
		Settings map[string]any
		Rules    []map[string]any
	}
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	schema := parsedSchema(t)
	for _, field := range ruleset.Fields() {
		var want any
		if rules[0].Source(field).Layer == ruleset.LayerDefault {
			want = plain.Rules[0][field]
		}
		if got := schema.Defs[field].Default; got != want {
			t.Errorf("%s: got %v, want %v", field, got, want)
		}
	}
	for setting, want := range plain.Settings {
		if got := schema.Properties[setting].Default; got != want {
			t.Errorf("%s: got %v, want %v", setting, got, want)
		}
	}
	if len(plain.Settings) == 0 || schema.Defs["wait_time"].Default != "10s" {
		t.Error("no defaults are known")
	}
}

func TestSchema_HasEveryWord(t *testing.T) {
	t.Parallel()
	schema := parsedSchema(t)
	for field, want := range map[string][]string{
		"kind": wordsOf(ruleset.Kinds()), "key_format": {"encode", "strict"}, "on_lost": wordsOf(failpolicy.LossChoices()),
		"on_busy": wordsOf(failpolicy.Strategies()), "on_backend": wordsOf(failpolicy.Strategies()),
		"on_key": wordsOf(failpolicy.Strategies()), "on_overload": wordsOf(failpolicy.Strategies()),
	} {
		if got := schema.Defs[field].Enum; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}
	for _, field := range []string{"unmatched", "uncovered"} {
		if got := schema.Properties[field].Enum; !slices.Equal(got, []string{"error", "warn", "ignore"}) {
			t.Errorf("%s: got %q", field, got)
		}
	}
	for field := range reflect.TypeFor[failpolicy.Statuses]().Fields() {
		if _, ok := schema.Defs["status"].Properties[strings.ToLower(field.Name)]; !ok {
			t.Errorf("no status for %s", field.Name)
		}
	}
}

func wordsOf[T ~string](list []T) []string {
	var words []string
	for _, w := range list {
		words = append(words, string(w))
	}
	return words
}

// TestSchema_JudgesSingleRules holds the parts of the schema against the loader:
// both must say the same.
func TestSchema_JudgesSingleRules(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	for rule, valid := range map[string]bool{
		"{http: POST /a, key: a}":                      true,
		"{http: '* /a', key: a}":                       true,
		"{http: '*', key: a}":                          true,
		"{http: '* *', key: a}":                        true,
		"{http: POST *, key: a}":                       true,
		"{http: POST /*, key: a}":                      true,
		"{http: GET /files/*path, key: a}":             true,
		"{http: POST /a/*/b, key: a}":                  false,
		"{http: POST /, key: a}":                       true,
		"{http: POST //a//, key: a}":                   true,
		"{http: post /a, key: a}":                      false,
		"{http: POST a, key: a}":                       false,
		"{http: /a, key: a}":                           false,
		"{http: POST, key: a}":                         false,
		"{http: POST /a}":                              false,
		"{http: POST /a, keys: [a, b]}":                true,
		"{http: POST /a, keys: []}":                    false,
		"{http: POST /a, keys: [a, a]}":                false,
		"{http: POST /a, keys: a}":                     false,
		"{http: POST /a, key: a, keys: [b]}":           false,
		"{http: POST /a, key: ' '}":                    false,
		"{http: POST /a, key: 1}":                      false,
		"{http: POST /a, key: null}":                   false,
		"{http: POST /a, grpc: /a.B/C, key: a}":        false,
		"{http: 'POST /a b', key: a}":                  false,
		"{http: 'POST /a/${id}', key: a}":              false,
		"{http: 'POST  /a', key: a}":                   true,
		"{grpc: /*/a, key: a}":                         false,
		"{func: close day}":                            true,
		"{key: a}":                                     false,
		"{grpc: /a.B/C}":                               true,
		"{grpc: /a.B/*}":                               false,
		"{grpc: '*', key: a}":                          true,
		"{grpc: a.B/C, key: a}":                        false,
		"{grpc: /a.B, key: a}":                         false,
		"{grpc: /a.B/C/D, key: a}":                     false,
		"{func: close-day}":                            true,
		"{func: ' ', key: a}":                          false,
		"{http: POST /a, none: true}":                  true,
		"{http: POST /a, none: false, key: a}":         true,
		"{http: POST /a, none: true, key: a}":          false,
		"{http: POST /a, key: a, wait_time: 1m30s}":    true,
		"{http: POST /a, key: a, wait_time: none}":     true,
		"{http: POST /a, key: a, wait_time: 1.5s}":     true,
		"{http: POST /a, key: a, wait_time: 0.5s}":     true,
		"{http: POST /a, key: a, wait_time: 0h10s0ms}": true,
		"{http: POST /a, key: a, wait_time: 0s}":       false,
		"{http: POST /a, key: a, lease_time: 0.0m0s}":  false,
		"{http: POST /a, key: a, debounce: 0h}":        false,
		"{http: POST /a, key: a, wait_time: +1s}":      false,
		"{http: POST /a, key: a, wait_time: .5s}":      false,
		"{http: POST /a, key: a, wait_time: 1d}":       false,
		"{http: POST /a, key: a, wait_time: 10}":       false,
		"{http: POST /a, key: a, wait_time: '10'}":     false,
		"{http: POST /a, key: a, wait_time: watchdog}": false,
		"{http: POST /a, key: a, wait_time: -1s}":      false,
		"{http: POST /a, key: a, debounce: 5s, wait_time: none, lease_time: watchdog, on_busy: skip}": true,
		"{http: POST /a, key: a, debounce: 5s, wait_time: 1s}":                                        false,
		"{http: POST /a, key: a, debounce: 5s, lease_time: 1s}":                                       false,
		"{http: POST /a, key: a, debounce: 5s, on_busy: proceed}":                                     false,
		"{http: POST /a, key: a, debounce: 5s, max_waiters: 1}":                                       false,
		"{http: POST /a, key: a, wait_time: none, max_waiters: 0, on_overload: error}":                true,
		"{http: POST /a, key: a, wait_time: none, on_overload: skip}":                                 false,
		"{http: POST /a, key: a, lease_time: watchdog}":                                               true,
		"{http: POST /a, key: a, lease_time: forever}":                                                false,
		"{http: POST /a, key: a, debounce: none}":                                                     false,
		"{http: POST /a, key: a, max_waiters: -1}":                                                    false,
		"{http: POST /a, key: a, max_waiters: 0}":                                                     true,
		"{http: POST /a, key: a, kind: semaphore, permits: 3}":                                        true,
		"{http: POST /a, key: a, kind: spin, permits: 3}":                                             false,
		"{http: POST /a, key: a, kind: semaphore, permits: 0}":                                        false,
		"{http: POST /a, key: a, kind: semaphore, permits: 2147483648}":                               false,
		"{http: POST /a, keys: [a, b], kind: semaphore, permits: 3}":                                  false,
		"{http: POST /a, keys: [a, b], kind: fair}":                                                   false,
		"{http: POST /a, key: a, kind: write, token: true, debounce: 5s}":                             true,
		"{http: POST /a, keys: [a, b], token: true}":                                                  false,
		"{http: POST /a, keys: [a], token: true}":                                                     true,
		"{http: POST /a, key: a, kind: read, token: true}":                                            false,
		"{http: POST /a, key: a, kind: fenced, token: true}":                                          true,
		"{http: POST /a, key: a, kind: fenced, token: false}":                                         false,
		"{http: POST /a, key: a, kind: read, token: false}":                                           true,
		"{http: POST /a, key: a, kind: read, debounce: 5s}":                                           false,
		"{http: POST /a, key: a, on_busy: EXCEPTION}":                                                 false,
		"{http: POST /a, key: a, name: 'a#{path.id}'}":                                                false,
		"{http: POST /a, key: a, name: ' '}":                                                          false,
		"{http: POST /a, key: a, prefix: 'a${x}'}":                                                    false,
		"{http: POST /a, key: a, when: '#{query.x}'}":                                                 false,
		"{http: POST /a, key: a, when: 'any(x, # > 1)'}":                                              true,
		"{http: POST /a, key: a, when: ''}":                                                           false,
		"{http: POST /a, key: a, profile: quick}":                                                     true,
		"{http: POST /a, key: a, status: {busy: {http: 423, grpc: ABORTED}}}":                         true,
		"{http: POST /a, key: a, status: {busy: {http: 200}}}":                                        false,
		"{http: POST /a, key: a, status: {busy: {grpc: OK}}}":                                         false,
		"{http: POST /a, key: a, status: {canceled: {http: 423}}}":                                    false,
		"{http: POST /a, key: a, on_busy: null_response, response: '{}'}":                             true,
		"{http: POST /a, key: a, on_busy: null_response, response: '{a: 1}'}":                         false,
		"{http: POST /a, key: a, disabled: yes}":                                                      false,
		"{http: POST /a, key: a, waittime: 10s}":                                                      false,
	} {
		text := "rules:\n- " + rule + "\n"
		value, err := instance(text)
		if err != nil {
			t.Fatalf("%s: %v", rule, err)
		}
		if err := schema.Validate(value); (err == nil) != valid {
			t.Errorf("%s: the schema says %v, want valid: %v", rule, err, valid)
		}
		if _, err := ruleset.Load("locks.yaml", []byte(text)); (err == nil) != valid {
			t.Errorf("%s: Load says %v, want valid: %v", rule, err, valid)
		}
	}
}
