package ruleset_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// checkWithSchema loads a file and validates it with the schema. Both must agree.
func checkWithSchema(t *testing.T, text string, valid bool) {
	t.Helper()
	value, err := instance(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := compiledSchema(t).Validate(value); (err == nil) != valid {
		t.Errorf("the schema says %v, want valid: %v:\n%s", err, valid, text)
	}
	if _, err := ruleset.Load("locks.yaml", []byte(text), ruleset.WithService("shop")); (err == nil) != valid {
		t.Errorf("Load says %v, want valid: %v:\n%s", err, valid, text)
	}
}

// The schema and Load agree about the top of a file.
func TestSchema_TopOfFile(t *testing.T) {
	t.Parallel()
	const rule = "rules: [{func: a, key: a}]\n"
	for text, valid := range map[string]bool{
		rule:                                                      true,
		"rules: []\n":                                             true,
		"rules:\n":                                                false,
		"rules: {}\n":                                             false,
		"rules: a\n":                                              false,
		"{}\n":                                                    false,
		"[]\n":                                                    false,
		"disabled: true\n" + rule:                                 true,
		"disabled: 1\n" + rule:                                    false,
		"dry_run: false\n" + rule:                                 true,
		"dry_run: 'true'\n" + rule:                                false,
		"allow_rekey: true\n" + rule:                              true,
		"allow_rekey: [true]\n" + rule:                            false,
		"allow_rekeys: true\n" + rule:                             false,
		"unmatched: warn\n" + rule:                                true,
		"unmatched: error\n" + rule:                               true,
		"unmatched: ignore\n" + rule:                              true,
		"unmatched: warning\n" + rule:                             false,
		"uncovered: warn\n" + rule:                                true,
		"uncovered: off\n" + rule:                                 false,
		"uncovered:\n" + rule:                                     false,
		"profiles: {}\n" + rule:                                   true,
		"profiles: []\n" + rule:                                   false,
		"profiles:\n" + rule:                                      false,
		"profiles: {default: {}}\n" + rule:                        true,
		"profiles: {p: {wait_time: 5s}}\n" + rule:                 true,
		"profiles: {p: {wait_time: 5}}\n" + rule:                  false,
		"profiles: {p: 5s}\n" + rule:                              false,
		"profiles: {p:}\n" + rule:                                 false,
		"profiles: {'': {wait_time: 5s}}\n" + rule:                false,
		"profiles: {p: {key: a}}\n" + rule:                        false,
		"profiles: {p: {name: a}}\n" + rule:                       false,
		"profiles: {p: {none: true}}\n" + rule:                    false,
		"profiles: {p: {profile: quick}}\n" + rule:                false,
		"profiles: {p: {services: [a]}}\n" + rule:                 false,
		"profiles: {p: {func: a}}\n" + rule:                       false,
		"profiles: {p: {kind: fair, permits: 3}}\n" + rule:        true, // a rule may have another kind
		"profiles: {p: {status: {busy: {http: 423}}}}\n" + rule:   true,
		"profiles: {p: {status: {}}}\n" + rule:                    false,
		"profiles: {p: {response: '1', on_busy: skip}}\n" + rule:  true,
		"profiles: {p: {disabled: true, dry_run: true}}\n" + rule: true,
	} {
		checkWithSchema(t, text, valid)
	}
}

// The schema and Load agree about right and wrong values of each field.
func TestSchema_Fields(t *testing.T) {
	t.Parallel()
	for field, values := range map[string]struct{ right, wrong []string }{
		"name":        {[]string{"a", "a b", "ä", "a-b_c.d"}, []string{"''", "' '", "1", "[a]", "{a: b}", `"a\nb"`, "'${a}'", "'{{a}}'"}},
		"wait_time":   {[]string{"1ms", "5s", "1h30m", "none", "forever", "1.5s"}, []string{"''", "5", "'5'", "watchdog", "5 s", "5S", "1d", "true", "[5s]", "0s", "infinite"}},
		"lease_time":  {[]string{"1ms", "30s", "watchdog"}, []string{"none", "forever", "30", "30sec", "0", "{}"}},
		"max_hold":    {[]string{"1ms", "5s", "1h30m"}, []string{"none", "forever", "watchdog", "5", "'5'", "0s", "''"}},
		"on_backend":  {[]string{"error", "skip", "null_response", "proceed"}, []string{"fail", "ERROR", "''", "true", "[error]"}},
		"on_key":      {[]string{"error", "skip"}, []string{"ignore", "1"}},
		"on_lost":     {[]string{"cancel", "ignore", "fail"}, []string{"error", "Cancel"}},
		"when":        {[]string{"'true'", "query.mode == \"a\"", "\"a\\nb\""}, []string{"''", "' '", "true", "'#{a}'", "[a]"}},
		"debounce":    {[]string{"5s", "1ms"}, []string{"none", "watchdog", "5", "0s", "''"}},
		"max_waiters": {[]string{"0", "1", "100"}, []string{"-1", "1.5", "'1'", "true", "none"}},
		"token":       {[]string{"true", "false"}, []string{"1", "yes", "'true'", "[]"}},
		"message":     {[]string{"a", "''", "\"a\\nb\"", "'10'"}, []string{"10", "[a]", "true"}},
		"prefix":      {[]string{"'shop:'", "''", "a"}, []string{"'#{a}'", "1", "[a]", `"\u0085"`, `"a\x9f"`, `"\x7f"`}},
		"key_format":  {[]string{"encode", "strict"}, []string{"Strict", "none", "''"}},
		"profile":     {[]string{"quick", "long"}, []string{"''", "default", "1", "[quick]"}},
		"disabled":    {[]string{"true", "false"}, []string{"off", "0"}},
		"dry_run":     {[]string{"true", "false"}, []string{"'false'", "no"}},
		"services":    {[]string{"[shop]", "[shop, till]"}, []string{"[]", "shop", "['']", "[1]", "{shop: 1}"}},
		"status": {
			[]string{"{busy: {http: 423}}", "{lost: {grpc: ABORTED}}", "{backend: {http: 503, grpc: UNAVAILABLE}, key: {http: 422}}"},
			[]string{"{}", "409", "{busy: 409}", "{busy: {}}", "{busy: {http: 399}}", "{busy: {http: 600}}", "{busy: {grpc: aborted}}", "{busy: {grpc: 10}}", "{locked: {http: 409}}"},
		},
		"kind": {[]string{"reentrant", "fenced", "spin", "fair", "read", "write"}, []string{"Fair", "RLock", "''", "[fair]"}},
	} {
		for valid, list := range map[bool][]string{true: values.right, false: values.wrong} {
			for _, value := range list {
				checkWithSchema(t, fmt.Sprintf("rules:\n- {func: a, key: a, %s: %s}\n", field, value), valid)
			}
		}
	}
}

// The schema and Load agree about endpoints, and ignore blanks around them.
func TestSchema_Endpoints(t *testing.T) {
	t.Parallel()
	const control = `\u0085`
	for endpoint, valid := range map[string]bool{
		"http: ' POST /a '":               true,
		"grpc: ' /a.B/C '":                true,
		"grpc: ' * '":                     true,
		"grpc: '/a.B/* '":                 true,
		"func: ' a '":                     true,
		"grpc: '/a.B/C d'":                false,
		"grpc: '/a .B/C'":                 false,
		"grpc: '/ a.B/C'":                 false,
		`http: "POST /a` + control + `"`:  false,
		`http: "POST /a` + control + `b"`: false,
		`grpc: "/a.B/C` + control + `"`:   false,
		`grpc: "/a.B/C` + control + `d"`:  false,
		`func: "a` + control + `b"`:       false,
		`func: "` + control + `"`:         false,
	} {
		checkWithSchema(t, "rules: [{"+endpoint+", key: k}]\n", valid)
	}
	for _, wildcard := range []string{"http: 'POST /* '", "grpc: '/a.B/* '", "grpc: '* '", "func: 'a/* '"} {
		checkWithSchema(t, "rules: [{"+wildcard+"}]\n", false) // without a lower layer, the rule has no key
	}
}

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

// instance returns a rule file in the form that a validator needs, or an error if it is not YAML.
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

func TestSchema_ValidSamples(t *testing.T) {
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

func TestSchema_InvalidSamples(t *testing.T) {
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
			t.Errorf("%s is valid for the schema: restrict the schema, or give the reason in unseenBySchema\n%s", file, text)
		case err != nil && listed:
			t.Errorf("the schema refuses %s (%q): remove it from unseenBySchema\n%v", file, reason, err)
		}
	}
	for name := range unseen {
		if !known[name] {
			t.Errorf("unseenBySchema has %s, which is not a sample", name)
		}
	}
}

