package ruleset_test

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// What a message says to write must be what the place takes that it is about.
func TestMessages_SpellAsTheLayerDoes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		rule  ruleset.Rule
		words map[ruleset.Layer]string
	}{
		{"watchdog as wait", ruleset.Rule{WaitTime: ruleset.Watchdog}, map[ruleset.Layer]string{
			ruleset.LayerCode:  "5*time.Second, ruleset.NoWait or ruleset.WaitForever",
			ruleset.LayerProto: `"5s", "none" or "forever"`,
			ruleset.LayerYAML:  "5s, none or forever",
		}},
		{"response that nobody sees", ruleset.Rule{Response: "1"}, map[ruleset.Layer]string{
			ruleset.LayerCode:  "write OnBusy: failpolicy.NullResponse",
			ruleset.LayerProto: "write on_busy: STRATEGY_NULL_RESPONSE",
			ruleset.LayerYAML:  "write on_busy: null_response",
		}},
		{"fallback that nobody runs", ruleset.Rule{Fallback: "queue", OnBusy: failpolicy.Skip}, map[ruleset.Layer]string{
			ruleset.LayerCode:  "write OnBusy: failpolicy.Fallback",
			ruleset.LayerProto: "write on_busy: STRATEGY_FALLBACK",
			ruleset.LayerYAML:  "write on_busy: fallback",
		}},
		{"window without end", ruleset.Rule{Debounce: 20 * 365 * 24 * time.Hour}, map[ruleset.Layer]string{
			ruleset.LayerCode: "such as 5*time.Second", ruleset.LayerProto: `such as "5s"`, ruleset.LayerYAML: "such as 5s",
		}},
		{"blank in a list", ruleset.Rule{Keys: []string{"a", " "}}, map[ruleset.Layer]string{
			ruleset.LayerCode:  `Keys[1]: blank: write a template such as "stock:#{req.sku}"`,
			ruleset.LayerProto: `keys[1]: blank: write a template such as "stock:#{req.sku}"`,
		}},
	} {
		for layer, words := range test.words {
			rule := test.rule
			rule.Endpoint = ruleset.GRPC("/shop.Orders/Pay")
			if rule.Keys == nil {
				rule.Key = "k"
			}
			source := ruleset.Source{Layer: layer}
			if layer != ruleset.LayerCode {
				source.File, source.Line = "f", 1
			}
			_, err := ruleset.BuildSet([]ruleset.Declared{{Rule: rule, Source: source}})
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%s, %s: got %v, want one with %q", test.name, layer, err, words)
			}
		}
	}
}

// A word that is none is answered with the constants of Go where the rule is written in Go.
func TestMessages_NameTheConstantsOfGo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule ruleset.Rule
		want string
	}{
		{ruleset.Rule{Kind: "fencd"}, `Kind: unknown kind "fencd": write ruleset.Fenced (one of ruleset.Reentrant, ruleset.Fenced, ruleset.Spin, `},
		{ruleset.Rule{Kind: "latch"}, `Kind: unknown kind "latch" (one of ruleset.Reentrant,`},
		{ruleset.Rule{OnBusy: "RETURN_NULL"}, `OnBusy: unknown strategy "RETURN_NULL": write failpolicy.NullResponse (one of failpolicy.Error, failpolicy.Skip, failpolicy.NullResponse, `},
		{ruleset.Rule{OnBackend: "proced"}, "write failpolicy.Proceed"},
		{ruleset.Rule{OnLost: "ignored"}, `OnLost: unknown OnLost "ignored": write failpolicy.Ignore (one of failpolicy.Cancel, failpolicy.Ignore, failpolicy.Fail)`},
		{ruleset.Rule{KeyFormat: "strickt"}, `KeyFormat: unknown KeyFormat "strickt": write ruleset.Strict (one of ruleset.Encode, ruleset.Strict)`},
	} {
		tt.rule.Endpoint, tt.rule.Key = ruleset.Func("task"), "k"
		_, err := ruleset.NewSet([]ruleset.Rule{tt.rule})
		wantOnlyProblem(t, err, tt.want)
		_, err = ruleset.NewSet(nil, ruleset.WithProfile("reports", ruleset.Rule{
			Kind: tt.rule.Kind, OnBusy: tt.rule.OnBusy, OnBackend: tt.rule.OnBackend, OnLost: tt.rule.OnLost, KeyFormat: tt.rule.KeyFormat,
		}))
		wantOnlyProblem(t, err, tt.want)
	}
}
