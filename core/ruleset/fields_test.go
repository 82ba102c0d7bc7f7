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

// The table contains the fields of the struct, in their order.
func TestFields_OfRule(t *testing.T) {
	t.Parallel()
	var names []string
	for field := range reflect.TypeFor[ruleset.Rule]().Fields() {
		names = append(names, outsideGo(field.Name))
	}
	if got := ruleset.Fields(); !slices.Equal(got, names) {
		t.Errorf("got %q, want %q", got, names)
	}
}

func TestFields_Unique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range ruleset.Fields() {
		if name == "" || seen[name] {
			t.Errorf("name %q is empty or used twice", name)
		}
		seen[name] = true
	}
}

// change has two rules: the second one sets a field, and the first one does not or sets another value.
type change struct {
	without, with string
	also          []string // other fields that change together with it
}

// special contains the fields that need other fields or another rule.
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

// fieldChanges returns a change for every field of a rule. For a field that is not special, it takes a value
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

// sampleOf returns a value of a field that is not its default, from the schema.
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

func TestLoad_EveryField(t *testing.T) {
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

// TestLoad_EveryFieldOfProfile checks that a value in a profile has the same effect as in the rule itself.
func TestLoad_EveryFieldOfProfile(t *testing.T) {
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

func TestLoad_EverySetting(t *testing.T) {
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

// changed returns the names of the fields in which two structs differ.
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

// outsideGo returns the name of a field outside Go: wait_time for WaitTime.
func outsideGo(name string) string {
	return strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name, "${1}_$2"))
}

// settingNames returns the names of the settings outside Go.
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