func TestSchema_Dump(t *testing.T) {
	t.Parallel()
	schema := compiledSchema(t)
	value, err := instance(dumpText(t, newLayeredSet(t).Dump()))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Error(err)
	}
}

// schemaObject contains the parts of a schema that the tests read.
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

func TestSchema_Words(t *testing.T) {
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

// The defaults of the schema are the values of a rule that sets only its key.
func TestSchema_Defaults(t *testing.T) {
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
		t.Error("found no defaults")
	}
}

func TestSchema_Enums(t *testing.T) {
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

// The schema and Load agree about single rules.
func TestSchema_SingleRules(t *testing.T) {
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
		"{http: POST /a, key: a, lease_time: watchdog, max_hold: 1m}":                                 true,
		"{http: POST /a, key: a, lease_time: 30s, max_hold: 1m}":                                      false,
		"{http: POST /a, key: a, debounce: 5s, max_hold: 1m}":                                         true,
		"{http: POST /a, key: a, max_hold: forever}":                                                  false,
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

// unseenBySchema returns the invalid samples that the schema accepts, by their names without numbers, with
// the reasons. A validator sees only the values of a file, not its text.
func unseenBySchema() map[string]string {
	const (
		twice     = "a validator sees the last of two values"
		comment   = "a comment is not a value"
		alias     = "a validator sees the value that an alias or a merge stands for"
		number    = "a validator sees the number, not how it is written"
		length    = "a schema cannot compute with times"
		elsewhere = "the profile, the defaults of the program or a lower layer may have the missing value"
		others    = "a schema cannot compare one rule with another, or with its profile"
		program   = "the program knows"
		quotes    = "a curly quote is an ordinary letter"
		star      = "a pattern does not know where the transport permits a star"
		below     = "a schema does not know the lower layers"
	)
	return map[string]string{
		"top-level-duplicate":              twice,
		"duplicate-field":                  twice,
		"anchor-and-alias":                 alias,
		"number-octal":                     number,
		"number-fraction":                  number,
		"duration-too-long":                length,
		"duration-too-short":               length,
		"profile-unknown":                  program + " profiles that the file does not have",
		"endpoint-swallowed":               comment,
		"template-swallowed":               comment,
		"template-swallowed-after-quotes":  comment,
		"template-swallowed-elsewhere":     comment,
		"template-swallowed-and-open":      comment,
		"key-date":                         "a validator sees the date as text",
		"response-unused":                  elsewhere,
		"fallback-missing":                 elsewhere,
		"fallback-unused":                  elsewhere,
		"none-beside-rule":                 others,
		"rule-twice":                       others,
		"rule-twice-by-name":               others,
		"name-missing-on-one-of-two":       others,
		"kinds-on-one-key":                 others,
		"profile-swallowed":                comment,
		"default-strategy-without-handler": elsewhere,
		"comment-and-quotes":               comment,
		"services-without-program-name":    program + " which service it is",
		"profile-defaults":                 "the name of a profile is free",
		"quotes-curly-around-comment":      quotes,
		"quotes-curly-open":                quotes,
		"endpoint-any-method":              "any word in capitals is a method",
		"endpoint-two-stars":               "a second star looks like the name of Gin's wildcard",
		"none-over-program":                below,
		"none-over-proto":                  below,
		"name-over-proto":                  below,
		"name-over-program":                below,
		"name-missing-over-program":        below,
		"unused-because-of-defaults":       others,
		"services-nearly-this-program":     program + " its own name",
		"endpoint-star-inside-of-a-name":   star,
		"kind-of-a-profile":                others,
		"permits":                          elsewhere,
		"sizes-of-a-semaphore":             others,
	}
}
