package ruleset_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// layeredFields are fields that can have any of these values beside each other, in every
// layer.
func layeredFields() map[string][]any {
	second := time.Second
	return map[string][]any{
		"wait_time":   {second, 2 * second, ruleset.WaitForever},
		"lease_time":  {3 * second, ruleset.Watchdog},
		"on_busy":     {failpolicy.Error, failpolicy.Skip, failpolicy.Proceed},
		"on_backend":  {failpolicy.Error, failpolicy.Proceed},
		"on_key":      {failpolicy.Error, failpolicy.Skip},
		"on_lost":     {failpolicy.Cancel, failpolicy.Ignore, failpolicy.Fail},
		"message":     {"one", "two"},
		"prefix":      {"a:", "b:"},
		"max_waiters": {1, 2, 3},
		"key_format":  {ruleset.Encode, ruleset.Strict},
		"when":        {"true", "false"},
		"disabled":    {true},
		"dry_run":     {true},
		"token":       {true},
	}
}

// fieldOf is the field of a rule by its name outside Go.
func fieldOf(t *testing.T, r *ruleset.Rule, name string) reflect.Value {
	t.Helper()
	for i, field := range ruleset.Fields() {
		if field == name {
			return reflect.ValueOf(r).Elem().Field(i)
		}
	}
	t.Fatalf("there is no field %s", name)
	return reflect.Value{}
}

// someValues is a value for each of some fields.
func someValues(t *testing.T, random *rand.Rand) ruleset.Rule {
	t.Helper()
	var r ruleset.Rule
	for name, values := range layeredFields() {
		if random.IntN(3) == 0 {
			fieldOf(t, &r, name).Set(reflect.ValueOf(values[random.IntN(len(values))]))
		}
	}
	return r
}

// Whatever the layers set: each field has the value of the highest that sets it, or the
// default, and its place says so.
func TestBuildSet_TheHighestLayerWins(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	pay := ruleset.HTTP("POST /pay")
	plain := mustSet(t, ruleset.Rule{Endpoint: pay, Key: "a"}).Rules()[0]
	for range 500 {
		values := map[ruleset.Layer]ruleset.Rule{}
		for layer := ruleset.LayerDefault; layer <= ruleset.LayerYAML; layer++ {
			values[layer] = someValues(t, random)
		}
		var declared []ruleset.Declared
		for _, layer := range []ruleset.Layer{ruleset.LayerYAML, ruleset.LayerCode, ruleset.LayerProto} {
			r := values[layer]
			r.Endpoint, r.Key = pay, "a"
			if layer == ruleset.LayerCode {
				r.Profile = "mine"
			}
			declared = append(declared, ruleset.Declared{Rule: r, Source: ruleset.Source{Layer: layer}})
		}
		random.Shuffle(len(declared), func(i, j int) { declared[i], declared[j] = declared[j], declared[i] })
		set, err := ruleset.BuildSet(declared, ruleset.WithProfile("default", values[ruleset.LayerDefault]), ruleset.WithProfile("mine", values[ruleset.LayerProfile]))
		if err != nil {
			t.Fatal(err)
		}
		got := set.Rules()[0]
		for name := range layeredFields() {
			want, from := fieldOf(t, &plain.Rule, name).Interface(), plain.Source(name).Layer
			for layer := ruleset.LayerDefault; layer <= ruleset.LayerYAML; layer++ {
				r := values[layer]
				if v := fieldOf(t, &r, name); !v.IsZero() {
					want, from = v.Interface(), layer
				}
			}
			if value := fieldOf(t, &got.Rule, name).Interface(); value != want || got.Source(name).Layer != from {
				t.Fatalf("%s: got %v of %s, want %v of %s, in\n%+v", name, value, got.Source(name), want, from, values)
			}
		}
	}
}

// Key and Keys are one thing in two forms: the higher layer has both.
func TestBuildSet_TheHighestLayerHasTheKeys(t *testing.T) {
	t.Parallel()
	pay := ruleset.HTTP("POST /pay")
	forms := map[string]ruleset.Rule{"one": {Endpoint: pay, Key: "a"}, "several": {Endpoint: pay, Keys: []string{"b", "c"}}, "nothing": {Endpoint: pay, Message: "later"}}
	for lower, low := range forms {
		for higher, high := range forms {
			if lower == "nothing" && higher == "nothing" {
				continue
			}
			set, err := ruleset.BuildSet([]ruleset.Declared{{Rule: low}, {Rule: high, Source: ruleset.Source{Layer: ruleset.LayerYAML, File: "locks.yaml", Line: 2}}})
			if err != nil {
				t.Errorf("%s over %s: %v", higher, lower, err)
				continue
			}
			want, layer := high, ruleset.LayerYAML
			if higher == "nothing" {
				want, layer = low, ruleset.LayerCode
			}
			r := set.Rules()[0]
			field := map[bool]string{true: "key", false: "keys"}[want.Key != ""]
			if r.Key != want.Key || !reflect.DeepEqual(r.Keys, want.Keys) || r.Source(field).Layer != layer {
				t.Errorf("%s over %s: got %q, %q of %s", higher, lower, r.Key, r.Keys, r.Source(field))
			}
		}
	}
}
