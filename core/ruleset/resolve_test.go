package ruleset_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

func TestResolved_Defaults(t *testing.T) {
	t.Parallel()
	got := mustSet(t, ruleset.Rule{Endpoint: ruleset.HTTP("POST /pay"), Key: "a"}).Rules()[0].Rule
	want := ruleset.Rule{
		Endpoint: ruleset.Route("POST", "/pay"), Name: "POST /pay", Key: "a", Kind: ruleset.Reentrant,
		WaitTime: 10 * time.Second, LeaseTime: ruleset.Watchdog, KeyFormat: ruleset.Encode,
		OnBusy: failpolicy.Error, OnBackend: failpolicy.Error, OnKey: failpolicy.Error, OnOverload: failpolicy.Error,
		OnLost: failpolicy.Cancel,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestResolve_Precedence(t *testing.T) {
	t.Parallel()
	rules, err := ruleset.Resolve(
		[]ruleset.Rule{{Key: "a", Profile: "quick", LeaseTime: time.Second}},
		ruleset.WithProfile("default", ruleset.Rule{WaitTime: time.Minute, LeaseTime: time.Minute, Prefix: "shop:"}),
		ruleset.WithProfile("quick", ruleset.Rule{WaitTime: 2 * time.Second}),
	)
	if err != nil {
		t.Fatal(err)
	}
	r := rules[0]
	if r.WaitTime != 2*time.Second || r.LeaseTime != time.Second || r.Prefix != "shop:" {
		t.Errorf("got %v, %v, %q", r.WaitTime, r.LeaseTime, r.Prefix)
	}
	for field, want := range map[string]ruleset.Layer{
		"wait_time": ruleset.LayerProfile, "lease_time": ruleset.LayerCode, "prefix": ruleset.LayerDefault,
		"fallback": ruleset.LayerNone, "no such field": ruleset.LayerNone,
	} {
		if got := r.Source(field).Layer; got != want {
			t.Errorf("%s: got %s, want %s", field, got, want)
		}
	}
}

func TestResolve_WithoutEndpoint(t *testing.T) {
	t.Parallel()
	rules, err := ruleset.Resolve([]ruleset.Rule{{Key: "a"}})
	if err != nil || len(rules) != 1 {
		t.Fatalf("got %v, %v", rules, err)
	}
	_, err = ruleset.Resolve([]ruleset.Rule{{Key: "a"}, {Key: "b"}})
	if err == nil || !strings.Contains(err.Error(), "give each its own name") {
		t.Errorf("two unnamed rules: got %v", err)
	}
}

func TestBuildSet_Layers(t *testing.T) {
	t.Parallel()
	pay := ruleset.HTTP("POST /pay")
	yaml := ruleset.Source{Layer: ruleset.LayerYAML, File: "locks.yaml", Line: 7, Column: 3}
	proto := ruleset.Source{Layer: ruleset.LayerProto, File: "order.proto", Line: 12}
	set, err := ruleset.BuildSet([]ruleset.Declared{
		{
			Rule:   ruleset.Rule{Endpoint: pay, Keys: []string{"old", "new"}, WaitTime: time.Second},
			Source: yaml,
			Fields: map[string]ruleset.Source{"disabled": {Layer: ruleset.LayerYAML, File: "locks.yaml", Line: 9, Column: 5}},
		},
		{Rule: ruleset.Rule{Endpoint: pay, Key: "old", Disabled: true, Prefix: "shop:", OnBusy: failpolicy.Skip}},
		{Rule: ruleset.Rule{Endpoint: pay, WaitTime: time.Minute, OnBusy: failpolicy.Proceed}, Source: proto},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := set.Match(pay)[0]
	if r.Key != "" || !reflect.DeepEqual(r.Keys, []string{"old", "new"}) {
		t.Errorf("keys: got %q, %q", r.Key, r.Keys)
	}
	if r.Disabled || r.WaitTime != time.Second || r.OnBusy != failpolicy.Proceed || r.Prefix != "shop:" {
		t.Errorf("got %+v", r.Rule)
	}
	for field, want := range map[string]string{
		"keys": "locks.yaml:7:3", "key": "not set", "disabled": "locks.yaml:9:5", "on_busy": "order.proto:12", "prefix": "code", "on_key": "default",
	} {
		if got := r.Source(field).String(); got != want {
			t.Errorf("%s: got source %q, want %q", field, got, want)
		}
	}
}

func TestBuildSet_Order(t *testing.T) {
	t.Parallel()
	e := ruleset.Func("f")
	set, err := ruleset.BuildSet([]ruleset.Declared{
		{Rule: ruleset.Rule{Endpoint: e, Name: "b", Key: "b"}},
		{Rule: ruleset.Rule{Endpoint: e, Name: "a", Key: "a"}},
		{Rule: ruleset.Rule{Endpoint: e, Name: "b", Prefix: "p"}, Source: ruleset.Source{Layer: ruleset.LayerYAML}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if rules := set.Match(e); len(rules) != 2 || rules[0].Name != "b" || rules[0].Prefix != "p" || rules[1].Name != "a" {
		t.Errorf("got %+v", rules)
	}
}

// layeredFields returns fields with values that can be combined freely, in every layer.
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

// fieldOf returns the field of a rule by its name outside Go.
func fieldOf(t *testing.T, r *ruleset.Rule, name string) reflect.Value {
	t.Helper()
	for i, field := range ruleset.Fields() {
		if field == name {
			return reflect.ValueOf(r).Elem().Field(i)
		}
	}
	t.Fatalf("a rule has no field %s", name)
	return reflect.Value{}
}

// someValues returns a rule with values in some fields.
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

// Each field has the value and the source of the highest layer that sets it, or of the default.
func TestBuildSet_HighestLayerWins(t *testing.T) {
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

// Key and Keys are two forms of one value. The highest layer that sets either of them determines both.
func TestBuildSet_KeyAndKeys(t *testing.T) {
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
