package readmetest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// TestMigration_YAMLAgreesWithGo loads each YAML block and compares its fields with the Go block before it.
func TestMigration_YAMLAgreesWithGo(t *testing.T) {
	t.Parallel()
	code, text := blocks(t, "go", migrating)[1:], blocks(t, "yaml", migrating) // the first Go block contains the imports of the others
	if len(code) != len(text) {
		t.Fatalf("got %d Go blocks and %d YAML blocks, want pairs", len(code), len(text))
	}
	for i, b := range text {
		set, err := ruleset.Load(b.file, []byte(b.code))
		if err != nil || len(set.Rules()) != 1 {
			t.Errorf("line %d: %d rules, %v", b.line, len(set.Rules()), err)
			continue
		}
		rule := set.Rules()[0]
		for _, want := range append(rule.Templates(), rule.When) {
			if !strings.Contains(code[i].code, want) {
				t.Errorf("line %d: the Go block before it has no %s", b.line, want)
			}
		}
		same(t, b, code[i], "on_busy", "OnBusy", string(rule.OnBusy) != "" && rule.OnBusy != failpolicy.Error)
		same(t, b, code[i], "wait_time", fmt.Sprintf("%d * time.Second", rule.WaitTime/time.Second), strings.Contains(b.code, "wait_time"))
		same(t, b, code[i], "lease_time", fmt.Sprintf("%d * time.Second", rule.LeaseTime/time.Second), strings.Contains(b.code, "lease_time"))
		same(t, b, code[i], "key_format", "ruleset.Strict", rule.KeyFormat == ruleset.Strict)
	}
}

// same requires that the Go block contains a field if and only if the YAML block sets it.
func same(t *testing.T, text, code block, field, inGo string, isSet bool) {
	t.Helper()
	if strings.Contains(text.code, field+":") != isSet || strings.Contains(code.code, inGo) != isSet {
		t.Errorf("line %d: %s and %s differ", text.line, field, inGo)
	}
}
