package ruleset_test

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// change is a field in two files: the rule without it, or with another value, and with
// it.
type change struct {
	without, with string
	also          []string // fields that change together with it
}

// special are the fields that need others beside them, or another rule.
var special = map[string]change{
	"endpoint": {without: "{func: a, name: x, key: a}", with: "{http: POST /a, name: x, key: a}"},
	"name":     {without: "{func: a, key: a}", with: "{func: a, key: a, name: x}"},
	"key":      {without: "{func: a, key: a}", with: "{func: a, key: b}"},
	"keys":     {without: "{func: a, key: a}", with: "{func: a, keys: [a, b]}", also: []string{"key"}},
	"fallback": {without: "{func: a, key: a, on_busy: fallback, fallback: x}", with: "{func: a, key: a, on_busy: fallback, fallback: y}"},
	"debounce": {
		without: "{func: a, key: a, wait_time: none, lease_time: watchdog}",
		with:    "{func: a, key: a, wait_time: none, lease_time: watchdog, debounce: 5s}",
	},
	"permits":  {without: "{func: a, key: a, kind: semaphore, permits: 2}", with: "{func: a, key: a, kind: semaphore, permits: 3}"},
	"status":   {without: "{func: a, key: a}", with: "{func: a, key: a, status: {lost: {http: 502, grpc: UNKNOWN}}}"},
	"response": {without: "{func: a, key: a, on_busy: null_response}", with: "{func: a, key: a, on_busy: null_response, response: '{}'}"},
	"profile":  {without: "{func: a, key: a, wait_time: 3s, lease_time: 7s}", with: "{func: a, key: a, wait_time: 3s, lease_time: 7s, profile: heavy}"},
	"none":     {without: "{func: a}", with: "{func: a, none: true}"},
}

// fieldChanges has every field of a rule: the special ones, and of all others a value of their type
// that is not the default.
func fieldChanges(t *testing.T) map[string]change {
	t.Helper()
	changes := maps.Clone(special)
	for _, field := range ruleset.Fields() {
		if _, ok := special[field]; !ok {
			changes[field] = change{without: "{func: a, key: a}", with: fmt.Sprintf("{func: a, key: a, %s: %s}", field, sampleOf(t, field))}
		}
	}
	return changes
}

// sampleOf is a value of a field that is not its default, by the schema.
func sampleOf(t *testing.T, field string) string {
	t.Helper()
	def := parsedSchema(t).Defs[field]
	switch {
	case def.Type == "boolean":
		return "true"
	case def.Type == "integer":
		return "3"
	case len(def.Enum) > 0:
		return def.Enum[slices.IndexFunc(def.Enum, func(word string) bool { return word != def.Default })]
	case len(def.Examples) > 0 && def.Examples[0] == "10s": // a time
		return "7s"
	default:
		return "x"
	}
}

func TestLoad_EveryFieldOfARuleIsRead(t *testing.T) {
	t.Parallel()
	for field, c := range fieldChanges(t) {
		without, with := onlyRule(t, "rules:\n  - "+c.without), onlyRule(t, "rules:\n\n  - "+c.with)
		if got, want := changed(without.Rule, with.Rule), append(c.also, field); !sameWords(got, want) {
			t.Errorf("%s: %q are different, want %q", field, got, want)
		}
		source := with.Source(field)
		if source.Layer != ruleset.LayerYAML || source.File != "locks.yaml" || source.Line != 3 || source.Column < 5 {
			t.Errorf("%s: got source %+v", field, source)
		}
	}
}

// TestLoad_EveryFieldOfAProfileIsRead: in a profile, a value does the same as in the
// rule itself.
func TestLoad_EveryFieldOfAProfileIsRead(t *testing.T) {
	t.Parallel()
	single := []string{"endpoint", "name", "key", "keys", "profile", "none"}
	for field, c := range fieldChanges(t) {
		if slices.Contains(single, field) {
			continue
		}
		values := "{" + strings.TrimPrefix(c.with, "{func: a, key: a, ")
		want := onlyRule(t, "rules: ["+c.with+"]")
		for profile, layer := range map[string]ruleset.Layer{"default": ruleset.LayerDefault, "mine": ruleset.LayerProfile} {
			got := onlyRule(t, fmt.Sprintf("profiles:\n  %s: %s\nrules:\n  - {func: a, key: a%s}", profile, values, map[string]string{"mine": ", profile: mine"}[profile]))
			if different := changed(want.Rule, got.Rule); len(different) > 0 && !reflect.DeepEqual(different, []string{"profile"}) {
				t.Errorf("%s in profile %s: %q are different from the rule's own", field, profile, different)
			}
			if source := got.Source(field); source.Layer != layer || source.File != "locks.yaml" || source.Line != 2 {
				t.Errorf("%s in profile %s: got source %s", field, profile, source)
			}
		}
	}
}

func TestLoad_EverySettingIsRead(t *testing.T) {
	t.Parallel()
	values := map[string]string{"disabled": "true", "dry_run": "true", "allow_rekey": "true", "unmatched": "ignore", "uncovered": "error"}
	without := mustLoad(t, "rules: [{func: a, key: a}]").Settings()
	for _, name := range settingNames() {
		with := mustLoad(t, name+": "+values[name]+"\nrules: [{func: a, key: a}]").Settings()
		if got := changed(without, with); !reflect.DeepEqual(got, []string{name}) {
			t.Errorf("%s: %q are different", name, got)
		}
	}
}

func mustLoad(tb testing.TB, text string, opts ...ruleset.Option) *ruleset.Set {
	tb.Helper()
	set, err := ruleset.Load("locks.yaml", []byte(text), opts...)
	if err != nil {
		tb.Fatalf("%v in\n%s", err, text)
	}
	return set
}

func onlyRule(tb testing.TB, text string, opts ...ruleset.Option) *ruleset.Resolved {
	tb.Helper()
	rules := mustLoad(tb, text, opts...).Rules()
	if len(rules) != 1 {
		tb.Fatalf("got %d rules in\n%s", len(rules), text)
	}
	return rules[0]
}

// changed names the fields of two structs that are different.
func changed[T any](a, b T) []string {
	var names []string
	v, w := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range v.NumField() {
		if !reflect.DeepEqual(v.Field(i).Interface(), w.Field(i).Interface()) {
			names = append(names, outsideGo(v.Type().Field(i).Name))
		}
	}
	return names
}

// outsideGo is the name of a field outside Go: wait_time for WaitTime.
func outsideGo(name string) string {
	return strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name, "${1}_$2"))
}

// settingNames are the names of the settings outside Go.
func settingNames() []string {
	var names []string
	for field := range reflect.TypeFor[ruleset.Settings]().Fields() {
		names = append(names, outsideGo(field.Name))
	}
	return names
}

func sameWords(a, b []string) bool {
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
