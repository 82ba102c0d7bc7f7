package ruleset_test

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

func TestSource_String(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]ruleset.Source{
		"not set":         {},
		"default":         {Layer: ruleset.LayerDefault},
		"profile quick":   {Layer: ruleset.LayerProfile, Profile: "quick"},
		"code":            {Layer: ruleset.LayerCode},
		"proto":           {Layer: ruleset.LayerProto},
		"yaml":            {Layer: ruleset.LayerYAML},
		"locks.yaml":      {Layer: ruleset.LayerYAML, File: "locks.yaml"},
		"locks.yaml:3":    {Layer: ruleset.LayerYAML, File: "locks.yaml", Line: 3},
		"order.proto:3:7": {Layer: ruleset.LayerProto, File: "order.proto", Line: 3, Column: 7},
	} {
		if got := s.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Packages that compile a rule spell its fields and values like the layer that contains them.
func TestResolved_Spelled(t *testing.T) {
	t.Parallel()
	pay := ruleset.GRPC("/shop.Orders/Pay")
	fair := ruleset.Rule{Endpoint: pay, Key: "a", Kind: ruleset.Fair, OnBusy: failpolicy.NullResponse, WaitTime: ruleset.NoWait}
	inCode := mustSet(t, fair).Rules()[0]
	inProto, err := (*ruleset.Set)(nil).Overlay(pay, fromProto(fair)...)
	if err != nil {
		t.Fatal(err)
	}
	inFile := onlyRule(t, "rules:\n- {grpc: /shop.Orders/Pay, key: a, kind: fair, on_busy: null_response, wait_time: none}\n")
	for _, tc := range []struct {
		field, word       string
		code, proto, file string
	}{
		{"kind", "kind", "Kind", "kind", "kind"},
		{"kind", "fair", "ruleset.Fair", "KIND_FAIR", "fair"},
		{"on_busy", "null_response", "failpolicy.NullResponse", "STRATEGY_NULL_RESPONSE", "null_response"},
		{"wait_time", "wait_time", "WaitTime", "wait_time", "wait_time"},
		{"key", "strict", "ruleset.Strict", "strict", "strict"},
	} {
		for rule, want := range map[*ruleset.Resolved]string{inCode: tc.code, inProto[0]: tc.proto, inFile: tc.file} {
			if got := rule.Spelled(tc.field, tc.word); got != want {
				t.Errorf("%s of %s: got %s, want %s", tc.word, rule.Source(tc.field), got, want)
			}
		}
	}
}

// The advised words are valid in the layer of the problem.
func TestBuildSet_SpelledMessages(t *testing.T) {
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
		{"unused response", ruleset.Rule{Response: "1"}, map[ruleset.Layer]string{
			ruleset.LayerCode:  "write OnBusy: failpolicy.NullResponse",
			ruleset.LayerProto: "write on_busy: STRATEGY_NULL_RESPONSE",
			ruleset.LayerYAML:  "write on_busy: null_response",
		}},
		{"unused fallback", ruleset.Rule{Fallback: "queue", OnBusy: failpolicy.Skip}, map[ruleset.Layer]string{
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

// For a rule in Go, the message for an unknown word has the constants of Go.
func TestNewSet_UnknownWords(t *testing.T) {
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
